package ask

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/netproto/client"
)

// Pop pops once.
type Pop struct {
	Queue string         `arg:"" predictor:"queue" help:"Queue to pop from."`
	Count int64          `xor:"count" range:"1 1000" placeholder:"N" help:"Pop up to N packets (default: one)."`
	Block *time.Duration `placeholder:"TIME" help:"How long to wait for a packet; 0s waits without end (default: do not wait)."`

	order
	selection
	printing
	asking
}

// order is the flags of a command that takes packets for good.
type order struct {
	Newest bool `help:"Take the newest packet of the best priority (default: the oldest)."`
	Group  bool `xor:"count" help:"Take the packets that a pop of pinpriq takes: the newest of the best priority, and all others of its key."`
}

func (o *order) options() []client.Option {
	return append(when(o.Newest || o.Group, client.Newest()), when(o.Group, client.Group())...)
}

func (c *Pop) Help() string {
	return `Prints the payloads, a line each, the selected packet first. The best priority comes first, and of that the oldest packet. The packets are then gone from the server: there is no acknowledgement ("holdfast claim" has one). If the queue has nothing to select, nothing is printed and the exit code is 3, or 1 if it is closed as well.

Examples:

    holdfast pop jobs
    holdfast pop jobs --raw > payload.bin
    holdfast pop jobs --json --count 10
    holdfast pop jobs --block 0s --filter 'class<=standard'`
}

func (c *Pop) Ask(ctx context.Context, p *terminal.Process, server *client.Client) error {
	packets, err := server.Pop(ctx, c.Queue, c.options()...)
	if err != nil {
		return err
	}
	if len(packets) == 0 {
		return fmt.Errorf("queue %.80q has %w to pop", c.Queue, ErrNothing)
	}
	return c.print(p.Stdout, packets, c.Group)
}

func (c *Pop) options() []client.Option {
	return slices.Concat(c.selection.options(), c.order.options(), atMost(c.Count), given(c.Block, client.Block))
}
