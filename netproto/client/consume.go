package client

import "context"

type consumer struct{}

// Consume claims packets and has the handler work on them, until ctx or Shutdown ends it, or the
// queue is closed and drained: then it returns nil.
func (c *Client) Consume(ctx context.Context, queue string, handler Handler, options ...Option) error {
	return nil
}

// Shutdown ends every Consume of the client.
func (c *Client) Shutdown(ctx context.Context) error { return nil }
