package main

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-queue/holdfast/netproto/client"
)

// popCmd pops once.
type popCmd struct {
	Queue  string         `arg:"" help:"Queue to pop from."`
	Count  int64          `range:"0 1000" placeholder:"N" help:"Pop up to N packets one by one, without the others of their keys."`
	Oldest bool           `help:"Pop the oldest packet of the best priority (default: the newest)."`
	Block  *time.Duration `placeholder:"TIME" help:"How long to wait for a packet; 0s waits without end (default: do not wait)."`

	selection
	printing
	workServer
}

func (c *popCmd) Help() string {
	return `Prints the payloads, a line each, the selected packet first. The packets are then gone from the server: there is no acknowledgement ("holdfast claim" has one). If the queue has nothing to select, nothing is printed and the exit code is 3, or 1 if it is closed as well.

Examples:

    holdfast pop jobs
    holdfast pop jobs --raw > payload.bin
    holdfast pop jobs --json --count 10 --oldest
    holdfast pop jobs --block 0s --filter 'class<=standard'`
}

// Run pops and prints.
func (c *popCmd) Run(ctx context.Context, p *program) error {
	return c.call(ctx, func(ctx context.Context, server *client.Client) error {
		packets, err := server.Pop(ctx, c.Queue, c.options()...)
		if err != nil {
			return err
		}
		if len(packets) == 0 {
			return fmt.Errorf("queue %.80q has %w to pop", c.Queue, errNothing)
		}
		return c.print(p.stdout, takenByPop(packets))
	})
}

func (c *popCmd) options() []client.Option {
	all := c.selection.options()
	if c.Count > 0 {
		all = append(all, client.Count(int(c.Count)))
	} else {
		all = append(all, client.Group())
	}
	if !c.Oldest {
		all = append(all, client.Newest())
	}
	if c.Block != nil {
		all = append(all, client.Block(*c.Block))
	}
	return all
}
