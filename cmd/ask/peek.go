package ask

import (
	"context"
	"fmt"

	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/netproto/client"
)

// Peek shows what comes next.
type Peek struct {
	Queue string `arg:"" predictor:"queue" help:"Queue to look at."`
	Count int64  `default:"10" range:"1 1000" placeholder:"N" help:"At most N packets (default ${default})."`

	packetsForm
	asking
}

func (c *Peek) Help() string {
	return `Prints the packets that would be taken next, in order, and takes none. If there is none, nothing is printed and the exit code is 3.

Examples:

    holdfast peek jobs
    holdfast peek jobs --count 1 --json`
}

func (c *Peek) Ask(ctx context.Context, p *terminal.Process, server *client.Client) error {
	packets, err := server.Peek(ctx, c.Queue, int(c.Count))
	switch {
	case err != nil:
		return err
	case len(packets) == 0:
		return fmt.Errorf("queue %.80q has %w to take", c.Queue, ErrNothing)
	}
	out := c.printer(p.Stdout)
	for _, packet := range packets {
		if err := out.print(packet); err != nil {
			return err
		}
	}
	return out.end()
}
