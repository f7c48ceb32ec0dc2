package ask

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/netproto/client"
	"github.com/holdfast-queue/holdfast/netproto/words"
)

// Stats prints the figures of queues.
type Stats struct {
	Queues []string      `arg:"" predictor:"queue" optional:"" name:"queue" help:"Queues to look at. Without one all are shown in a table, with --watch the busiest first."`
	Match  string        `placeholder:"GLOB" help:"Only queues whose name matches, in place of names (default: all)."`
	JSON   bool          `help:"Print a JSON object for each queue, one a line. The age is in milliseconds."`
	Watch  bool          `help:"Print them again and again, with rates a second, until a signal. A server that goes away is waited for."`
	Every  time.Duration `default:"2s" range:"1ms 3650d" placeholder:"TIME" help:"How often --watch prints (default ${default})."`

	asking
}

func (c *Stats) Help() string {
	return `Prints how many packets a queue holds by state and by priority, what it has done since it was made, and the age of its oldest ready packet. The table of all queues says with --watch how many packets a second came in, went out (popped or acknowledged) and were returned, on a terminal for as many queues as it has lines.

Examples:

    holdfast stats
    holdfast stats jobs
    holdfast stats jobs mails --json
    holdfast stats jobs --watch --every 1s
    holdfast stats --match 'jobs.*'
    holdfast stats --watch`
}

func (c *Stats) Validate() error {
	if c.Match != "" && len(c.Queues) > 0 {
		return errors.New("--match: expected no queue with it")
	}
	return nil
}

func (c *Stats) Ask(ctx context.Context, p *terminal.Process, server *client.Client) error {
	if c.Watch {
		return c.watch(ctx, server, p)
	}
	all, err := c.ask(ctx, server)
	if err != nil {
		return err
	}
	return c.print(p.Stdout, all, &round{})
}

// queueStats is the figures of a queue.
type queueStats struct {
	name string
	client.Stats
}

// print writes a round of figures. Those of the round before bring rates.
func (c *Stats) print(w io.Writer, all []queueStats, before *round) error {
	switch {
	case c.JSON:
		for i := range all {
			if err := statsJSON(all[i].name, &all[i].Stats).Print(w); err != nil {
				return err
			}
		}
		return nil
	case len(c.Queues) == 0:
		return printBusiest(w, all, before, c.Watch)
	}
	return cmp.Or(printStats(w, all, before), printBands(w, all))
}

// ask returns the figures of the queues, or of all there are. One that is watched may be gone
// meanwhile, or not be there yet: it has no packet then.
func (c *Stats) ask(ctx context.Context, server *client.Client) (all []queueStats, err error) {
	names := c.Queues
	if len(names) == 0 {
		if names, err = server.Queues(ctx, c.Match); err != nil {
			return nil, err
		}
	}
	for _, name := range names {
		s, err := server.Stats(ctx, name)
		gone := errors.Is(err, client.ErrNoQueue)
		switch {
		case gone && len(c.Queues) == 0:
			continue
		case err != nil && !(gone && c.Watch):
			return nil, fmt.Errorf("queue %.80q: %w", name, err)
		}
		all = append(all, queueStats{name, s})
	}
	return all, nil
}

// printStats writes a column for each queue, side by side if a terminal is wide enough.
func printStats(w io.Writer, all []queueStats, before *round) error {
	t := statsTable(w, all, before)
	if len(all) > 1 && !t.Fits() {
		half := len(all) / 2
		return cmp.Or(printStats(w, all[:half], before), printStats(w, all[half:], before))
	}
	return t.Flush()
}

func statsTable(w io.Writer, all []queueStats, before *round) *terminal.Table {
	var names []string // cut where they are long
	for i := range all {
		names = append(names, terminal.Cell(all[i].name))
	}
	t := terminal.NewTable(w, names...)
	t.Row(append([]string{"QUEUE"}, names...)...)
	line := func(name string, of func(q *queueStats) string) {
		cells := []string{name}
		for i := range all {
			cells = append(cells, of(&all[i]))
		}
		t.Row(cells...)
	}
	for i, f := range words.QueueFigures {
		line(f.Name, func(q *queueStats) string {
			text := terminal.Decimal(q.Figure(i))
			if f.Kind == words.Flag {
				text = yesOrNo[q.Figure(i)]
			}
			if rate := before.perSecond(q, i); rate != "" && f.Kind == words.Total {
				text += " (" + rate + "/s)"
			}
			return text
		})
	}
	line("age", ageOfQueue)
	line("producer", func(q *queueStats) string { return terminal.Optional(q.Producer) })
	line("consumer", func(q *queueStats) string { return terminal.Optional(q.Consumer) })
	return t
}

var yesOrNo = [...]string{"no", "yes"}

// stateOf names the flags of a queue that are so.
func stateOf(s *client.Stats) string {
	var all []string
	for i, f := range words.QueueFigures {
		if f.Kind == words.Flag && s.Figure(i) == 1 {
			all = append(all, f.Name)
		}
	}
	return strings.Join(all, ", ")
}

func ageOfQueue(q *queueStats) string {
	if q.Ready == 0 {
		return ""
	}
	return terminal.Span(q.Age)
}

// printBusiest writes a row for each queue, the busiest first, with rates or without.
func printBusiest(w io.Writer, all []queueStats, before *round, rates bool) error {
	slices.SortFunc(all, func(a, b queueStats) int {
		busy := func(q *queueStats) int64 {
			return before.grown(q, words.Pushed, words.Popped, words.Acked, words.Nacked)
		}
		return cmp.Or(cmp.Compare(busy(&b), busy(&a)), cmp.Compare(a.name, b.name))
	})
	t := terminal.NewTable(w, "QUEUE")
	if rates {
		t.Spare("BACK/S", "DELAYED", "AGE", "CLAIMED")
	}
	row := func(figures []string, perSecond ...string) {
		if rates {
			figures = append(figures, perSecond...)
		}
		t.Row(figures...)
	}
	row([]string{"QUEUE", "READY", "DELAYED", "CLAIMED", "DEAD", "AGE", "STATE"}, "IN/S", "OUT/S", "BACK/S")
	for i := range all {
		q := &all[i]
		row([]string{terminal.Cell(q.name), terminal.Decimal(q.Ready), terminal.Decimal(q.Delayed), terminal.Decimal(q.Claimed), terminal.Decimal(q.Dead), ageOfQueue(q), stateOf(&q.Stats)},
			before.perSecond(q, words.Pushed), before.perSecond(q, words.Popped, words.Acked), before.perSecond(q, words.Nacked))
	}
	return t.Flush()
}

// printBands writes how many packets are ready in each range of priorities.
func printBands(w io.Writer, all []queueStats) error {
	t := terminal.NewTable(w, "QUEUE")
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
				t.Row("QUEUE", "PRIORITY", "READY")
			}
			t.Row(terminal.Cell(all[i].name), bandName(b), terminal.Decimal(b.Packets))
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

// statsJSON is the figures of a queue as JSON.
func statsJSON(name string, s *client.Stats) *terminal.JSON {
	o := new(terminal.JSON)
	o.Bytes("queue", []byte(name))
	for i, f := range words.QueueFigures {
		if name := strings.ReplaceAll(f.Name, "-", "_"); f.Kind == words.Flag {
			o.Add(name, s.Figure(i) == 1)
		} else {
			o.Add(name, s.Figure(i))
		}
	}
	o.Add("age", s.Age.Milliseconds())
	o.Text("producer", s.Producer)
	o.Text("consumer", s.Consumer)
	type band struct {
		From    uint32 `json:"from"`
		To      uint32 `json:"to"`
		Packets int64  `json:"packets"`
	}
	bands := make([]band, len(s.Bands))
	for i, b := range s.Bands {
		bands[i] = band(b)
	}
	o.Add("priorities", bands)
	return o
}
