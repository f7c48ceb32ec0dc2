package ask

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/netproto/client"
)

// Harvest ends claims.
type Harvest struct {
	Queue    string        `arg:"" predictor:"queue" help:"Queue of the packets."`
	Older    time.Duration `placeholder:"TIME" help:"Only claims that are at least that old (default: all)."`
	Consumer *string       `placeholder:"NAME" help:"Only claims of this consumer (default: of all)."`

	selection
	bulk
	terminal.Confirmation
	asking
}

func (c *Harvest) Help() string {
	return `Ends claims before their leases do: the packets are ready again, and who holds them can no longer acknowledge them. It works slice by slice, and others are served in between.

Examples:

    holdfast harvest jobs --older 10m
    holdfast harvest jobs --consumer worker-7
    holdfast harvest jobs --dry-run`
}

func (c *Harvest) Ask(ctx context.Context, p *terminal.Process, server *client.Client) error {
	return c.run(p, &c.Confirmation, &change{
		what: "claim", done: "ended", ask: "end", where: fmt.Sprintf(" of queue %.80q, whose consumers may be at work", c.Queue),
		do: func(options ...client.Option) (int64, error) {
			options = append(options, client.Older(c.Older))
			if c.Consumer != nil { // an empty name is refused
				options = append(options, client.As(*c.Consumer))
			}
			return server.Harvest(ctx, c.Queue, slices.Concat(options, c.selection.options())...)
		},
	})
}
