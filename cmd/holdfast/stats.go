package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/holdfast-queue/holdfast/netproto/client"
)

// statsCmd prints the figures of queues.
type statsCmd struct {
	Queues []string      `arg:"" name:"queue" help:"Queues to look at."`
	JSON   bool          `help:"Print a JSON object for each queue, one a line. The age is in milliseconds."`
	Watch  bool          `help:"Print them again and again, with rates a second, until a signal. A server that goes away is waited for."`
	Every  time.Duration `default:"2s" range:"1ms 3650d" placeholder:"TIME" help:"How often --watch prints (default ${default})."`

	workServer
}

func (c *statsCmd) Help() string {
	return `Prints how many packets a queue holds by state and by priority, what it has done since it was made, and the age of its oldest ready packet.

Examples:

    holdfast stats jobs
    holdfast stats jobs mails --json
    holdfast stats jobs --watch --every 1s`
}

// Run asks for all queues, then prints.
func (c *statsCmd) Run(ctx context.Context, p *program) error {
	return c.call(ctx, func(ctx context.Context, server *client.Client) error {
		if c.Watch {
			return c.watch(ctx, server, p)
		}
		all, err := c.ask(ctx, server)
		if err != nil {
			return err
		}
		return c.print(p.stdout, all, nil)
	})
}

// print writes a round of figures. Those of the round before bring rates.
func (c *statsCmd) print(w io.Writer, all []client.Stats, before *round) error {
	if !c.JSON {
		return printStats(w, c.Queues, all, before)
	}
	for i := range all {
		if _, err := w.Write(statsJSON(c.Queues[i], &all[i])); err != nil {
			return err
		}
	}
	return nil
}

func (c *statsCmd) ask(ctx context.Context, server *client.Client) ([]client.Stats, error) {
	all := make([]client.Stats, len(c.Queues))
	for i, name := range c.Queues {
		s, err := server.Stats(ctx, name)
		if c.Watch && errors.Is(err, client.ErrNoQueue) { // a queue that is empty may be gone
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("queue %.80q: %w", name, err)
		}
		all[i] = s
	}
	return all, nil
}

// figure is a number of a queue's.
type figure struct {
	name string
	n    int64
}

func figuresOf(s *client.Stats) []figure {
	return []figure{
		{"ready", s.Ready}, {"hidden", s.Hidden}, {"delayed", s.Delayed}, {"claimed", s.Claimed}, {"dead", s.Dead}, {"done", s.Done},
		{"bytes", s.Bytes}, {"pushed", s.Pushed}, {"popped", s.Popped}, {"acked", s.Acked}, {"nacked", s.Nacked},
		{"expired", s.Expired}, {"died", s.Died}, {"dropped", s.Dropped},
	}
}

// printStats writes a column for each queue, and below the ready packets by priority.
func printStats(w io.Writer, names []string, all []client.Stats, before *round) error {
	t := newTable(w)
	line := func(name string, of func(i int) string) {
		cells := []string{name}
		for i := range all {
			cells = append(cells, of(i))
		}
		t.row(cells...)
	}
	line("QUEUE", func(i int) string { return cell(names[i], shortCell) })
	for f, first := range figuresOf(&all[0]) {
		line(first.name, func(i int) string { return decimal(figuresOf(&all[i])[f].n) + before.rate(i, f, &all[i]) })
	}
	line("age", func(i int) string {
		if all[i].Ready == 0 {
			return ""
		}
		return span(all[i].Age)
	})
	line("producer", func(i int) string { return optional(all[i].Producer, shortCell) })
	line("consumer", func(i int) string { return optional(all[i].Consumer, shortCell) })
	if err := t.Flush(); err != nil {
		return err
	}
	return printBands(w, names, all)
}

// printBands writes how many packets are ready in each range of priorities.
func printBands(w io.Writer, names []string, all []client.Stats) error {
	t := newTable(w)
	rows := 0
	for i := range all {
		for _, b := range all[i].Bands {
			if b.Packets == 0 {
				continue
			}
			if rows++; rows == 1 {
				if _, err := io.WriteString(w, "\n"); err != nil {
					return err
				}
				t.row("QUEUE", "PRIORITY", "READY")
			}
			t.row(cell(names[i], shortCell), bandName(b), decimal(b.Packets))
		}
	}
	return t.Flush()
}

func bandName(b client.Band) string {
	from, to := strconv.FormatUint(uint64(b.From), 10), strconv.FormatUint(uint64(b.To), 10)
	if from == to {
		return from
	}
	return from + "-" + to
}

// statsJSON is the figures of a queue in a line.
func statsJSON(name string, s *client.Stats) []byte {
	var o jsonObject
	o.bytes("queue", []byte(name))
	o.figures(figuresOf(s)...)
	o.add("age", s.Age.Milliseconds())
	o.text("producer", s.Producer)
	o.text("consumer", s.Consumer)
	type band struct {
		From    uint32 `json:"from"`
		To      uint32 `json:"to"`
		Packets int64  `json:"packets"`
	}
	bands := make([]band, len(s.Bands))
	for i, b := range s.Bands {
		bands[i] = band(b)
	}
	o.add("priorities", bands)
	return o.line()
}
