package main

import (
	"cmp"
	"context"
	"math"

	"github.com/holdfast-queue/holdfast/netproto/client"
)

// prioCmd changes the priority of a packet.
type prioCmd struct {
	Queue    string `arg:"" help:"Queue of the packet."`
	ID       string `arg:"" help:"Id of the packet."`
	Priority int64  `arg:"" help:"New priority: 1 is best. 0 is for a packet with a key: it leaves only with another one of its key."`

	workServer
}

// Help is shown below the usage line.
func (c *prioCmd) Help() string {
	return `Changes the priority of a packet in any state. Among those of its new priority it is the newest. If the queue does not have it, the exit code is 3.

Example:

    holdfast prio jobs 17 1`
}

// Validate is called with the parsed flags.
func (c *prioCmd) Validate() error {
	return cmp.Or(checkRange("<priority>", c.Priority, 0, math.MaxUint32), c.workServer.Validate())
}

// Run changes the priority.
func (c *prioCmd) Run(ctx context.Context) error {
	return c.call(ctx, func(ctx context.Context, server *client.Client) error {
		return server.SetPriority(ctx, c.Queue, c.ID, uint32(c.Priority))
	})
}
