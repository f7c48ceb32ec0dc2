package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/workshop/loadgen"
)

// benchCase is one comparison: its name, the servers in it, and how they are measured.
type benchCase struct {
	name       string
	about      string
	contenders []contender
	run        func(ctx context.Context, b *bench, c *benchCase) ([]*row, error)
}

// contender is a server in one of the ways to use it.
type contender struct {
	label string
	peer  *peer
	wait  bool // whether consumers wait for packets instead of asking again
}

// sizes are the counts of the cases, in packets.
type sizes struct {
	pushDeep, pushEach, popEach, drain, mixedEach, mixedDeep int
	start                                                    int
	memoryLow, memoryHigh                                    int
	growth                                                   []int
	growthPairs                                              int
	boardItems, boardEach, boardDeep                         int // items before the measurement, and operations at depth 1 and 16
	boardGrowth                                              []int
	boardUpdates                                             int
	claims, claimed                                          int // claims of a measurement, and packets that are claimed all the time
	strings, gets, sets                                      int
	workEach, workDeep                                       int           // packets worked on at depth 1 and 64
	held, renewals                                           int           // packets claimed, and renewals in a second
	limit                                                    time.Duration // of one measurement
}

func fullSizes() sizes {
	return sizes{
		pushDeep: 500_000, pushEach: 120_000, popEach: 120_000, drain: 1_000_000, mixedEach: 80_000, mixedDeep: 300_000,
		start: 1_000_000, memoryLow: 1_000_000, memoryHigh: 5_000_000,
		growth: []int{10_000, 100_000, 1_000_000, 10_000_000}, growthPairs: 200_000,
		boardItems: 1_000_000, boardEach: 120_000, boardDeep: 300_000,
		boardGrowth: []int{10_000, 100_000, 1_000_000, 5_000_000}, boardUpdates: 400_000,
		claims: 100_000, claimed: 100_000, strings: 100_000, gets: 1_000_000, sets: 500_000,
		workEach: 60_000, workDeep: 300_000, held: 1_000_000, renewals: 50_000,
		limit: 3 * time.Second,
	}
}

func quickSizes() sizes {
	return sizes{
		pushDeep: 100_000, pushEach: 20_000, popEach: 20_000, drain: 100_000, mixedEach: 15_000, mixedDeep: 60_000,
		start: 100_000, memoryLow: 100_000, memoryHigh: 500_000,
		growth: []int{10_000, 100_000, 1_000_000}, growthPairs: 50_000,
		boardItems: 100_000, boardEach: 20_000, boardDeep: 60_000,
		boardGrowth: []int{10_000, 100_000, 1_000_000}, boardUpdates: 100_000,
		claims: 10_000, claimed: 10_000, strings: 10_000, gets: 100_000, sets: 50_000,
		workEach: 10_000, workDeep: 50_000, held: 100_000, renewals: 50_000,
		limit: time.Second,
	}
}

// allCases lists the cases in the order they are run.
func allCases(peers []*peer, s sizes) []benchCase {
	asking := contenders(peers, false)
	waiting := append(contenders(peers, true), named(asking, "redis")...)
	mixedEach := both(pushes(32, 1, s.mixedEach), pops(32, 1, s.mixedEach))
	mixedDeep := both(pushes(32, 64, s.mixedDeep), pops(32, 64, s.mixedDeep))
	cases := []benchCase{
		{
			name: "push-64", about: "pushes, 16 connections, 64 at a time (Holdfast: a barrier after every 64)",
			contenders: asking,
			run:        throughput{limit: s.limit, traffic: pushes(16, 64, s.pushDeep)}.run,
		},
		{
			name: "push-1", about: "pushes, 64 connections, one at a time (Holdfast: a barrier after each)",
			contenders: asking,
			run:        throughput{limit: s.limit, traffic: pushes(64, 1, s.pushEach)}.run,
		},
		{
			name: "pop-1", about: "pops, 64 connections, one at a time",
			contenders: asking,
			run:        throughput{fill: s.popEach, limit: s.limit, traffic: pops(64, 1, s.popEach)}.run,
		},
		{
			name: "pop-64", about: fmt.Sprintf("drain of %s packets, 16 connections, 64 at a time", short(s.drain)),
			contenders: named(asking, "holdfast", "redis"),
			run:        throughput{fill: s.drain, limit: time.Minute, traffic: pops(16, 64, s.drain)}.run,
		},
		{
			name: "mixed-1", about: "32 producers and 32 consumers, one at a time; pushes and pops",
			contenders: asking,
			run:        throughput{limit: s.limit, traffic: mixedEach}.run,
		},
		{
			name: "mixed-64", about: "32 producers and 32 consumers, 64 at a time; pushes and pops",
			contenders: asking,
			run:        throughput{limit: s.limit, traffic: mixedDeep}.run,
		},
		{
			name: "subscribe-1", about: "as mixed-1, but consumers wait (subscriptions, BZPOPMIN); also Redis without waiting",
			contenders: named(waiting, "holdfast", "redis"),
			run:        throughput{limit: s.limit, traffic: mixedEach}.run,
		},
		{
			name: "subscribe-64", about: "as mixed-64, but consumers wait (subscriptions, BZPOPMIN); also Redis without waiting",
			contenders: named(waiting, "holdfast", "redis"),
			run:        throughput{limit: s.limit, traffic: mixedDeep}.run,
		},
		{
			name: "start", about: fmt.Sprintf("after kill -9 with %s packets queued, from the start of the process to the first packet popped", short(s.start)),
			contenders: asking,
			run:        startup{packets: s.start}.run,
		},
		{
			name: "memory", about: fmt.Sprintf("resident memory with %s and %s packets queued", short(s.memoryLow), short(s.memoryHigh)),
			contenders: named(asking, "holdfast", "redis"),
			run:        memory{low: s.memoryLow, high: s.memoryHigh}.run,
		},
		{
			name: "growth", about: "time of one operation in push and pop pairs (16 connections, 64 at a time, oldest packets first) as the queue grows",
			contenders: named(asking, "holdfast"),
			run:        growth{depths: s.growth, pairs: s.growthPairs}.run,
		},
	}
	cases = append(cases, boardCases(contenders(onBoard(peers), false), s)...)
	cases = append(cases, listCases(onLists(peers), s)...)
	return append(cases, workCases(contenders(onWork(peers), false), s)...)
}

// contenders are the peers, all used in one way.
func contenders(peers []*peer, wait bool) []contender {
	var list []contender
	for _, p := range peers {
		label := p.name
		if wait && p.name != "holdfast" {
			label += " waiting"
		}
		list = append(list, contender{label: label, peer: p, wait: wait})
	}
	return list
}

// named keeps the contenders with these names.
func named(list []contender, names ...string) []contender {
	var kept []contender
	for _, c := range list {
		if slices.Contains(names, c.peer.name) {
			kept = append(kept, c)
		}
	}
	return kept
}

// state is what a server holds before a measurement.
type state struct {
	packets int // 0 where none were filled in
	items   loadgen.Items
}

// traffic makes the groups of a measurement.
type traffic func(c contender, s state) []loadgen.Group

func pushes(conns, depth, count int) traffic {
	return func(c contender, _ state) []loadgen.Group {
		p := loadgen.Packets{Queue: queueName, Size: payloadSize}
		return group("push", conns, depth, count, func() loadgen.Protocol { return c.peer.push(p) })
	}
}

func pops(conns, depth, count int) traffic {
	return func(c contender, s state) []loadgen.Group {
		if s.packets > 0 {
			count = min(count, s.packets)
		}
		return group("pop", conns, depth, count, func() loadgen.Protocol {
			if c.wait {
				return c.peer.wait(queueName)
			}
			return c.peer.pop(queueName)
		})
	}
}

func both(a, b traffic) traffic {
	return func(c contender, s state) []loadgen.Group { return append(a(c, s), b(c, s)...) }
}

func group(name string, conns, depth, count int, protocol func() loadgen.Protocol) []loadgen.Group {
	return []loadgen.Group{{Name: name, Conns: conns, Depth: depth, Count: int64(count), New: protocol}}
}

// throughput counts packets in a time. Every round has a server of its own.
type throughput struct {
	fill    int // packets queued before
	limit   time.Duration
	traffic traffic
}

func (t throughput) run(ctx context.Context, b *bench, c *benchCase) ([]*row, error) {
	rows := newRows(c, "packets/s")
	err := b.each(ctx, c, b.rounds, func(_, i int) error {
		p, fill := c.contenders[i].peer, t.fill
		if p.slow {
			fill = min(fill, slowFill)
		}
		s, err := b.filled(ctx, p, fill)
		if err != nil {
			return err
		}
		left := fill - 1 // the request that asks whether the server serves may have taken one
		result, err := s.measure(ctx, t.traffic(c.contenders[i], state{packets: left}), t.limit)
		if err != nil {
			return err
		}
		rows[i].addResult(&result, 1)
		if err := rows[i].addMemory(s); err != nil {
			return err
		}
		return b.discard(s)
	})
	return rows, err
}
