package ask

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-queue/holdfast/cmd/connection"
	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/netproto/client"
)

// Subscribe prints packets as they come.
type Subscribe struct {
	Queues []string `arg:"" predictor:"queue" name:"queue" help:"Queues to take packets from: the first that has one. They need not exist yet."`
	Count  int64    `range:"1" placeholder:"N" help:"End after N packets, or groups of them (default: after a signal)."`

	order
	selection
	printing
	connection.WorkQueue
}

func (c *Subscribe) Help() string {
	return `Takes a packet, prints it, and takes the next: the best priority first, and of that the oldest. A slow reader of the output loses nothing, and a signal ends it well: what the server has handed out is printed before. But if it is killed, or the connection is lost, the packet on its way is gone: there is no acknowledgement ("holdfast work" has one). The exit code is 0 as well when the queues are closed and drained.

Examples:

    holdfast subscribe jobs
    holdfast subscribe urgent jobs --count 1
    holdfast subscribe events --json --filter 'class<=standard'`
}

// Run prints packets until there were Count of them, the queues are drained or ctx ends. Each is a
// normal end.
func (c *Subscribe) Run(ctx context.Context, p *terminal.Process) error {
	server, err := c.Connect(context.WithoutCancel(ctx)) // an answer on its way holds a packet
	if err != nil {
		return err
	}
	defer server.Close()
	options := append(c.order.options(), c.selection.options()...)
	options = append(options, client.Or(c.Queues[1:]...), client.Block(0))
	for n := int64(0); c.Count == 0 || n < c.Count; n++ {
		packets, err := server.Pop(ctx, c.Queues[0], options...)
		switch {
		case errors.Is(err, client.ErrClosed), errors.Is(err, context.Canceled) && !errors.Is(err, client.ErrUnknown):
			return nil
		case errors.Is(err, client.ErrUnknown):
			return fmt.Errorf("a packet on its way may be gone: %w", c.Explain(ctx, err))
		case err != nil:
			return c.Explain(ctx, err)
		}
		if err := c.print(p.Stdout, packets, c.Group); err != nil {
			return err
		}
	}
	return nil
}
