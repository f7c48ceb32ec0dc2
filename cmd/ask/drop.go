package ask

import (
	"context"
	"fmt"

	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/netproto/client"
)

// Drop deletes a queue.
type Drop struct {
	Queue string `arg:"" predictor:"queue" help:"Queue to delete."`

	terminal.Confirmation
	asking
}

func (c *Drop) Help() string {
	return `Deletes a queue with its packets in any state, and its settings. "holdfast purge" keeps the settings.

Examples:

    holdfast drop jobs
    holdfast drop jobs --yes`
}

func (c *Drop) Ask(ctx context.Context, p *terminal.Process, server *client.Client) error {
	s, err := server.Stats(ctx, c.Queue)
	if err != nil {
		return err
	}
	packets := s.Ready + s.Hidden + s.Delayed + s.Claimed + s.Dead + s.Done + s.Damaged
	if err := c.Confirm(p, fmt.Sprintf("delete queue %.80q with %s", c.Queue, terminal.Plural(packets, "packet"))); err != nil {
		return err
	}
	return server.Drop(ctx, c.Queue)
}
