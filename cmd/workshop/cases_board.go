package main

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/workshop/loadgen"
)

// The cases of the board: items whose scores change, by update and next of barbershop, and by
// ZINCRBY and ZPOPMAX of Redis.

const (
	boardConns = 50
	// seedStep keeps the seeds of two rounds apart, because the requests of a round are numbered
	// from its seed.
	seedStep = 1 << 40
)

func boardCases(list []contender, s sizes) []benchCase {
	about := fmt.Sprintf("with %s items, %d connections, ", short(s.boardItems), boardConns)
	halves := func(conns, depth, count int) traffic {
		return both(updates(conns/2, depth, count/2), nexts(conns/2, depth, count/2))
	}
	var cases []benchCase
	for _, kind := range []struct {
		name, about string
		taken       bool // whether items leave the board
		traffic     func(conns, depth, count int) traffic
	}{
		{"update", "updates of random ones (Redis: ZINCRBY), ", false, updates},
		{"next", "the highest is taken (Redis: ZPOPMAX), ", true, nexts},
		{"shifts", "half of them update, half take the highest, ", true, halves},
	} {
		for _, at := range []struct {
			depth, count int
			about        string
		}{{1, s.boardEach, "one at a time"}, {16, s.boardDeep, "16 at a time"}} {
			extra := 0
			if kind.taken {
				extra = at.count
			}
			cases = append(cases, benchCase{
				name: fmt.Sprintf("%s-%d", kind.name, at.depth), about: about + kind.about + at.about,
				contenders: list,
				run:        boardThroughput{items: s.boardItems, extra: extra, limit: s.limit, traffic: kind.traffic(boardConns, at.depth, at.count)}.run,
			})
		}
	}
	return append(cases, benchCase{
		name: "board growth", about: "time of one update (50 connections, 16 at a time) as the board grows",
		contenders: named(list, "holdfast"),
		run:        boardGrowth{items: s.boardGrowth, updates: s.boardUpdates}.run,
	})
}

func updates(conns, depth, count int) traffic {
	return func(c contender, s state) []loadgen.Group {
		return group("update", conns, depth, count, func() loadgen.Protocol { return c.peer.update(s.items) })
	}
}

func nexts(conns, depth, count int) traffic {
	return func(c contender, s state) []loadgen.Group {
		return group("next", conns, depth, count, func() loadgen.Protocol { return c.peer.next(s.items.Queue) })
	}
}

// boardThroughput counts operations in a time. A contender keeps its server and the board through
// all rounds.
type boardThroughput struct {
	items   int // on the board in every round at least
	extra   int // made beforehand for each round, because it may take so many
	limit   time.Duration
	traffic traffic
}

func (t boardThroughput) run(ctx context.Context, b *bench, c *benchCase) ([]*row, error) {
	rows := newRows(c, "operations/s")
	servers := make([]*server, len(c.contenders))
	err := b.each(ctx, c, b.rounds, func(round, i int) error {
		p, items := c.contenders[i].peer, loadgen.Items{Queue: queueName, Live: t.items + b.rounds*t.extra}
		if servers[i] == nil || servers[i].cmd == nil { // not started yet, or killed because another contender failed
			s, err := b.withBoard(ctx, p, items)
			if err != nil {
				return err
			}
			servers[i] = s
		}
		s := servers[i]
		items.Seed = uint64(1+round) * seedStep
		result, err := s.measure(ctx, t.traffic(c.contenders[i], state{items: items}), t.limit)
		if err != nil {
			return err
		}
		rows[i].addResult(&result, 1)
		if err := rows[i].addMemory(s); err != nil {
			return err
		}
		if round == b.rounds-1 {
			return b.discard(s)
		}
		return s.rest(ctx)
	})
	return rows, err
}

// withBoard returns a running server with all of the items.
func (b *bench) withBoard(ctx context.Context, p *peer, items loadgen.Items) (*server, error) {
	s, err := b.filled(ctx, p, 0)
	if err != nil {
		return nil, err
	}
	return s, s.makeItems(ctx, items)
}

func (s *server) makeItems(ctx context.Context, items loadgen.Items) error {
	items.InOrder = true
	return s.fill(ctx, items.Live, func() loadgen.Protocol { return s.peer.update(items) })
}

// boardGrowth measures updates on a board of rising size, on one server.
type boardGrowth struct {
	items   []int
	updates int // in each measurement
}

func (g boardGrowth) run(ctx context.Context, b *bench, c *benchCase) ([]*row, error) {
	s, err := b.filled(ctx, c.contenders[0].peer, 0)
	if err != nil {
		return nil, err
	}
	made := 0
	return b.eachSize(ctx, c, s, g.items, func(items int) (*row, error) {
		if err := s.makeItems(ctx, loadgen.Items{First: uint32(made), Live: items - made}); err != nil {
			return nil, err
		}
		made = items
		return g.measure(ctx, b.rounds, s, items)
	})
}

func (g boardGrowth) measure(ctx context.Context, rounds int, s *server, items int) (*row, error) {
	r := &row{Case: "board " + short(items), Server: s.peer.name, Unit: "µs/op"}
	for round := range rounds {
		seeded := loadgen.Items{Live: items, Seed: uint64(1+round) * seedStep}
		result, err := s.measureAll(ctx, updates(boardConns, 16, g.updates)(contender{peer: s.peer}, state{items: seeded}))
		if err != nil {
			return nil, err
		}
		r.addResult(&result, 1)
		r.Samples[round] = result.Elapsed.Seconds() * 1e6 / float64(result.Packets())
		if err := s.rest(ctx); err != nil {
			return nil, err
		}
	}
	return r, r.addMemory(s)
}
