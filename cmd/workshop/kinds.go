package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/workshop/loadgen"
)

// ending is how a server ends before it starts again.
type ending struct {
	name   string
	signal os.Signal
}

var (
	killed  = ending{"killed", os.Kill}
	stopped = ending{"stopped", syscall.SIGTERM}
)

const (
	// slowFill is how many packets are filled in where each pop costs a sync: more than can be
	// popped in the time of a case.
	slowFill = 30_000
	// seedStep keeps the seeds of two rounds apart, because the requests of a round are numbered
	// from its seed.
	seedStep = 1 << 40
)

// fills are what a peer is filled with in a case.
func (c *benchCase) fills(p *peer, rounds int) []filling {
	fills := slices.Clone(c.fill)
	for i := range fills {
		fills[i].count += rounds * fills[i].perRound
		if p.slow && c.loads != nil {
			fills[i].count = min(fills[i].count, slowFill)
		}
	}
	return fills
}

// rates counts packets or operations in a time.
func rates(ctx context.Context, b *bench, c *benchCase) ([]*row, error) {
	rows := newRows(c, c.name, cmp.Or(c.unit, "packets/s"))
	servers := make([]*server, len(c.peers))
	err := b.each(ctx, c, b.rounds, func(round, i int) (err error) {
		p, loads := &c.peers[i], slices.Clone(c.loads)
		if p.measure != nil {
			return p.measure(ctx, b, p, c, rows[i])
		}
		t := queueTarget("", 0)
		fills := c.fills(p, b.rounds)
		if servers[i] == nil || servers[i].cmd == nil { // not started yet, or killed because another peer failed
			if servers[i], err = b.filled(ctx, p, fills...); err != nil {
				return err
			}
		}
		if len(fills) > 0 {
			t.items.Live, t.items.Seed = fills[0].count, uint64(1+round)*seedStep
		}
		for j := range loads {
			if loads[j].ask == "pop" && len(fills) > 0 {
				// The request that asks whether the server serves may have taken one.
				loads[j].count = min(loads[j].count, fills[0].count-1)
			}
		}
		s := servers[i]
		if _, err := s.measure(ctx, rows[i], 1, cmp.Or(c.limit, b.limit), p.groups(t, loads...)); err != nil {
			return err
		}
		if c.keep && round < b.rounds-1 {
			return s.rest(ctx)
		}
		return b.discard(s)
	})
	return rows, err
}

// starts measures starts on the same data, each after the server was killed or stopped. Every start
// pops one packet, which proves that the queue is there.
func starts(ctx context.Context, b *bench, c *benchCase) ([]*row, error) {
	var rows []*row
	for _, end := range c.ends {
		name := c.name
		if len(c.ends) > 1 {
			name += " " + end.name
		}
		rows = append(rows, newRows(c, name, "s")...)
	}
	servers := make([]*server, len(c.peers))
	err := b.each(ctx, c, b.rounds, func(round, i int) (err error) {
		if round == 0 {
			if servers[i], err = b.filled(ctx, &c.peers[i], c.fills(&c.peers[i], b.rounds)...); err != nil {
				return err
			}
		}
		s := servers[i]
		for e, end := range c.ends {
			if err := s.end(ctx, end.signal); err != nil {
				return err
			}
			took, err := s.start(ctx, s.peer.args, queueName, aPacket)
			if err != nil {
				return err
			}
			r := rows[e*len(c.peers)+i]
			r.Samples = append(r.Samples, took.Seconds())
			if err := r.addMemory(s); err != nil {
				return err
			}
		}
		s.kill() // the other peers are measured alone
		if round == b.rounds-1 {
			return b.discard(s)
		}
		return nil
	})
	return rows, err
}

// Before a measurement of memory the server gets time to finish its background work, such as
// rewriting its log, and then to give back the memory that this took.
const (
	memoryQuiet = 2 * time.Second
	memoryLimit = 15 * time.Second
	memoryIdle  = 20 * time.Second
)

// memory measures once, because what a server holds hardly differs between runs.
func memory(ctx context.Context, b *bench, c *benchCase) ([]*row, error) {
	low, high := c.sizes[0], c.sizes[1]
	rows := make([][]*row, 3) // lows, highs, slopes
	err := b.each(ctx, c, 1, func(_, i int) error {
		s, err := b.filled(ctx, &c.peers[i])
		if err != nil {
			return err
		}
		measured, made := [2]*row{}, 0
		for j, size := range c.sizes {
			for _, f := range c.fill {
				f.base, f.count = made, size-made
				if err := s.fill(ctx, f); err != nil {
					return err
				}
			}
			made = size
			r := &row{Case: c.rows + " " + short(size), Server: s.peer.label, Unit: "MB"}
			if err := r.addIdleMemory(ctx, s); err != nil {
				return err
			}
			measured[j] = r
		}
		slope := (measured[1].Samples[0] - measured[0].Samples[0]) * 1e6 / float64(high-low)
		rows[0], rows[1] = append(rows[0], measured[0]), append(rows[1], measured[1])
		rows[2] = append(rows[2], &row{Case: c.rows + " slope", Server: s.peer.label, Unit: "B/packet", Samples: []float64{slope}})
		return b.discard(s)
	})
	return slices.Concat(rows...), err
}

func (r *row) addIdleMemory(ctx context.Context, s *server) error {
	if err := s.settle(ctx, memoryQuiet, memoryLimit); err != nil {
		return err
	}
	select {
	case <-time.After(memoryIdle):
	case <-ctx.Done():
		return ctx.Err()
	}
	err := r.addMemory(s)
	r.Samples = r.RSS
	return err
}

// growth measures the same operations on queues or boards of rising size, one after the other on
// one server. It ends with the first size that fails, because then the server is killed.
func growth(ctx context.Context, b *bench, c *benchCase) ([]*row, error) {
	s, err := b.filled(ctx, &c.peers[0])
	if err != nil {
		return nil, err
	}
	var rows []*row
	for _, size := range c.sizes {
		step, failed := *c, len(b.failed)
		step.name = c.rows + " " + short(size)
		err := b.each(ctx, &step, 1, func(int, int) error {
			r := &row{Case: step.name, Server: s.peer.label, Unit: "µs/op"}
			rows = append(rows, r)
			return s.grow(ctx, b.rounds, size, &step, r)
		})
		if err != nil || len(b.failed) > failed {
			return rows[:len(rows)-1], err
		}
	}
	return rows, b.discard(s)
}

// grow measures one size. Each has a queue of its own, whose priorities rise with time. So every
// pop takes a packet that was pushed about a queue's length before, never a fresh one. A board
// keeps its items and gets more.
func (s *server) grow(ctx context.Context, rounds, size int, c *benchCase, r *row) error {
	l := c.loads[0]
	t := queueTarget(c.name, 0)
	t.Levels, t.Block = loadgen.MaxLevels, uint64(size+rounds*l.count)/loadgen.MaxLevels+1
	t.items.Live, t.items.InOrder = size, true
	if err := s.make(ctx, t, c.fill[0].ask, size); err != nil {
		return err
	}
	operations := 1.0
	if l.ask == "pair" {
		operations = 2
	}
	for round := range rounds {
		t.Base = uint64(size + round*l.count)
		t.items.InOrder, t.items.Seed = false, uint64(1+round)*seedStep
		result, err := s.measure(ctx, r, operations, time.Minute, s.peer.groups(t, l))
		if err == nil && !result.Groups[0].Finished {
			err = fmt.Errorf("only %d of %d requests were done in a minute", result.Packets(), l.count)
		}
		if err != nil {
			return err
		}
		r.Samples[round] = result.Elapsed.Seconds() * 1e6 / (float64(result.Packets()) * operations)
		if err := s.rest(ctx); err != nil {
			return err
		}
	}
	return nil
}

// renewed measures how much steady renewals of claims slow pops down. Their share is the processor
// time that they take alone, on the server and here, divided by that of pops alone.
func renewed(ctx context.Context, b *bench, c *benchCase) ([]*row, error) {
	var rows []*row
	for _, r := range [][2]string{
		{"pops alone", "packets/s"}, {"alone", "requests/s"}, {"pops beside", "packets/s"}, {"pops lost", "%"}, {"share", "%"},
	} {
		rows = append(rows, newRows(c, "renew "+r[0], r[1])...)
	}
	err := b.each(ctx, c, b.rounds, func(int, int) error {
		var results [3]result // pops, renewals, both
		for i, loads := range [][]load{c.loads[:1], c.loads[1:], c.loads} {
			s, err := b.filled(ctx, &c.peers[0], filling{ask: "push", count: c.loads[0].count + renewedSpare(loads)})
			if err != nil {
				return err
			}
			groups, limit := s.peer.groups(queueTarget("", 0), loads...), time.Minute
			if i == 1 {
				limit = b.limit // no count ends the renewals
			}
			if i > 0 {
				groups[i-1].Rate = c.rate
			}
			if results[i], err = s.run(ctx, groups, limit); err == nil {
				err = b.discard(s)
			}
			if err != nil {
				return err
			}
		}
		results[2].Groups = results[2].Groups[:1] // the pops
		for i := range results {
			rows[i].addResult(&results[i], 1)
		}
		rows[3].Samples = append(rows[3].Samples, 100*(1-results[2].Rate()/results[0].Rate()))
		rows[4].Samples = append(rows[4].Samples, 100*busy(&results[1])/busy(&results[0]))
		return nil
	})
	return rows, err
}

// renewedSpare is how many packets there must be beyond those that are popped.
func renewedSpare(loads []load) int {
	spare := 1
	for _, l := range loads {
		spare += l.conns * l.depth
	}
	return spare
}

// busy is the processor time of a second.
func busy(r *result) float64 { return divide(float64(r.busy+r.Client), float64(r.Elapsed)) }
