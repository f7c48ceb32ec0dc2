package ask

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

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
	l := p.List(c.JSON, []string{"QUEUE", "READY", "DELAYED", "CLAIMED", "DEAD", "STATE"}, "QUEUE")
	for i, name := range names {
		s, err := server.Stats(ctx, name)
		switch {
		case errors.Is(err, client.ErrNoQueue): // gone since
			continue
		case err != nil:
			return err
		}
		l.Add(statsJSON(name, &s), terminal.Cell(name), terminal.Decimal(s.Ready), terminal.Decimal(s.Delayed), terminal.Decimal(s.Claimed), terminal.Decimal(s.Dead), stateOf(&s))
		if i%alignedRows == alignedRows-1 {
			if err := l.Flush(); err != nil {
				return err
			}
		}
	}
	return l.Flush()
}

// Consumers shows who claims packets, or waits for them.
type Consumers struct {
	Queue string `arg:"" predictor:"queue" optional:"" help:"Queue to look at (default: all)."`
	JSON  bool   `help:"Print a JSON object for each consumer of a queue, one a line. Times are Unix milliseconds."`

	asking
}

func (c *Consumers) Help() string {
	return `Prints who claims packets, or waits for them: how many each holds, since when, when it last made a call, the ids of the packets (100 at most), and what it waits for. Who holds none and does not wait is shown for ten minutes. If there is no such queue, the exit code is 3.

Examples:

    holdfast consumers
    holdfast consumers jobs --json`
}

func (c *Consumers) Ask(ctx context.Context, p *terminal.Process, server *client.Client) error {
	queues := []string{c.Queue}
	if c.Queue == "" {
		var err error
		if queues, err = server.Queues(ctx, ""); err != nil {
			return err
		}
	}
	heads, now := []string{"QUEUE", "CONSUMER", "CLAIMED", "SINCE", "SEEN", "IDS", "WAITS FOR"}, time.Now()
	l := p.List(c.JSON, heads, "QUEUE", "CONSUMER", "IDS", "WAITS FOR")
	for _, queue := range queues {
		all, err := server.Consumers(ctx, queue)
		if c.Queue == "" && errors.Is(err, client.ErrNoQueue) { // gone since
			continue
		}
		if err != nil {
			return err
		}
		slices.SortFunc(all, func(a, b client.Consumer) int { return strings.Compare(a.Name, b.Name) })
		for _, w := range all {
			l.Add(consumerJSON(queue, &w), terminal.Cell(queue), terminal.Cell(w.Name), terminal.Decimal(w.Claimed), ago(w.Since, now), ago(w.Seen, now),
				terminal.Optional(strings.Join(w.IDs, ",")), terminal.Optional(waitsFor(&w)))
		}
	}
	return l.Flush()
}

// Producers shows who pushes packets.
type Producers struct {
	Queue string `arg:"" predictor:"queue" help:"Queue to look at."`
	JSON  bool   `help:"Print a JSON object for each producer, one a line. Times are Unix milliseconds."`

	asking
}

func (c *Producers) Help() string {
	return `Prints who pushed packets in the last ten minutes: how many, when last, and over which connection, while that is there. If there is no such queue, the exit code is 3.

Example:

    holdfast producers jobs`
}

func (c *Producers) Ask(ctx context.Context, p *terminal.Process, server *client.Client) error {
	all, err := server.Producers(ctx, c.Queue)
	if err != nil {
		return err
	}
	l, now := p.List(c.JSON, []string{"PRODUCER", "PUSHED", "SEEN", "CONNECTION", "USER"}, "PRODUCER", "USER"), time.Now()
	for _, w := range all {
		o, connection := new(terminal.JSON), ""
		o.Bytes("producer", []byte(w.Name))
		o.Add("pushed", w.Pushed)
		o.Moment("seen", w.Seen)
		if w.Connection != 0 {
			connection = terminal.Decimal(w.Connection)
			o.Add("connection", w.Connection)
			o.Text("user", w.User)
		}
		l.Add(o, terminal.Cell(w.Name), terminal.Decimal(w.Pushed), ago(w.Seen, now), connection, terminal.Optional(w.User))
	}
	return l.Flush()
}

// waitsFor says what a consumer waits for.
func waitsFor(w *client.Consumer) string {
	var all []string
	for _, wait := range w.Waiting {
		all = append(all, strings.Join(append([]string{strings.Join(wait.Queues, ",")}, wait.Filter...), " "))
	}
	return strings.Join(slices.Compact(all), "; ")
}

func ago(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	return terminal.Span(now.Sub(t)) + " ago"
}

func consumerJSON(queue string, w *client.Consumer) *terminal.JSON {
	o := new(terminal.JSON)
	o.Bytes("queue", []byte(queue))
	o.Bytes("consumer", []byte(w.Name))
	o.Add("claimed", w.Claimed)
	o.Moment("since", w.Since)
	o.Moment("seen", w.Seen)
	o.Add("ids", append([]string{}, w.IDs...))
	o.Add("waiting", w.Waiting)
	return o
}

// Close closes a queue.
type Close struct {
	Queue string `arg:"" predictor:"queue" help:"Queue to close. It is made if there is none."`

	terminal.Confirmation
	asking
}

func (c *Close) Help() string {
	return `A closed queue takes no more packets, for ever. Its consumers get what is in it, and then learn that it is closed. "holdfast pause QUEUE --in" is for a while.

Examples:

    holdfast close jobs
    holdfast close jobs --yes`
}

// Ask closes the queue. One that was closed before stays so.
func (c *Close) Ask(ctx context.Context, p *terminal.Process, server *client.Client) error {
	err := c.Confirm(p, fmt.Sprintf("close queue %.80q for ever", c.Queue))
	if err == nil {
		_, err = server.CloseQueue(ctx, c.Queue)
	}
	return err
}

// Drop deletes a queue.
type Drop struct {
	Queues []string `arg:"" predictor:"queue" name:"queue" help:"Queues to delete."`

	terminal.Confirmation
	asking
}

func (c *Drop) Help() string {
	return `Deletes queues with their packets in any state, and their settings. "holdfast purge" keeps the settings. If one of them is not there, none is deleted and the exit code is 3.

Examples:

    holdfast drop jobs
    holdfast drop jobs mails --yes`
}

func (c *Drop) Ask(ctx context.Context, p *terminal.Process, server *client.Client) error {
	var all []string
	slices.Sort(c.Queues)
	c.Queues = slices.Compact(c.Queues)
	for _, queue := range c.Queues {
		s, err := server.Stats(ctx, queue)
		if err != nil {
			return fmt.Errorf("queue %.80q: %w", queue, err)
		}
		packets := s.Ready + s.Hidden + s.Delayed + s.Claimed + s.Dead + s.Done + s.Damaged
		all = append(all, fmt.Sprintf("queue %.80q with %s", queue, terminal.Plural(packets, "packet")))
	}
	if err := c.Confirm(p, "delete "+strings.Join(all, ", ")); err != nil {
		return err
	}
	for _, queue := range c.Queues {
		if err := server.Drop(ctx, queue); err != nil {
			return fmt.Errorf("queue %.80q: %w", queue, err)
		}
	}
	return nil
}
