package ask

import (
	"context"
	"fmt"
	"slices"

	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/netproto/client"
)

// Purge deletes packets.
type Purge struct {
	Queue string `arg:"" predictor:"queue" help:"Queue of the packets."`
	State string `enum:",ready,delayed,claimed,dead,done,damaged" default:"" placeholder:"STATE" help:"Only packets in this state: ready, delayed, claimed, dead, done or damaged (default: all, claimed ones too)."`

	selection
	bulk
	terminal.Confirmation
	asking
}

func (c *Purge) Help() string {
	return `Deletes the packets of a queue and keeps its settings. It works slice by slice, and others are served in between.

Examples:

    holdfast purge jobs --dry-run
    holdfast purge jobs --state dead
    holdfast purge tasks --filter 'class=low' --yes`
}

func (c *Purge) Ask(ctx context.Context, p *terminal.Process, server *client.Client) error {
	return c.run(p, &c.Confirmation, &change{
		what: "packet", done: "deleted", ask: "delete", where: fmt.Sprintf(" of queue %.80q", c.Queue),
		do: func(options ...client.Option) (int64, error) {
			return server.Purge(ctx, c.Queue, slices.Concat(options, inState(c.State), c.selection.options())...)
		},
	})
}
