package ask

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/netproto/client"
)

// Redrive gives dead packets another chance.
type Redrive struct {
	Queue string   `arg:"" predictor:"queue" help:"Queue of the dead packets, or the dead-letter queue that they moved to."`
	IDs   []string `arg:"" optional:"" name:"id" help:"Ids of the packets (default: all dead ones)."`
	To    string   `predictor:"queue" placeholder:"QUEUE" help:"Queue to bring them to (default: the one where they died)."`
	Count int64    `range:"0 1000" placeholder:"N" help:"At most N packets (default: all)."`

	selection
	bulk
	asking
}

func (c *Redrive) Help() string {
	return `Makes dead packets ready again, with no attempts. Those of a dead-letter queue return to the queues where they died. Without ids it works slice by slice, and others are served in between. If no dead packet has one of the ids, the exit code is 3.

Examples:

    holdfast redrive jobs
    holdfast redrive jobs 17 18
    holdfast redrive graves --to jobs --count 100
    holdfast redrive jobs --filter 'class=low' --dry-run`
}

func (c *Redrive) Validate() error {
	if len(c.IDs) > 0 && (c.To != "" || c.Count > 0 || len(c.Filter) > 0 || c.DryRun) {
		return errors.New("<id>: expected none with --to, --filter, --count or --dry-run")
	}
	return c.selection.Validate()
}

func (c *Redrive) Ask(ctx context.Context, p *terminal.Process, server *client.Client) error {
	return c.run(p, nil, &change{
		what: "dead packet", done: "ready again",
		do: func(options ...client.Option) (int64, error) {
			if len(c.IDs) > 0 {
				return c.packets(ctx, server)
			}
			return server.Redrive(ctx, c.Queue, slices.Concat(options, c.options(), c.selection.options())...)
		},
	})
}

// packets makes those ready that have one of the ids, and returns how many these are.
func (c *Redrive) packets(ctx context.Context, server *client.Client) (n int64, err error) {
	for _, id := range c.IDs {
		switch err = server.RedrivePacket(ctx, c.Queue, id); {
		case err == nil:
			n++
		case !errors.Is(err, client.ErrNoPacket):
			if n > 0 {
				err = fmt.Errorf("%w; before that %s became ready", err, terminal.Plural(n, "dead packet"))
			}
			return n, err
		}
	}
	if n > 0 {
		err = nil
	}
	return n, err
}

func (c *Redrive) options() (all []client.Option) {
	if c.To != "" {
		all = append(all, client.To(c.To))
	}
	return append(all, atMost(c.Count)...)
}
