package ask

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/netproto/client"
)

// round is the figures of an earlier moment, by queue.
type round struct {
	of   map[string]client.Stats
	took time.Duration // since then; 0 if there was none
}

// grown is how much figures of a queue have grown together, by their places in words.QueueFigures.
// Those of a new queue began with 0.
func (r *round) grown(q *queueStats, figures ...int) (n int64) {
	before := r.of[q.name]
	for _, i := range figures {
		n += q.Figure(i) - before.Figure(i)
	}
	return max(n, 0)
}

// perSecond is a rate for people, "" if it is not known.
func (r *round) perSecond(q *queueStats, figures ...int) string {
	if r.took <= 0 {
		return ""
	}
	return strconv.FormatFloat(float64(r.grown(q, figures...))/r.took.Seconds(), 'f', 1, 64)
}

// watch prints round after round until ctx ends. A server that is away after the first round may
// come back.
func (c *Stats) watch(ctx context.Context, server *client.Client, p *terminal.Process) error {
	tick := time.NewTicker(c.Every)
	defer tick.Stop()
	var before round
	for asked := time.Now(); ; {
		all, err := c.ask(ctx, server)
		now := time.Now()
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			if before.of != nil {
				before.took = now.Sub(asked)
			}
			out := page{to: p.Stdout}
			if err := cmp.Or(c.print(&out, all, &before), out.write(c.JSON)); err != nil {
				return err
			}
			before, asked = round{of: make(map[string]client.Stats)}, now
			for i := range all {
				before.of[all[i].name] = all[i].Stats
			}
		case before.of == nil:
			return err
		default:
			p.Report(c.Explain(ctx, err))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// page is a round that is written at once.
type page struct {
	bytes.Buffer
	to io.Writer
}

// Onto is where a page goes.
func (o *page) Onto() io.Writer { return o.to }

// write writes the page. On a terminal it covers the one before, line by line, and then what is
// left of that: a screen that is cleared first would flicker. It never scrolls.
func (o *page) write(json bool) error {
	text := o.Bytes()
	_, height := terminal.SizeOf(o.to)
	switch {
	case json:
	case height > 2:
		lines := bytes.SplitAfter(text, []byte("\n")) // the last one is empty
		if hidden := len(lines) - height; hidden > 0 {
			lines = append(lines[:height-2], fmt.Appendf(nil, "… and %d more lines\n", hidden+1))
		}
		text = slices.Concat([]byte("\x1b[H"), bytes.ReplaceAll(bytes.Join(lines, nil), []byte("\n"), []byte("\x1b[K\n")), []byte("\x1b[J"))
	default:
		text = append(text, '\n')
	}
	_, err := o.to.Write(text)
	return err
}
