package ask

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/netproto/client"
)

// Move moves packets.
type Move struct {
	Queue string   `arg:"" predictor:"queue" help:"Queue of the packets."`
	To    string   `arg:"" predictor:"queue" help:"Queue to move them to. It is made if there is none."`
	IDs   []string `arg:"" optional:"" name:"id" help:"Ids of the packets (default: all but claimed ones)."`
	State string   `enum:",ready,delayed,dead,done" default:"" placeholder:"STATE" help:"Only packets in this state: ready, delayed, dead or done."`
	Count int64    `range:"0 1000" placeholder:"N" help:"At most N packets."`

	selection
	bulk
	terminal.Confirmation
	asking
}

func (c *Move) Help() string {
	return `Moves packets with id, priority, age and state; claimed ones stay. Without ids it works slice by slice, and others are served in between. If none of the ids is there, the exit code is 3.

Examples:

    holdfast move jobs urgent 17 18
    holdfast move jobs later --filter 'class=low' --dry-run
    holdfast move jobs archive --state done --yes`
}

func (c *Move) Validate() error {
	if len(c.IDs) > 0 && (c.State != "" || c.Count > 0 || len(c.Filter) > 0 || c.DryRun) {
		return errors.New("<id>: expected none with --state, --filter, --count or --dry-run")
	}
	return c.selection.Validate()
}

func (c *Move) Ask(ctx context.Context, p *terminal.Process, server *client.Client) error {
	moves := change{what: "packet", done: "moved"}
	if len(c.IDs) > 0 {
		moves.do = func(...client.Option) (int64, error) {
			n, err := server.Move(ctx, c.Queue, c.To, c.IDs...)
			return n, cmp.Or(err, noSuchID(c.Queue, n))
		}
	} else {
		moves.ask, moves.where = "move", fmt.Sprintf(" of queue %.80q to queue %.80q", c.Queue, c.To)
		moves.do = func(options ...client.Option) (int64, error) {
			return server.MoveAll(ctx, c.Queue, c.To, slices.Concat(options, inState(c.State), atMost(c.Count), c.selection.options())...)
		}
	}
	return c.run(p, &c.Confirmation, &moves)
}
