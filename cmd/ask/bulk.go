package ask

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

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
	there      func() error // tells whether there is such a queue
}

// isThere is client.ErrNoQueue if there is no such queue. Who may not look does not learn that.
func isThere(ctx context.Context, server *client.Client, queue string) func() error {
	return func() error {
		if _, err := server.Stats(ctx, queue); errors.Is(err, client.ErrNoQueue) {
			return err
		}
		return nil
	}
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
	if n == 0 {
		if err := change.there(); err != nil {
			return err
		}
	}
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
		what: "packet", done: "deleted", ask: "delete", where: fmt.Sprintf(" of queue %.80q", c.Queue), there: isThere(ctx, server, c.Queue),
		do: func(options ...client.Option) (int64, error) {
			return server.Purge(ctx, c.Queue, slices.Concat(options, inState(c.State), c.selection.options())...)
		},
	})
}

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
		what: "claim", done: "ended", ask: "end", where: fmt.Sprintf(" of queue %.80q, whose consumers may be at work", c.Queue), there: isThere(ctx, server, c.Queue),
		do: func(options ...client.Option) (int64, error) {
			options = append(options, client.Older(c.Older))
			options = append(options, given(c.Consumer, client.As)...) // an empty name is refused
			return server.Harvest(ctx, c.Queue, append(options, c.selection.options()...)...)
		},
	})
}

// Redrive gives dead packets another chance.
type Redrive struct {
	Queue string   `arg:"" predictor:"queue" help:"Queue of the dead packets, or the dead-letter queue that they moved to."`
	IDs   []string `arg:"" optional:"" name:"id" help:"Ids of the packets (default: all dead ones)."`
	To    string   `predictor:"queue" placeholder:"QUEUE" help:"Queue to bring them to (default: the one where they died)."`

	most
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
	if len(c.IDs) > 0 && (c.To != "" || c.Count > 0 || c.All || len(c.Filter) > 0 || c.DryRun) {
		return errors.New("<id>: expected none with --to, --filter, --count, --all or --dry-run")
	}
	return c.selection.Validate()
}

func (c *Redrive) Ask(ctx context.Context, p *terminal.Process, server *client.Client) error {
	return c.run(p, nil, &change{
		what: "dead packet", done: "ready again", there: isThere(ctx, server, c.Queue),
		do: func(options ...client.Option) (int64, error) {
			if len(c.IDs) > 0 {
				return c.packets(ctx, server)
			}
			return server.Redrive(ctx, c.Queue, slices.Concat(options, unlessZero(c.To, client.To), atMost(c.Count), c.selection.options())...)
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

// Move moves packets.
type Move struct {
	Queue string   `arg:"" predictor:"queue" help:"Queue of the packets."`
	To    string   `arg:"" predictor:"queue" help:"Queue to move them to. It is made if there is none."`
	IDs   []string `arg:"" optional:"" name:"id" help:"Ids of the packets (default: all but claimed ones)."`
	State string   `enum:",ready,delayed,dead,done" default:"" placeholder:"STATE" help:"Only packets in this state: ready, delayed, dead or done."`

	most
	selection
	bulk
	terminal.Confirmation
	asking
}

func (c *Move) Help() string {
	return `Moves packets with id, priority, age and state; claimed ones stay. Without ids it works slice by slice, and others are served in between. If none of the ids is there, or only of claimed packets, the exit code is 3.

Examples:

    holdfast move jobs urgent 17 18
    holdfast move jobs later --filter 'class=low' --dry-run
    holdfast move jobs archive --state done --yes`
}

func (c *Move) Validate() error {
	if len(c.IDs) > 0 && (c.State != "" || c.Count > 0 || c.All || len(c.Filter) > 0 || c.DryRun) {
		return errors.New("<id>: expected none with --state, --filter, --count, --all or --dry-run")
	}
	return c.selection.Validate()
}

func (c *Move) Ask(ctx context.Context, p *terminal.Process, server *client.Client) error {
	moves := change{what: "packet", done: "moved", there: isThere(ctx, server, c.Queue)}
	if len(c.IDs) > 0 {
		moves.do = func(...client.Option) (int64, error) {
			n, err := server.Move(ctx, c.Queue, c.To, c.IDs...)
			if err == nil && n == 0 {
				err = fmt.Errorf("queue %.80q has %w with such an id, or it is claimed", c.Queue, ErrNothing)
			}
			return n, err
		}
	} else {
		moves.ask, moves.where = "move", fmt.Sprintf(" of queue %.80q to queue %.80q", c.Queue, c.To)
		moves.do = func(options ...client.Option) (int64, error) {
			return server.MoveAll(ctx, c.Queue, c.To, slices.Concat(options, inState(c.State), atMost(c.Count), c.selection.options())...)
		}
	}
	return c.run(p, &c.Confirmation, &moves)
}

// Cancel has packets not be worked on.
type Cancel struct {
	Queue string   `arg:"" predictor:"queue" help:"Queue of the packets."`
	IDs   []string `arg:"" name:"id" help:"Ids of the packets, 1000 at most."`

	terminal.Confirmation
	asking
}

func (c *Cancel) Help() string {
	return `Has packets not be worked on. Prints each id and what became of it. "gone": it waited, and was deleted. "told": it is claimed; its worker is told when it extends its lease, and the packet is gone when the claim ends, however it does. "none": it is not there, or it has ended, and was left alone. If all are that, the exit code is 3.

Examples:

    holdfast cancel jobs 17 18
    holdfast cancel jobs 17 --yes`
}

func (c *Cancel) Ask(ctx context.Context, p *terminal.Process, server *client.Client) error {
	if err := c.Confirm(p, fmt.Sprintf("cancel %s of queue %.80q", terminal.Plural(len(c.IDs), "packet"), c.Queue)); err != nil {
		return err
	}
	became, err := server.Cancel(ctx, c.Queue, c.IDs...)
	if err != nil {
		return err
	}
	t, n := terminal.NewTable(p.Stdout), int64(0)
	for i, what := range became {
		if what != "" {
			n++
		}
		t.Row(c.IDs[i], cmp.Or(what, "none"))
	}
	if n == 0 {
		return noSuchID(c.Queue, n)
	}
	return t.Flush()
}

// Delete deletes packets by their ids.
type Delete struct {
	Queue string   `arg:"" predictor:"queue" help:"Queue of the packets."`
	IDs   []string `arg:"" name:"id" help:"Ids of the packets, 1000 at most."`
	JSON  bool     `help:"Print a JSON object with the number of packets."`

	terminal.Confirmation
	asking
}

func (c *Delete) Help() string {
	return `Deletes packets in any state, claimed ones too: their consumers can no longer acknowledge them. "holdfast purge" deletes many by their state or tags. If none of them is there, the exit code is 3.

Examples:

    holdfast delete jobs 17 18
    holdfast delete jobs 17 --yes`
}

func (c *Delete) Ask(ctx context.Context, p *terminal.Process, server *client.Client) error {
	n, err := c.delete(ctx, p, server)
	if err = cmp.Or(err, noSuchID(c.Queue, n)); err != nil {
		return err
	}
	return (&bulk{JSON: c.JSON}).tell(p.Stdout, &change{what: "packet", done: "deleted"}, "", n)
}

// delete returns how many it deleted, after it was confirmed.
func (c *Delete) delete(ctx context.Context, p *terminal.Process, server *client.Client) (int64, error) {
	if !c.Yes {
		n, err := c.there(ctx, server)
		if n == 0 || err != nil {
			return 0, err
		}
		if err := c.Confirm(p, fmt.Sprintf("delete %s of queue %.80q", terminal.Plural(n, "packet"), c.Queue)); err != nil {
			return 0, err
		}
	}
	return server.Delete(ctx, c.Queue, c.IDs...)
}

// there counts the packets that would be deleted; those that the user may not look at, too.
func (c *Delete) there(ctx context.Context, server *client.Client) (n int, err error) {
	for _, id := range c.IDs {
		switch _, err := server.Show(ctx, c.Queue, id); {
		case err == nil, errors.Is(err, client.ErrForbidden):
			n++
		case !errors.Is(err, client.ErrNoPacket) && !errors.Is(err, client.ErrNoQueue):
			return 0, err
		}
	}
	return n, nil
}
