package ask

import (
	"cmp"
	"context"
	"errors"

	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/netproto/client"
)

// Queues lists the queues.
type Queues struct {
	Match string `placeholder:"GLOB" help:"Only queues whose name matches: * is anything, ? one byte, [a-z] one of a set (default: all)."`
	JSON  bool   `help:"Print a JSON object for each queue, one a line: its name and the figures that stats prints."`

	asking
}

func (c *Queues) Help() string {
	return `Prints the queues with how many packets they hold. "holdfast stats" says more of one.

Examples:

    holdfast queues
    holdfast queues --match 'jobs.*'
    holdfast queues --json`
}

func (c *Queues) Ask(ctx context.Context, p *terminal.Process, server *client.Client) error {
	names, err := server.Queues(ctx, c.Match)
	if err != nil {
		return err
	}
	o, err := p.Create("-")
	if err != nil {
		return err
	}
	defer o.Discard()
	t := terminal.NewTable(o, "QUEUE")
	if !c.JSON {
		t.Row("QUEUE", "READY", "DELAYED", "CLAIMED", "DEAD", "STATE")
	}
	for i, name := range names {
		s, err := server.Stats(ctx, name)
		switch {
		case errors.Is(err, client.ErrNoQueue): // gone since
			continue
		case err != nil:
			return err
		case c.JSON:
			_, err = o.Write(statsJSON(name, &s))
		default:
			t.Row(terminal.Cell(name, terminal.LongCell), terminal.Decimal(s.Ready), terminal.Decimal(s.Delayed), terminal.Decimal(s.Claimed), terminal.Decimal(s.Dead), stateOf(&s))
			if i%alignedRows == alignedRows-1 {
				err = t.Flush()
			}
		}
		if err != nil {
			return err
		}
	}
	return cmp.Or(t.Flush(), o.Keep())
}
