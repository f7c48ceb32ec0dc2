package client

import (
	"context"
	"errors"
	"iter"
)

// Pop takes packets for good: the best, and of those the oldest. It returns none if there is none,
// or with a Block when that has ended. Packets in an answer that gets lost are lost, too: Claim
// does not lose them.
func (c *Client) Pop(ctx context.Context, queue string, options ...Option) ([]*Packet, error) {
	return c.take(ctx, "QPOP", queue, options)
}

// Claim takes packets for the time of a lease: 30 s unless the queue or Lease says otherwise. A
// packet that is neither acknowledged nor returned by then goes to another consumer. Claim returns
// none if there is none, or with a Block when that has ended. Claims in an answer that gets lost
// end with their lease.
func (c *Client) Claim(ctx context.Context, queue string, options ...Option) ([]*Packet, error) {
	return c.take(ctx, "QCLAIM", queue, options)
}

func (c *Client) take(ctx context.Context, command, queue string, options []Option) ([]*Packet, error) {
	r, err := parse(options)
	if err != nil {
		return nil, err
	}
	args := r.take(command, queue)
	if r.fill == 0 { // mostly there is a packet, and a connection to wait on costs one more request
		packets, err := c.packets(doOnce(ctx, c.rdb, args))
		if !r.blocks || err != nil || len(packets) > 0 {
			return packets, err
		}
	}
	w := waiter{c: c, turn: takeTurn, fill: r.fill}
	defer w.close()
	if !r.blocks {
		return c.packets(w.send(ctx, args))
	}
	return c.packets(w.ask(ctx, r.block, args))
}

// take is the request of a take.
func (r *request) take(command, queue string) []any {
	args := append([]any{command, queue}, r.queues...)
	if r.newest {
		args = append(args, "NEWEST")
	}
	return append(args, r.args...)
}

// Claims claims packets one by one, and waits for the next one. It ends when the queue is closed
// and drained, and after an error. When ctx ends, that is the error of ctx. The packets are to be
// acknowledged or returned; their leases are not renewed. With Count it claims several at once.
//
//	for packet, err := range c.Claims(ctx, "mails") {
//		if err != nil {
//			return err
//		}
//		…
//		err = packet.Ack(ctx)
//	}
func (c *Client) Claims(ctx context.Context, queue string, options ...Option) iter.Seq2[*Packet, error] {
	return func(yield func(*Packet, error) bool) {
		for {
			packets, err := c.Claim(ctx, queue, append(options[:len(options):len(options)], Block(0))...)
			switch {
			case errors.Is(err, ErrClosed):
				return
			case err != nil:
				yield(nil, err)
				return
			}
			for i, p := range packets {
				if !yield(p, nil) {
					c.unclaim(ctx, packets[i+1:])
					return
				}
			}
		}
	}
}

var errNotBegun = errors.New("not begun")

// unclaim returns packets that nobody has begun with.
func (c *Client) unclaim(ctx context.Context, packets []*Packet) {
	for _, p := range packets {
		if _, err := p.Nack(context.WithoutCancel(ctx), Uncounted(0, errNotBegun)); err != nil {
			p.log().Warn("a packet was not returned: its lease must end", "error", err)
		}
	}
}
