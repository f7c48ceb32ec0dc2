package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/workshop/loadgen"
)

// The cases of large queues: how long a start takes, how much memory is held, and whether
// operations become slower.

// startup measures starts on the same data, each after a kill -9. Every start pops one packet,
// which proves that the queue is there.
type startup struct{ packets int }

func (u startup) run(ctx context.Context, b *bench, c *benchCase) ([]*row, error) {
	rows := newRows(c, "s")
	servers := make([]*server, len(c.contenders))
	err := b.each(ctx, c, b.rounds, func(round, i int) error {
		p := c.contenders[i].peer
		if round == 0 {
			s, err := b.filled(ctx, p, u.packets)
			if err != nil {
				return err
			}
			s.kill()
			servers[i] = s
		}
		s := servers[i]
		took, err := s.start(ctx, p.args, func() loadgen.Protocol { return p.pop(queueName) }, aPacket)
		if err != nil {
			return err
		}
		rows[i].Samples = append(rows[i].Samples, took.Seconds())
		if err := rows[i].addMemory(s); err != nil {
			return err
		}
		s.kill()
		if round == b.rounds-1 {
			return b.discard(s)
		}
		return nil
	})
	return rows, err
}

// memory measures once, because what a server holds hardly differs between runs.
type memory struct {
	low, high int
	claimed   bool // whether the packets are claimed then
}

// Before a measurement the server gets time to finish its background work, such as rewriting its
// log, and then to give back the memory that this took.
const (
	memoryQuiet = 2 * time.Second
	memoryLimit = 15 * time.Second
	memoryIdle  = 20 * time.Second
)

func (m memory) run(ctx context.Context, b *bench, c *benchCase) ([]*row, error) {
	var lows, highs, slopes []*row
	err := b.each(ctx, c, 1, func(_, i int) error {
		contender := c.contenders[i]
		s, err := b.filled(ctx, contender.peer, m.low)
		if err == nil {
			err = m.hold(ctx, s, m.low)
		}
		if err != nil {
			return err
		}
		low, err := m.measure(ctx, s, contender, m.low)
		if err != nil {
			return err
		}
		more := loadgen.Packets{Queue: queueName, Size: payloadSize, Base: uint64(m.low)}
		if err := s.fill(ctx, m.high-m.low, func() loadgen.Protocol { return s.peer.push(more) }); err != nil {
			return err
		}
		if err := m.hold(ctx, s, m.high-m.low); err != nil {
			return err
		}
		high, err := m.measure(ctx, s, contender, m.high)
		if err != nil {
			return err
		}
		slope := (high.Samples[0] - low.Samples[0]) * 1e6 / float64(m.high-m.low)
		lows, highs = append(lows, low), append(highs, high)
		slopes = append(slopes, &row{Case: m.caseName("slope"), Server: contender.label, Unit: "B/packet", Samples: []float64{slope}})
		return b.discard(s)
	})
	return slices.Concat(lows, highs, slopes), err
}

func (m memory) hold(ctx context.Context, s *server, packets int) error {
	if !m.claimed {
		return nil
	}
	return s.fill(ctx, packets, hold)
}

func (m memory) measure(ctx context.Context, s *server, c contender, packets int) (*row, error) {
	if err := s.settle(ctx, memoryQuiet, memoryLimit); err != nil {
		return nil, err
	}
	select {
	case <-time.After(memoryIdle):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	r := &row{Case: m.caseName(short(packets)), Server: c.label, Unit: "MB"}
	if err := r.addMemory(s); err != nil {
		return nil, err
	}
	r.Samples = []float64{r.RSS[0]}
	return r, nil
}

func (m memory) caseName(end string) string {
	if m.claimed {
		return "claimed " + end
	}
	return "memory " + end
}

// growth measures pairs of push and pop on queues of rising length, one after the other on one
// server. Priorities rise with time. So every pop takes a packet that was pushed about a queue's
// length before, never a fresh one.
type growth struct {
	depths []int
	pairs  int // in each measurement
}

func (g growth) run(ctx context.Context, b *bench, c *benchCase) ([]*row, error) {
	s, err := b.filled(ctx, c.contenders[0].peer, 0)
	if err != nil {
		return nil, err
	}
	return b.eachSize(ctx, c, s, g.depths, func(depth int) (*row, error) { return g.measure(ctx, b.rounds, s, depth) })
}

// eachSize measures one size after the other on one server. It ends with the first size that fails,
// because then the server is killed.
func (b *bench) eachSize(ctx context.Context, c *benchCase, s *server, sizes []int, measure func(size int) (*row, error)) ([]*row, error) {
	var rows []*row
	for _, size := range sizes {
		step, failed := *c, len(b.failed)
		step.name = c.name + " " + short(size)
		err := b.each(ctx, &step, 1, func(int, int) error {
			measured, err := measure(size)
			if err == nil {
				rows = append(rows, measured)
			}
			return err
		})
		if err != nil || len(b.failed) > failed {
			return rows, err
		}
	}
	return rows, b.discard(s)
}

func (g growth) measure(ctx context.Context, rounds int, s *server, depth int) (*row, error) {
	r := &row{Case: "growth " + short(depth), Server: s.peer.name, Unit: "µs/op"}
	total := uint64(depth + rounds*g.pairs)
	packets := loadgen.Packets{
		Queue: r.Case, Size: payloadSize,
		Levels: loadgen.MaxLevels, Block: total/loadgen.MaxLevels + 1,
	}
	if err := s.fill(ctx, depth, func() loadgen.Protocol { return s.peer.push(packets) }); err != nil {
		return nil, err
	}
	for round := range rounds {
		packets.Base = uint64(depth + round*g.pairs)
		result, err := s.measureAll(ctx, group("pair", 16, 64, g.pairs, func() loadgen.Protocol { return s.peer.pair(packets) }))
		if err != nil {
			return nil, err
		}
		const operations = 2 // of a pair
		r.addResult(&result, operations)
		r.Samples[round] = result.Elapsed.Seconds() * 1e6 / float64(result.Packets()*operations)
	}
	return r, r.addMemory(s)
}

// short writes a round number as 10 k or 5 M.
func short(n int) string {
	switch {
	case n >= 1_000_000 && n%1_000_000 == 0:
		return fmt.Sprintf("%d M", n/1_000_000)
	case n >= 1_000 && n%1_000 == 0:
		return fmt.Sprintf("%d k", n/1_000)
	}
	return fmt.Sprint(n)
}
