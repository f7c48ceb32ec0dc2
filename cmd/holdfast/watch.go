package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/holdfast-queue/holdfast/netproto/client"
)

// round is the figures of an earlier moment, by queue.
type round struct {
	of   map[string]client.Stats
	took time.Duration // since then
}

// firstCounter is the first figure that only grows: pushed.
const firstCounter = 7

// rate is how much counters of a queue have grown a second, 0 if that is not known. Those of a new
// queue began with 0.
func (r *round) rate(q *queueStats, counters ...string) float64 {
	if r == nil {
		return 0
	}
	before, grown := r.of[q.name], int64(0)
	for i, f := range figuresOf(&q.Stats) {
		if slices.Contains(counters, f.name) {
			grown += f.n - figuresOf(&before)[i].n
		}
	}
	return float64(max(grown, 0)) / max(r.took, 1).Seconds()
}

// perSecond is a rate for people.
func (r *round) perSecond(q *queueStats, counters ...string) string {
	if r == nil {
		return ""
	}
	return strconv.FormatFloat(r.rate(q, counters...), 'f', 1, 64)
}

// watch prints round after round until ctx ends. A server that is away after the first round may
// come back.
func (c *statsCmd) watch(ctx context.Context, server *client.Client, p *program) error {
	tick := time.NewTicker(c.Every)
	defer tick.Stop()
	var before *round
	for asked := time.Now(); ; {
		all, err := c.ask(ctx, server)
		now := time.Now()
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			if before != nil {
				before.took = now.Sub(asked)
			}
			if err := c.printRound(p.stdout, all, before); err != nil {
				return err
			}
			before, asked = &round{of: make(map[string]client.Stats)}, now
			for i := range all {
				before.of[all[i].name] = all[i].Stats
			}
		case before == nil:
			return err
		default:
			p.report(c.explain(ctx, err), exitOK)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func (c *statsCmd) printRound(w io.Writer, all []queueStats, before *round) error {
	if c.JSON {
		return c.print(w, all, before)
	}
	out := page{to: w}
	return cmp.Or(c.print(&out, all, before), out.write())
}

// page is a round that is written at once.
type page struct {
	bytes.Buffer
	to io.Writer
}

// write writes the page. On a terminal it covers the one before, line by line, and then what is
// left of that: a screen that is cleared first would flicker. It never scrolls.
func (o *page) write() error {
	text := append(o.Bytes(), '\n')
	if _, height := sizeOf(o.to); height > 2 {
		lines := bytes.SplitAfter(o.Bytes(), []byte("\n")) // the last one is empty
		if hidden := len(lines) - height; hidden > 0 {
			lines = append(lines[:height-2], fmt.Appendf(nil, "… and %d more lines\n", hidden+1))
		}
		text = slices.Concat([]byte("\x1b[H"), bytes.ReplaceAll(bytes.Join(lines, nil), []byte("\n"), []byte("\x1b[K\n")), []byte("\x1b[J"))
	}
	_, err := o.to.Write(text)
	return err
}
