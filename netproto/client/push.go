package client

import (
	"context"
	"errors"
	"fmt"
)

// Push adds a packet to a queue and returns its id. It is on the server's disk then. Push is never
// repeated: an error that is ErrUnknown says that the packet may be there. With Unique it is safe
// to push again.
//
// In a queue that is full Push waits if it has a Block. One whose setting is "full block" needs it:
// there the server does not answer before there is room.
func (c *Client) Push(ctx context.Context, queue string, payload []byte, options ...Option) (id string, err error) {
	v, err := c.push(ctx, options, "QPUSH", queue, payload)
	return text(v), err
}

// PushBatch adds packets, all or none of them, and returns their ids in the same order. The options
// hold for each.
func (c *Client) PushBatch(ctx context.Context, queue string, payloads [][]byte, options ...Option) (ids []string, err error) {
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
			return nil, errWorst
		}
		ids = append(ids, text(v))
	}
	return ids, nil
}

// PushValue is Push of what the codec makes of a value.
func (c *Client) PushValue(ctx context.Context, queue string, codec Codec, value any, options ...Option) (id string, err error) {
	payload, err := codec.Marshal(value)
	if err != nil {
		return "", err
	}
	return c.Push(ctx, queue, payload, options...)
}

// errWorst: the queue drops what is worst, and that is the new packet.
var errWorst = fmt.Errorf("%w of packets that are not worse", ErrFull)

func (c *Client) push(ctx context.Context, options []Option, command ...any) (v any, err error) {
	r, err := parse(options)
	if err != nil {
		return nil, err
	}
	if r.newest || len(r.queues) > 0 {
		return nil, fmt.Errorf("%w: Newest and Or are options of Pop and Claim", ErrInvalid)
	}
	args := append(command, r.args...)
	if r.blocks {
		v, err = c.waitFor(ctx, r.block, args, func(err error) bool {
			return isNull(err) || errors.Is(err, ErrFull) || errors.Is(err, ErrPaused)
		})
	} else {
		v, err = doOnce(ctx, c.rdb, args)
	}
	if isNull(err) {
		err = errWorst
	}
	return v, err
}
