package ask

import (
	"context"

	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/netproto/client"
)

// Prio changes the priority of a packet.
type Prio struct {
	Queue    string `arg:"" predictor:"queue" help:"Queue of the packet."`
	ID       string `arg:"" help:"Id of the packet."`
	Priority int64  `arg:"" range:"0 4294967295" help:"New priority: 1 is best. 0 is for a packet with a key: it leaves only with another one of its key."`

	asking
}

func (c *Prio) Help() string {
	return `Changes the priority of a packet in any state. It keeps its id and its age. If the queue does not have it, the exit code is 3.

Example:

    holdfast prio jobs 17 1`
}

func (c *Prio) Ask(ctx context.Context, _ *terminal.Process, server *client.Client) error {
	return server.SetPriority(ctx, c.Queue, c.ID, uint32(c.Priority))
}
