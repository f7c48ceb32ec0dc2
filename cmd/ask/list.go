package ask

import (
	"cmp"
	"context"
	"slices"

	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/netproto/client"
)

// printer takes the packets that a command lists.
type printer interface {
	print(p *client.Packet) error // perhaps it prints nothing before end
	end() error
}

// List lists the packets of a queue.
type List struct {
	Queue string `arg:"" predictor:"queue" help:"Queue to look at."`
	State string `enum:",ready,delayed,claimed,dead,done,damaged" default:"" placeholder:"STATE" help:"Only packets in this state: ready, delayed, claimed, dead, done or damaged (default: all)."`
	Count int64  `placeholder:"N" help:"At most N packets; 0 is no limit (default 0)."`

	ByError bool `help:"Count the packets by their last error, instead of listing them."`

	selection
	packetsForm
	asking
}

func (c *List) Help() string {
	return `Prints the packets of a queue, state by state, page by page: what changes meanwhile may be seen or not. If there is no such queue, the exit code is 3.

Examples:

    holdfast list jobs
    holdfast list jobs --state dead --count 20
    holdfast list jobs --state dead --by-error
    holdfast list tasks --filter 'class=low' --json | jq .id`
}

func (c *List) Ask(ctx context.Context, p *terminal.Process, server *client.Client) error {
	o, err := p.Create("-")
	if err != nil {
		return err
	}
	defer o.Discard()
	var out printer = c.printer(o)
	if c.ByError {
		out = &errorCounts{w: o, json: c.JSON, all: make(map[string]*errorCount)}
	}
	options := slices.Concat(inState(c.State), c.selection.options())
	n := int64(0)
	for packet, err := range server.List(ctx, c.Queue, options...) {
		if err != nil {
			return err
		}
		if err := out.print(packet); err != nil {
			return err
		}
		if n++; n == c.Count {
			break
		}
	}
	if n == 0 { // a queue that does not exist has no packets either
		if _, err := server.Stats(ctx, c.Queue); err != nil {
			return err
		}
	}
	return cmp.Or(out.end(), o.Keep())
}
