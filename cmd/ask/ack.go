package ask

import (
	"context"

	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/netproto/client"
)

// receipt is the arguments that name a claim.
type receipt struct {
	Queue string `arg:"" predictor:"queue" help:"Queue of the packet."`
	ID    string `arg:"" help:"Id of the packet."`
	Token int64  `arg:"" help:"Token of the claim."`
}

func (r *receipt) packet(server *client.Client) *client.Packet {
	return server.Claimed(r.Queue, r.ID, r.Token)
}

// Ack acknowledges a packet.
type Ack struct {
	receipt
	asking
}

func (c *Ack) Help() string {
	return `The work is done: the packet is gone, or stays as done for the time that its queue's setting retain says. If the claim has ended before, nothing is changed and the exit code is 4.

Example:

    holdfast ack jobs 17 42`
}

func (c *Ack) Ask(ctx context.Context, _ *terminal.Process, server *client.Client) error {
	return c.packet(server).Ack(ctx)
}
