package client

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// Tail calls fn with each event of a queue, as it happens: one object of JSON, which COMMANDS.md
// describes. The queue need not exist. It ends with the error of fn or of ctx, or with the
// connection: what happens after that would be missing.
func (c *Client) Tail(ctx context.Context, queue string, fn func(event []byte) error) error {
	return c.listen(ctx, "holdfast:tail:"+queue, fn)
}

// Events is Tail of what an operator wants to know, of all queues and of the server.
func (c *Client) Events(ctx context.Context, fn func(event []byte) error) error {
	return c.listen(ctx, "holdfast:events", fn)
}

func (c *Client) listen(ctx context.Context, channel string, fn func(event []byte) error) error {
	listener := c.rdb.Subscribe(ctx) // to nothing as yet
	defer listener.Close()
	defer context.AfterFunc(ctx, func() { _ = listener.Close() })()
	if err := listener.Subscribe(ctx, channel); err != nil {
		return refusal(err)
	}
	for begun := false; ; begun = true {
		got, err := listener.Receive(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case isReply(err):
			return refusal(err)
		case err != nil && begun: // not wrapped: no request was without an answer
			return fmt.Errorf("the server has ended the connection: what happens after that is not told (%v)", err)
		case err != nil:
			return err
		}
		if message, ok := got.(*redis.Message); ok {
			if err := fn([]byte(message.Payload)); err != nil {
				return err
			}
		}
	}
}
