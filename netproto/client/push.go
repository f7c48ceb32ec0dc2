package client

import (
	"context"
	"fmt"
)

// Push adds a packet to a queue and returns its id. It is on the server's disk then. Push is never
// repeated: an error that is ErrUnknown says that the packet may be there. With Unique it is safe
// to push again; with UntilClaim that adds one more packet if the first one is claimed by then, and
// with Replace it may bring back what another push has replaced.
//
// In a queue that is full or paused Push waits if it has a Block, in order of arrival, and if no
// room comes in time the error is ErrFull. Where the setting of a queue is "full block" give a
// Block, too: every push waits there, and without one it ends as a lost connection.
func (c *Client) Push(ctx context.Context, queue string, payload []byte, options ...Option) (id string, err error) {
	v, err := c.push(ctx, options, "QPUSH", queue, payload)
	return text(v), err
}

// PushTold is Push with Unique, which also tells what became of it: new, replaced, or the state of
// the packet that has the id: ready, delayed, claimed, damaged, and with a Window also dead, done
// or gone. When a push is repeated after ErrUnknown, that may be its own packet.
func (c *Client) PushTold(ctx context.Context, queue string, payload []byte, options ...Option) (id, told string, err error) {
	first, second, err := pair(c.push(ctx, append(options[:len(options):len(options)], says("TELL")), "QPUSH", queue, payload))
	return text(first), text(second), err
}

// PushBatch adds up to 1,000 packets, all or none of them, and returns their ids in the same order.
// The options hold for each. See Push about its errors.
func (c *Client) PushBatch(ctx context.Context, queue string, payloads [][]byte, options ...Option) (ids []string, err error) {
	if len(payloads) == 0 {
		return nil, nil
	}
	command := []any{"QMPUSH", queue, len(payloads)}
	for _, p := range payloads {
		command = append(command, p)
	}
	v, err := c.push(ctx, options, command...)
	if err != nil {
		return nil, err
	}
	list, ok := v.([]any)
	if !ok {
		return nil, unexpected(v)
	}
	for _, v := range list {
		if v == nil {
			return nil, errDropped
		}
		ids = append(ids, text(v))
	}
	return ids, nil
}

// PushValue is Push of what the codec makes of a value. [Handle] reads it.
func (c *Client) PushValue(ctx context.Context, queue string, codec Codec, value any, options ...Option) (id string, err error) {
	payload, err := codec.Marshal(value)
	if err != nil {
		return "", err
	}
	return c.Push(ctx, queue, payload, options...)
}

// What a null in place of an id means.
var (
	errDropped = fmt.Errorf("%w of packets that are not worse", ErrFull)
	errNoRoom  = fmt.Errorf("%w, or paused, and no room came in time", ErrFull)
)

func (c *Client) push(ctx context.Context, options []Option, command ...any) (v any, err error) {
	r, err := parse(options)
	if err != nil {
		return nil, err
	}
	if r.newest || len(r.queues) > 0 {
		return nil, fmt.Errorf("%w: Newest and Or are options of Pop and Claim", ErrInvalid)
	}
	args := append(command, r.args...)
	if !r.blocks {
		if v, err = doOnce(ctx, c.rdb, args); isNull(err) {
			err = errDropped
		}
		return v, err
	}
	w := waiter{c: c, turn: pushTurn}
	defer w.close()
	if v, err = w.ask(ctx, r.block, args); isNull(err) {
		err = errNoRoom
	}
	return v, err
}
