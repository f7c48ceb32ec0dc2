package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// benchCase is one comparison: its name, the servers in it, and how they are measured.
type benchCase struct {
	name  string
	about string
	peers []peer
	run   func(ctx context.Context, b *bench, c *benchCase) ([]*row, error)

	loads []load        // that are measured together
	fill  []filling     // what is there before, made in this order
	keep  bool          // whether a server stays, with what is there, through all rounds
	limit time.Duration // of one measurement; 0 is that of the whole run
	unit  string        // of a rate; "" is packets/s

	rows  string   // what the names of the rows begin with, where one case has several
	sizes []int    // of what is there, one after the other
	ends  []string // how servers end before they start again
	rate  int      // of renewals, in a second
}

// load is connections that do the same, and how much they do in all.
type load struct {
	ask                 string
	conns, depth, count int
}

// filling is what is made before a measurement, by as many requests.
type filling struct {
	ask      string
	count    int
	perRound int    // so many more for each round
	queue    string // "" is the queue that is measured
	base     int    // number of the first packet
}

// pick is the count of a whole run, or the one of a quick run.
type pick func(full, quick int) int

// allCases lists the cases in the order they are run. Of their peers those remain whose programs
// are there.
func allCases(programs []*program, quick bool) []benchCase {
	n := func(full, small int) int {
		if quick {
			return small
		}
		return full
	}
	cases := slices.Concat(queueCases(n), sizeCases(n), boardCases(n), listCases(n), workCases(n))
	for i := range cases {
		var there []peer
		for _, p := range cases[i].peers {
			for _, installed := range programs {
				if p.program == installed.name {
					p.binary = installed.binary
					there = append(there, p)
				}
			}
		}
		cases[i].peers = there
	}
	return cases
}

// named keeps the peers with these labels.
func named(list []peer, labels ...string) []peer {
	var kept []peer
	for _, p := range list {
		if slices.Contains(labels, p.label) {
			kept = append(kept, p)
		}
	}
	return kept
}

func queueCases(n pick) []benchCase {
	each, deep, drain := n(80_000, 15_000), n(300_000, 60_000), n(1_000_000, 100_000)
	popEach := n(120_000, 20_000)
	return []benchCase{
		{
			name: "push-64", about: "pushes, 16 connections, 64 at a time (Holdfast: a barrier after every 64)",
			peers: queues, run: rates, loads: []load{{"push", 16, 64, n(500_000, 100_000)}},
		},
		{
			name: "push-1", about: "pushes, 64 connections, one at a time (Holdfast: a barrier after each)",
			peers: queues, run: rates, loads: []load{{"push", 64, 1, n(120_000, 20_000)}},
		},
		{
			name: "pop-1", about: "pops, 64 connections, one at a time",
			peers: queues, run: rates, fill: []filling{{ask: "push", count: popEach}}, loads: []load{{"pop", 64, 1, popEach}},
		},
		{
			name: "pop-64", about: fmt.Sprintf("drain of %s packets, 16 connections, 64 at a time", short(drain)),
			peers: named(queues, "holdfast", "redis"), run: rates, limit: time.Minute,
			fill: []filling{{ask: "push", count: drain}}, loads: []load{{"pop", 16, 64, drain}},
		},
		{
			name: "mixed-1", about: "32 producers and 32 consumers, one at a time; pushes and pops",
			peers: queues, run: rates, loads: []load{{"push", 32, 1, each}, {"pop", 32, 1, each}},
		},
		{
			name: "mixed-64", about: "32 producers and 32 consumers, 64 at a time; pushes and pops",
			peers: queues, run: rates, loads: []load{{"push", 32, 64, deep}, {"pop", 32, 64, deep}},
		},
		{
			name: "subscribe-1", about: "as mixed-1, but consumers wait (subscriptions, BZPOPMIN); also Redis without waiting",
			peers: waiting, run: rates, loads: []load{{"push", 32, 1, each}, {"wait", 32, 1, each}},
		},
		{
			name: "subscribe-64", about: "as mixed-64, but consumers wait (subscriptions, BZPOPMIN); also Redis without waiting",
			peers: waiting, run: rates, loads: []load{{"push", 32, 64, deep}, {"wait", 32, 64, deep}},
		},
	}
}

// sizeCases are those of large queues: how long a start takes, how much memory is held, and whether
// operations become slower.
func sizeCases(n pick) []benchCase {
	start, low, high := n(1_000_000, 100_000), n(1_000_000, 100_000), n(5_000_000, 500_000)
	depths := []int{10_000, 100_000, 1_000_000, 10_000_000}
	return []benchCase{
		{
			name: "start", about: fmt.Sprintf("after kill -9 with %s packets queued, from the start of the process to the first packet popped", short(start)),
			peers: queues, run: starts, ends: []string{killed}, fill: []filling{{ask: "push", count: start}},
		},
		{
			name: "memory", about: fmt.Sprintf("resident memory with %s and %s packets queued", short(low), short(high)),
			peers: named(queues, "holdfast", "redis"), run: memory, rows: "memory", sizes: []int{low, high}, fill: []filling{{ask: "push"}},
		},
		{
			name:  "growth",
			about: "time of one operation in push and pop pairs (16 connections, 64 at a time, oldest packets first) as the queue grows",
			peers: named(queues, "holdfast"), run: growth, rows: "growth", sizes: depths[:n(4, 3)],
			fill: []filling{{ask: "push"}}, loads: []load{{"pair", 16, 64, n(200_000, 50_000)}},
		},
	}
}

// boardCases are those of items whose scores change, by update and next of barbershop, and by
// ZINCRBY and ZPOPMAX of Redis.
func boardCases(n pick) []benchCase {
	items := n(1_000_000, 100_000)
	about := fmt.Sprintf("with %s items, 50 connections, ", short(items))
	var cases []benchCase
	for _, kind := range []struct {
		name, about string
		asks        []string
	}{
		{"update", "updates of random ones (Redis: ZINCRBY), ", []string{"update"}},
		{"next", "the highest is taken (Redis: ZPOPMAX), ", []string{"pop"}},
		{"shifts", "half of them update, half take the highest, ", []string{"update", "pop"}},
	} {
		for _, at := range []struct {
			depth, count int
			about        string
		}{{1, n(120_000, 20_000), "one at a time"}, {16, n(300_000, 60_000), "16 at a time"}} {
			c := benchCase{
				name: fmt.Sprintf("%s-%d", kind.name, at.depth), about: about + kind.about + at.about,
				peers: boards, run: rates, unit: "operations/s", keep: true, fill: []filling{{ask: "update", count: items}},
			}
			for _, ask := range kind.asks {
				c.loads = append(c.loads, load{ask, 50 / len(kind.asks), at.depth, at.count / len(kind.asks)})
				if ask == "pop" {
					c.fill[0].perRound = at.count // items that may leave the board
				}
			}
			cases = append(cases, c)
		}
	}
	sizes := []int{10_000, 100_000, 1_000_000, 5_000_000}
	return append(cases, benchCase{
		name: "board growth", about: "time of one update (50 connections, 16 at a time) as the board grows",
		peers: named(boards, "holdfast"), run: growth, rows: "board", sizes: sizes[:n(4, 3)],
		fill: []filling{{ask: "update"}}, loads: []load{{"update", 50, 16, n(400_000, 100_000)}},
	})
}

// listCases are those of the Redis protocol: Holdfast and Redis get the same requests, for lists
// and strings. Pinpriq's pushes and pops stand beside those of lists.
func listCases(n pick) []benchCase {
	each, deep, popEach, drain := n(80_000, 15_000), n(300_000, 60_000), n(120_000, 20_000), n(1_000_000, 100_000)
	claims, strings := n(100_000, 10_000), []filling{{ask: "update", count: n(100_000, 10_000)}}
	few, random := named(lists, "holdfast", "redis"), "random strings among "+short(strings[0].count)+", 16 connections, 64 at a time"
	return []benchCase{
		{
			name: "lpush-1", about: "LPUSH, 64 connections, one at a time",
			peers: lists, run: rates, loads: []load{{"push", 64, 1, n(120_000, 20_000)}},
		},
		{
			name: "lpush-64", about: "LPUSH, 16 connections, 64 at a time",
			peers: lists, run: rates, loads: []load{{"push", 16, 64, n(500_000, 100_000)}},
		},
		{
			name: "rpop-1", about: "RPOP, 64 connections, one at a time",
			peers: lists, run: rates, fill: []filling{{ask: "push", count: popEach}}, loads: []load{{"pop", 64, 1, popEach}},
		},
		{
			name: "rpop-64", about: fmt.Sprintf("RPOP of %s elements, 16 connections, 64 at a time", short(drain)),
			peers: lists, run: rates, limit: time.Minute,
			fill: []filling{{ask: "push", count: drain}}, loads: []load{{"pop", 16, 64, drain}},
		},
		{
			name: "brpop-1", about: "32 connections LPUSH and 32 BRPOP, one at a time",
			peers: lists, run: rates, loads: []load{{"push", 32, 1, each}, {"wait", 32, 1, each}},
		},
		{
			name: "brpop-64", about: "32 connections LPUSH and 32 BRPOP, 64 at a time",
			peers: lists, run: rates, loads: []load{{"push", 32, 64, deep}, {"wait", 32, 64, deep}},
		},
		{
			// Request n deletes the packet n, which is in the list from the beginning or was claimed
			// long before.
			name:  "claim",
			about: fmt.Sprintf("RPOPLPUSH and LREM of another element, %s elements claimed, 16 connections, 16 at a time", short(claims)),
			peers: few, run: rates, unit: "claims/s", loads: []load{{"claim", 16, 16, claims}},
			fill: []filling{{ask: "push", queue: claimedQueue, count: claims}, {ask: "push", base: claims, count: claims}},
		},
		{
			name: "get-64", about: "GET of " + random, peers: few, run: rates,
			unit: "operations/s", keep: true, fill: strings, loads: []load{{"get", 16, 64, n(1_000_000, 100_000)}},
		},
		{
			name: "set-64", about: "SET of " + random, peers: few, run: rates,
			unit: "operations/s", keep: true, fill: strings, loads: []load{{"update", 16, 64, n(500_000, 50_000)}},
		},
		{
			name: "list memory", about: fmt.Sprintf("resident memory with lists of %s and %s elements", short(drain), short(2*drain)),
			peers: few, run: memory, rows: "memory", sizes: []int{drain, 2 * drain}, fill: []filling{{ask: "push"}},
		},
	}
}

// workCases are those of workers, who push, claim and acknowledge packets, and of many claims that
// stand.
func workCases(n pick) []benchCase {
	own, held, deep, renewals := named(workers, "holdfast"), n(1_000_000, 100_000), n(300_000, 50_000), 50_000
	const about = "a packet is pushed, claimed and acknowledged (Redis: LPUSH, RPOPLPUSH, LREM), "
	return []benchCase{
		{
			name: "work-1", about: about + "64 connections, one at a time; beanstalkd syncs every 50 ms",
			peers: workers, run: rates, loads: []load{{"work", 64, 1, n(60_000, 10_000)}},
		},
		{
			name: "work-64", about: about + "16 connections, 64 pushes, then 64 claims, then 64 acknowledgements at a time",
			peers: workers, run: rates, loads: []load{{"work", 16, 64, deep}},
		},
		{
			name: "work-group-64", about: "the same in three requests: QMPUSH, QCLAIM COUNT 64, QACK of 64",
			peers: own, run: rates, loads: []load{{"grouped", 16, 64, deep}},
		},
		{
			name:  "work-start",
			about: fmt.Sprintf("start with %s packets claimed, to the first packet popped, after kill -9 and after a clean stop", short(held)),
			peers: own, run: starts, ends: []string{killed, stopped},
			fill: []filling{{ask: "push", count: held + 1, perRound: 2}, {ask: "hold", count: held}},
		},
		{
			name: "work-ready", about: fmt.Sprintf("resident memory with %s and %s packets that are ready", short(held), short(2*held)),
			peers: own, run: memory, rows: "memory", sizes: []int{held, 2 * held}, fill: []filling{{ask: "push"}},
		},
		{
			name: "work-held", about: "the same with packets that are claimed",
			peers: own, run: memory, rows: "claimed", sizes: []int{held, 2 * held}, fill: []filling{{ask: "push"}, {ask: "hold"}},
		},
		{
			name:  "work-renew",
			about: fmt.Sprintf("QPOP, 16 connections, 64 at a time, alone and beside %s of QEXTEND and QPROGRESS a second", short(renewals)),
			peers: own, run: renewed, rate: renewals, loads: []load{{"pop", 16, 64, n(1_000_000, 100_000)}, {"renew", 4, 64, 0}},
		},
	}
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
