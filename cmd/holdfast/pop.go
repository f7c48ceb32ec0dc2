package main

import (
	"context"
	"fmt"

	"github.com/holdfast-queue/holdfast/netproto/pinpriq"
)

// popCmd pops once.
type popCmd struct {
	Queue string `arg:"" help:"Queue to pop from."`

	printing
	server
}

// Help is shown below the usage line.
func (c *popCmd) Help() string {
	return `Prints the payloads, a line each, the selected packet first. The packets are then gone from the server: there is no acknowledgement. If the queue has nothing to select, nothing is printed and the exit code is 3.

Examples:

    holdfast pop jobs
    holdfast pop jobs --raw > payload.bin
    holdfast pop jobs --json`
}

// Run pops and prints.
func (c *popCmd) Run(ctx context.Context, p *program) error {
	var packets []pinpriq.Packet
	err := c.call(ctx, func(ctx context.Context, client *pinpriq.Client) (err error) {
		packets, err = client.Pop(ctx, c.Queue)
		return err
	})
	if err != nil {
		return err
	}
	if len(packets) == 0 {
		return fmt.Errorf("queue %q has %w", c.Queue, errNothing)
	}
	return c.print(p.stdout, packets)
}
