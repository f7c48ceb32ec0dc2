package ask

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/netproto/client"
	"github.com/holdfast-queue/holdfast/netproto/words"
)

// ErrTrouble means that something needs somebody. What that is was printed.
var ErrTrouble = errors.New("something needs somebody")

// diskTroubles are sentences for the levels of the disk.
var diskTroubles = map[string]string{
	"no-push": "The disk is nearly full: the server refuses pushes, and deliveries go on",
	"stop":    "The disk is full: the server refuses everything",
}

// memoryTroubles are those for the level of the memory.
var memoryTroubles = map[string]string{
	"no-push": "The memory is nearly full: the server refuses pushes, and deliveries go on",
	"stop":    "The memory is full: the server refuses pushes and claims, and pops and acknowledgements go on",
}

// blind is what a user reads who may look at no queue. That needs nobody.
const blind = "Your user may look at no queue, so this says nothing of them"

// databases is how many there are.
const databases = 16

// troubles are sentences that say what needs somebody, worst first, as the server's page does. info
// is what the server has told of itself. Queues that the user may not look at are left out.
func (c *asking) troubles(ctx context.Context, info map[string]string) (all []string, err error) {
	for _, text := range []string{diskTroubles[info["disk_level"]], memoryTroubles[info["memory_level"]]} {
		if text != "" {
			all = append(all, text)
		}
	}
	usec, _ := strconv.ParseInt(info["server_time_usec"], 10, 64)
	now, found := time.UnixMicro(usec), make([][]queueStats, len(words.Troubles))
	look := func(ctx context.Context, server *client.Client) error {
		queues, err := (&Stats{}).ask(ctx, server)
		for i := range words.Troubles {
			for _, q := range queues {
				if troubled(&words.Troubles[i], &q.Stats, now) {
					if q.name = terminal.Cell(q.name); c.DB > 0 {
						q.name += " of database " + strconv.Itoa(c.DB)
					}
					found[i] = append(found[i], q)
				}
			}
		}
		return err
	}
	told := false // which databases there are: users who may not look at all queues are not told
	for i := range databases {
		told = told || info["db"+strconv.Itoa(i)] != ""
	}
	for c.DB = 0; c.DB < databases; c.DB++ {
		if told && info["db"+strconv.Itoa(c.DB)] == "" {
			continue
		}
		switch err := c.Call(ctx, look); {
		case errors.Is(err, client.ErrForbidden):
			return append(all, blind), nil
		case err != nil:
			return nil, err
		}
	}
	for i, queues := range found {
		if len(queues) > 0 {
			all = append(all, sentence(&words.Troubles[i], queues))
		}
	}
	return all, nil
}

// troubled says that a queue has a trouble.
func troubled(t *words.Trouble, s *client.Stats, now time.Time) bool {
	if !slices.ContainsFunc(t.Any, func(name string) bool { return figureOf(s, name) != 0 }) || t.Ready && s.Ready == 0 {
		return false
	}
	return t.Idle == 0 || s.Claimed == 0 && s.DiedElsewhere == 0 && min(s.Age, now.Sub(s.Taken)).Milliseconds() > t.Idle
}

// named is how many queues one sentence names.
const named = 5

// sentence says a trouble of some queues.
func sentence(t *words.Trouble, queues []queueStats) string {
	text, total := t.Many, int64(0)
	if t.Counts != "" {
		for i := range queues {
			total += figureOf(&queues[i].Stats, t.Counts)
		}
		if total == 1 {
			text = t.One
		}
		text = terminal.Plural(total, "packet") + " " + text
	}
	by := func(q *queueStats) int64 {
		if t.Note == "" {
			return int64(q.Age)
		}
		return figureOf(&q.Stats, t.Note)
	}
	slices.SortStableFunc(queues, func(a, b queueStats) int { return cmp.Compare(by(&b), by(&a)) })
	var names []string
	for i := range queues[:min(named, len(queues))] {
		q, note := &queues[i], terminal.Span(queues[i].Age)
		if t.Note != "" {
			note = terminal.Decimal(by(q))
		}
		if t.Note != t.Counts {
			note += " " + t.Note
		}
		names = append(names, fmt.Sprintf("%s (%s)", q.name, note))
	}
	if more := len(queues) - named; more > 0 {
		names[named-1] += " and " + terminal.Decimal(int64(more)) + " more"
	}
	return text + ": " + strings.Join(names, ", ")
}

// figureOf is the figure of a queue with a name.
func figureOf(s *client.Stats, name string) int64 {
	return s.Figure(slices.IndexFunc(words.QueueFigures[:], func(f words.Field) bool { return f.Name == name }))
}
