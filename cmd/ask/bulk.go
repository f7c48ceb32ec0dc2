package ask

import (
	"fmt"
	"io"

	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/netproto/client"
)

// bulk is the flags of a command that changes many packets.
type bulk struct {
	DryRun bool `help:"Only count: change nothing."`
	JSON   bool `help:"Print a JSON object with the number of packets."`
}

// change is what a command does to many packets.
type change struct {
	what, done string // such as claim and ended
	ask        string // what to confirm, behind which the number stands; "" for nothing
	where      string // behind the number
	do         func(options ...client.Option) (int64, error)
}

// run carries a change out, after it was confirmed, and prints how many packets it changed.
func (b *bulk) run(p *terminal.Process, c *terminal.Confirmation, change *change) error {
	if b.DryRun {
		n, err := change.do(client.DryRun())
		if err != nil {
			return err
		}
		return b.tell(p.Stdout, change, "would be ", n)
	}
	if change.ask != "" && !c.Yes {
		n, err := change.do(client.DryRun())
		switch {
		case err != nil:
			return err
		case n == 0: // what comes meanwhile was not asked for
			return b.tell(p.Stdout, change, "", 0)
		}
		if err := c.Confirm(p, fmt.Sprintf("%s %s%s", change.ask, terminal.Plural(n, change.what), change.where)); err != nil {
			return err
		}
	}
	n, err := change.do()
	if err != nil {
		return err
	}
	return b.tell(p.Stdout, change, "", n)
}

func (b *bulk) tell(w io.Writer, change *change, would string, n int64) error {
	if b.JSON {
		var o terminal.JSON
		o.Add("packets", n)
		return o.Print(w)
	}
	_, err := fmt.Fprintf(w, "%s %s%s\n", terminal.Plural(n, change.what), would, change.done)
	return err
}

// noSuchID is the error of a command that changed n packets of a queue, by their ids.
func noSuchID(queue string, n int64) error {
	if n > 0 {
		return nil
	}
	return fmt.Errorf("queue %.80q has %w with such an id", queue, ErrNothing)
}

// inState is the option for a state, none for "".
func inState(state string) []client.Option {
	if state == "" {
		return nil
	}
	return []client.Option{client.InState(client.State(state))}
}

// atMost is the option for a number of packets, none for 0.
func atMost(n int64) []client.Option {
	if n == 0 {
		return nil
	}
	return []client.Option{client.Count(int(n))}
}
