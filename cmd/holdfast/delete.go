package main

import (
	"context"
	"fmt"

	"github.com/holdfast-queue/holdfast/netproto/client"
)

// deleteCmd deletes packets by their ids.
type deleteCmd struct {
	Queue string   `arg:"" help:"Queue of the packets."`
	IDs   []string `arg:"" name:"id" help:"Ids of the packets, 1000 at most."`
	JSON  bool     `help:"Print a JSON object with the number of packets."`

	confirmation
	workServer
}

func (c *deleteCmd) Help() string {
	return `Deletes packets in any state, claimed ones too: their consumers can no longer acknowledge them. "holdfast purge" deletes many by their state or tags. If none of them is there, the exit code is 3.

Examples:

    holdfast delete jobs 17 18
    holdfast delete jobs 17 --yes`
}

func (c *deleteCmd) Run(ctx context.Context, p *program) error {
	if err := c.confirm(p, fmt.Sprintf("delete %s of queue %.80q", plural(len(c.IDs), "packet"), c.Queue)); err != nil {
		return err
	}
	return c.call(ctx, func(ctx context.Context, server *client.Client) error {
		n, err := server.Delete(ctx, c.Queue, c.IDs...)
		switch {
		case err != nil:
			return err
		case n == 0:
			return fmt.Errorf("queue %.80q has %w with such an id", c.Queue, errNothing)
		}
		return (&bulk{JSON: c.JSON}).tell(p.stdout, &change{what: "packet", done: "deleted"}, "", n)
	})
}
