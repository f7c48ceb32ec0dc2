package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/loadgen"
)

// The cases about boards: items whose scores shift, by update and next of
// barbershop, by ZINCRBY and ZPOPMAX of Redis.

// boardConns are the connections of these cases.
const boardConns = 50

// seedStep keeps apart the seeds of rounds, whose requests are numbered from them.
const seedStep = 1 << 40

func boardCases(list []contender, s sizes) []benchCase {
	about := fmt.Sprintf("with %s items, %d connections, ", short(s.boardItems), boardConns)
	var cases []benchCase
	for _, kind := range []struct {
		name, about string
		taken       bool // whether items leave the board
		groups      func(conns, depth, count int) boardGrouping
	}{
		{"update", "updates of random ones (Redis: ZINCRBY), ", false, updaters},
		{"next", "the highest is taken (Redis: ZPOPMAX), ", true, callers},
		{"shifts", "half of them update, half take the highest, ", true, shifters},
	} {
		for _, at := range []struct{ depth, count int }{{1, s.boardEach}, {16, s.boardDeep}} {
			extra := 0
			if kind.taken {
				extra = at.count
			}
			cases = append(cases, benchCase{
				name: fmt.Sprintf("%s-%d", kind.name, at.depth), about: about + kind.about + atATime(at.depth),
				contenders: list, targets: []target{atLeast("redis", 1.2)},
				run: boardLoad{items: s.boardItems, extra: extra, limit: s.limit, groups: kind.groups(boardConns, at.depth, at.count)}.run,
			})
		}
	}
	return append(cases, benchCase{
		name: "board growth", about: "time, processor time and bytes written of one update (50 connections, 16 at a time) as the board grows",
		contenders: only(list, "holdfast"), targets: boardGrowthTargets(s),
		run: boardGrowth{items: s.boardGrowth, updates: s.boardUpdates}.run,
	})
}

func atATime(depth int) string {
	if depth == 1 {
		return "one at a time"
	}
	return fmt.Sprintf("%d at a time", depth)
}

// boardGrouping makes the load of a contender on a board.
type boardGrouping func(p *peer, items loadgen.Items) []loadgen.Group

func updaters(conns, depth, count int) boardGrouping {
	return func(p *peer, items loadgen.Items) []loadgen.Group {
		return []loadgen.Group{{
			Name: "update", Conns: conns, Depth: depth, Count: int64(count),
			New: func() loadgen.Protocol { return p.shift(items) },
		}}
	}
}

func callers(conns, depth, count int) boardGrouping {
	return func(p *peer, items loadgen.Items) []loadgen.Group {
		return []loadgen.Group{{
			Name: "next", Conns: conns, Depth: depth, Count: int64(count),
			New: func() loadgen.Protocol { return p.next(items.Queue) },
		}}
	}
}

func shifters(conns, depth, count int) boardGrouping {
	return func(p *peer, items loadgen.Items) []loadgen.Group {
		groups := updaters(conns/2, depth, count/2)(p, items)
		return append(groups, callers(conns/2, depth, count/2)(p, items)...)
	}
}

// boardLoad counts operations in a time. A contender keeps its server, and with it
// the board, through all rounds.
type boardLoad struct {
	items  int // on the board in every round at least
	extra  int // made beforehand for each round, because it may take so many
	limit  time.Duration
	groups boardGrouping
}

func (t boardLoad) run(ctx context.Context, b *bench, c *benchCase) ([]*row, error) {
	rows := newRows(c, "operations/s", true)
	servers := make([]*server, len(c.contenders))
	err := b.each(ctx, c, b.rounds, func(round, i int) error {
		p, items := c.contenders[i].peer, loadgen.Items{Queue: queueName, Live: t.items + b.rounds*t.extra}
		if servers[i] == nil || servers[i].cmd == nil { // not there yet, or killed because another contender failed
			s, err := b.withBoard(ctx, p, items)
			if err != nil {
				return err
			}
			servers[i] = s
		}
		s := servers[i]
		items.Seed = uint64(1+round) * seedStep
		result, err := s.measure(ctx, t.groups(p, items), t.limit)
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
	s, err := b.newServer(p)
	if err != nil {
		return nil, err
	}
	if err := s.serve(ctx); err != nil {
		return nil, err
	}
	return s, s.makeItems(ctx, items)
}

// makeItems puts the items on the board and waits until the server has come to rest.
func (s *server) makeItems(ctx context.Context, items loadgen.Items) error {
	result, err := loadgen.Run(ctx, loadgen.Spec{Addr: s.addr, Limit: fillLimit, Groups: []loadgen.Group{
		{Name: "make", Conns: 16, Depth: 64, Count: int64(items.Live), New: func() loadgen.Protocol { return s.peer.make(items) }},
	}})
	if err != nil {
		return fmt.Errorf("making the items failed: %w; the server's log says: %s", err, s.log())
	}
	if !result.Groups[0].Finished {
		return fmt.Errorf("only %d of %d items were made in %v", result.Packets(), items.Live, fillLimit)
	}
	return s.rest(ctx)
}

// boardGrowth measures updates on a board of rising size, on one server.
type boardGrowth struct {
	items   []int
	updates int // in each measurement
}

func (g boardGrowth) run(ctx context.Context, b *bench, c *benchCase) ([]*row, error) {
	s, err := b.withBoard(ctx, c.contenders[0].peer, loadgen.Items{Live: g.items[0]})
	if err != nil {
		return nil, err
	}
	var rows [3][]*row // of time, processor time, bytes
	for n, items := range g.items {
		step := *c
		step.name = boardGrowthCase("", items)
		failed := true
		err := b.each(ctx, &step, 1, func(int, int) error {
			if n > 0 {
				more := loadgen.Items{First: uint32(g.items[n-1]), Live: items - g.items[n-1]}
				if err := s.makeItems(ctx, more); err != nil {
					return err
				}
			}
			figures, err := g.measure(ctx, b.rounds, s, items)
			if err != nil {
				return err
			}
			failed = false
			for i, r := range figures {
				rows[i] = append(rows[i], r)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		if failed {
			return slices.Concat(rows[:]...), nil // this size failed, and the server with it
		}
	}
	return slices.Concat(rows[:]...), b.discard(s)
}

// measure returns the time, the processor time and the bytes of an update. The last
// two include what the server does for it afterwards, until it has come to rest.
func (g boardGrowth) measure(ctx context.Context, rounds int, s *server, items int) (figures [3]*row, err error) {
	for i, what := range boardFigures() {
		figures[i] = &row{Case: boardGrowthCase(what.name, items), Server: s.peer.name, Unit: what.unit}
	}
	pid, updates := s.cmd.Process.Pid, float64(g.updates)
	for round := range rounds {
		usedBefore, writtenBefore, err := spent(pid)
		if err != nil {
			return figures, err
		}
		seeded := loadgen.Items{Live: items, Seed: uint64(1+round) * seedStep}
		result, err := s.measure(ctx, updaters(boardConns, 16, g.updates)(s.peer, seeded), time.Minute)
		if err != nil {
			return figures, err
		}
		if !result.Groups[0].Finished {
			return figures, fmt.Errorf("only %d of %d updates were done in a minute", result.Packets(), g.updates)
		}
		figures[0].addResult(&result, 1)
		if err := s.rest(ctx); err != nil {
			return figures, err
		}
		used, written, err := spent(pid)
		if err != nil {
			return figures, err
		}
		figures[0].Samples[round] = result.Elapsed.Seconds() * 1e6 / updates
		figures[1].Samples = append(figures[1].Samples, (used-usedBefore).Seconds()*1e6/updates)
		figures[2].Samples = append(figures[2].Samples, float64(written-writtenBefore)/updates)
	}
	return figures, figures[0].addMemory(s)
}

// spent is the processor time of a process and the bytes it has written.
func spent(pid int) (time.Duration, int64, error) {
	usage, err := loadgen.ReadUsage(pid)
	if err != nil {
		return 0, 0, err
	}
	written, err := loadgen.ReadWritten(pid)
	return usage.CPU, written, err
}

// boardFigure is something that an update costs.
type boardFigure struct{ name, unit string }

func boardFigures() [3]boardFigure {
	return [3]boardFigure{{"", "µs/op"}, {"CPU ", "µs/op"}, {"disk ", "B/op"}}
}

func boardGrowthCase(what string, items int) string { return "board " + what + short(items) }

// boardGrowthTargets compares each size with the first.
func boardGrowthTargets(s sizes) []target {
	var targets []target
	for _, what := range boardFigures() {
		for _, items := range s.boardGrowth[1:] {
			targets = append(targets, target{
				row: boardGrowthCase(what.name, items), baseRow: boardGrowthCase(what.name, s.boardGrowth[0]), against: "holdfast",
				limit: 1.5, text: "at most 1.5 × " + short(s.boardGrowth[0]),
			})
		}
	}
	return targets
}
