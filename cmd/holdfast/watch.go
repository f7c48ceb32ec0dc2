package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/holdfast-queue/holdfast/netproto/client"
)

// round is the figures of an earlier moment.
type round struct {
	all  []client.Stats
	took time.Duration // since then
}

// firstCounter is the first figure that only grows: pushed.
const firstCounter = 7

// rate is how fast a counter of a queue grows, "" if that is not known.
func (r *round) rate(queue, figure int, now *client.Stats) string {
	if r == nil || figure < firstCounter || r.took <= 0 {
		return ""
	}
	grown := figuresOf(now)[figure].n - figuresOf(&r.all[queue])[figure].n
	return fmt.Sprintf(" (%.1f/s)", float64(max(grown, 0))/r.took.Seconds())
}

// watch prints round after round until ctx ends. A server that is away after the first round may
// come back.
func (c *statsCmd) watch(ctx context.Context, server *client.Client, p *program) error {
	tick := time.NewTicker(c.Every)
	defer tick.Stop()
	inPlace := isTerminal(p)
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
			if err := c.printPage(p, all, before, inPlace); err != nil {
				return err
			}
			before, asked = &round{all: all}, now
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

// printPage writes a round at once.
func (c *statsCmd) printPage(p *program, all []client.Stats, before *round, inPlace bool) error {
	var page bytes.Buffer
	if err := c.print(&page, all, before); err != nil {
		return err
	}
	_, err := p.stdout.Write(c.page(page.Bytes(), inPlace))
	return err
}

func isTerminal(p *program) bool {
	s, ok := p.stdout.(*sink)
	if !ok {
		return false
	}
	file, ok := s.w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// page is a round as it is written. In a terminal it covers the one before, line by line, and then
// what is left of that: a screen that is cleared first would flicker.
func (c *statsCmd) page(text []byte, inPlace bool) []byte {
	switch {
	case inPlace && !c.JSON:
		text = bytes.ReplaceAll(text, []byte("\n"), []byte("\x1b[K\n"))
		return append(append([]byte("\x1b[H"), text...), "\x1b[J"...)
	case c.JSON:
		return text
	}
	return append(text, '\n')
}
