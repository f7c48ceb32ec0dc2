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
	traffic

	rows  string   // what the names of the rows begin with, where one case has several
	sizes []int    // of what is there, one after the other
	ends  []ending // how servers end before they start again
	rate  int      // of renewals, in a second
}

// traffic is what is measured, and on what.
type traffic struct {
	loads []load        // that are measured together
	fill  []filling     // what is there before, made in this order
	keep  bool          // whether a server stays, with what is there, through all rounds
	limit time.Duration // of one measurement; 0: the limit of the whole run
	unit  string        // of a rate; "" is packets/s
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
	cases := slices.Concat(queueCases(n), sizeCases(n), boardCases(n), listCases(n), workCases(n), tableCases(n), cellCases(n))
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

// rate is a case of rates.
func rate(name, about string, peers []peer, t traffic) benchCase {
	return benchCase{name: name, about: about, peers: peers, run: rates, traffic: t}
}

// filled returns a traffic on what count requests have made.
func filled(ask string, count int, loads ...load) traffic {
	return traffic{fill: []filling{{ask: ask, count: count}}, loads: loads}
}

// shapes are the traffics that cases of queues and of lists have in common.
type shapes struct{ pushDeep, pushEach, popEach, drain traffic }

func newShapes(n pick) shapes {
	each, all := n(120_000, 20_000), n(1_000_000, 100_000)
	s := shapes{
		pushDeep: traffic{loads: []load{{"push", 16, 64, n(500_000, 100_000)}}},
		pushEach: traffic{loads: []load{{"push", 64, 1, each}}},
		popEach:  filled("push", each, load{"pop", 64, 1, each}),
		drain:    filled("push", all, load{"pop", 16, 64, all}),
	}
	s.drain.limit = time.Minute
	return s
}

// mixed is 32 producers and 32 consumers.
func mixed(take string, depth, count int) traffic {
	return traffic{loads: []load{{"push", 32, depth, count}, {take, 32, depth, count}}}
}

func queueCases(n pick) []benchCase {
	each, deep, s, few := n(80_000, 15_000), n(300_000, 60_000), newShapes(n), named(queues, "holdfast", "redis")
	const consumersWait = ", but consumers wait (subscriptions, BZPOPMIN); also Redis without waiting"
	return []benchCase{
		rate("push-64", "pushes, 16 connections, 64 at a time (Holdfast: a barrier after every 64)", queues, s.pushDeep),
		rate("push-1", "pushes, 64 connections, one at a time (Holdfast: a barrier after each)", queues, s.pushEach),
		rate("pop-1", "pops, 64 connections, one at a time", queues, s.popEach),
		rate("pop-64", "drain of "+short(s.drain.fill[0].count)+" packets, 16 connections, 64 at a time", few, s.drain),
		rate("mixed-1", "32 producers and 32 consumers, one at a time; pushes and pops", queues, mixed("pop", 1, each)),
		rate("mixed-64", "32 producers and 32 consumers, 64 at a time; pushes and pops", queues, mixed("pop", 64, deep)),
		rate("subscribe-1", "as mixed-1"+consumersWait, waiting, mixed("wait", 1, each)),
		rate("subscribe-64", "as mixed-64"+consumersWait, waiting, mixed("wait", 64, deep)),
	}
}

// sizeCases are those of large queues: how long a start takes, how much memory is held, and whether
// operations become slower.
func sizeCases(n pick) []benchCase {
	million, high := n(1_000_000, 100_000), n(5_000_000, 500_000)
	depths := []int{10_000, 100_000, 1_000_000, 10_000_000}
	startAbout := "after kill -9 with %s packets queued, from the start of the process to the first packet popped"
	return []benchCase{
		{
			name: "start", about: fmt.Sprintf(startAbout, short(million)), peers: queues,
			run: starts, ends: []ending{killed}, traffic: filled("push", million),
		},
		{
			name: "memory", about: fmt.Sprintf("resident memory with %s and %s packets queued", short(million), short(high)),
			peers: named(queues, "holdfast", "redis"), run: memory, rows: "memory", sizes: []int{million, high}, traffic: filled("push", 0),
		},
		{
			name:  "growth",
			about: "time of one operation in push and pop pairs (16 connections, 64 at a time, oldest packets first) as the queue grows",
			peers: named(queues, "holdfast"), run: growth, rows: "growth", sizes: depths[:n(4, 3)],
			traffic: filled("push", 0, load{"pair", 16, 64, n(200_000, 50_000)}),
		},
	}
}

// boardCases are those of items whose scores change, by update and next of barbershop, and by
// ZINCRBY and ZPOPMAX of Redis.
func boardCases(n pick) []benchCase {
	items := n(1_000_000, 100_000)
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
			t := filled("update", items)
			t.keep, t.unit = true, "operations/s"
			for _, ask := range kind.asks {
				t.loads = append(t.loads, load{ask, 50 / len(kind.asks), at.depth, at.count / len(kind.asks)})
				if ask == "pop" {
					t.fill[0].perRound = at.count // items that may leave the board
				}
			}
			about := fmt.Sprintf("with %s items, 50 connections, %s%s", short(items), kind.about, at.about)
			cases = append(cases, rate(fmt.Sprintf("%s-%d", kind.name, at.depth), about, boards, t))
		}
	}
	sizes := []int{10_000, 100_000, 1_000_000, 5_000_000}
	return append(cases, benchCase{
		name: "board growth", about: "time of one update (50 connections, 16 at a time) as the board grows",
		peers: named(boards, "holdfast"), run: growth, rows: "board", sizes: sizes[:n(4, 3)],
		traffic: filled("update", 0, load{"update", 50, 16, n(400_000, 100_000)}),
	})
}

// listCases are those of the Redis protocol: Holdfast and Redis get the same requests, for lists
// and strings. Pinpriq's pushes and pops stand beside those of lists.
func listCases(n pick) []benchCase {
	each, deep, s, few := n(80_000, 15_000), n(300_000, 60_000), newShapes(n), named(lists, "holdfast", "redis")
	elements, hundred := s.drain.fill[0].count, n(100_000, 10_000)
	// So many that the work of the background, which comes in large pieces, is the same in each round.
	many := n(2_000_000, 100_000)
	pushMany, drainMany := traffic{loads: []load{{"push", 16, 64, many}}}, filled("push", many, load{"pop", 16, 64, many})
	pushMany.limit, drainMany.limit = time.Minute, time.Minute
	// Request n of the claims deletes the packet n, which is in the list from the beginning or was
	// claimed long before.
	claims := traffic{
		unit: "claims/s", loads: []load{{"claim", 16, 16, hundred}},
		fill: []filling{{ask: "push", queue: claimedQueue, count: hundred}, {ask: "push", base: hundred, count: hundred}},
	}
	gets := filled("update", hundred, load{"get", 16, 64, n(1_000_000, 100_000)})
	sets := filled("update", hundred, load{"update", 16, 64, n(500_000, 50_000)})
	gets.keep, gets.unit, sets.keep, sets.unit = true, "operations/s", true, "operations/s"
	claimAbout := "RPOPLPUSH and LREM of another element, " + short(hundred) + " elements claimed, 16 connections, 16 at a time"
	random := "random strings among " + short(hundred) + ", 16 connections, 64 at a time"
	return []benchCase{
		rate("lpush-1", "LPUSH, 64 connections, one at a time", lists, s.pushEach),
		rate("lpush-64", "LPUSH of "+short(many)+" elements, 16 connections, 64 at a time", lists, pushMany),
		rate("rpop-1", "RPOP, 64 connections, one at a time", lists, s.popEach),
		rate("rpop-64", "RPOP of "+short(many)+" elements, 16 connections, 64 at a time", lists, drainMany),
		rate("brpop-1", "32 connections LPUSH and 32 BRPOP, one at a time", lists, mixed("wait", 1, each)),
		rate("brpop-64", "32 connections LPUSH and 32 BRPOP, 64 at a time", lists, mixed("wait", 64, deep)),
		rate("claim", claimAbout, few, claims),
		rate("get-64", "GET of "+random, few, gets),
		rate("set-64", "SET of "+random, few, sets),
		{
			name: "list memory", about: fmt.Sprintf("resident memory with lists of %s and %s elements", short(elements), short(2*elements)),
			peers: few, run: memory, rows: "memory", sizes: []int{elements, 2 * elements}, traffic: filled("push", 0),
		},
	}
}

// workCases are those of workers, who push, claim and acknowledge packets, and of many claims that
// stand.
func workCases(n pick) []benchCase {
	own, held, deep, renewals := named(workers, "holdfast"), n(1_000_000, 100_000), n(300_000, 50_000), 50_000
	const about = "a packet is pushed, claimed and acknowledged (Redis: LPUSH, RPOPLPUSH, LREM), "
	const each, group = "64 connections, one at a time; beanstalkd syncs every 50 ms",
		"16 connections, 64 pushes, then 64 claims, then 64 acknowledgements at a time"
	const startAbout = "start with %s packets claimed, to the first packet popped, after kill -9 and after a clean stop"
	const renewAbout = "QPOP, 16 connections, 64 at a time, alone and beside %s of QEXTEND and QPROGRESS a second"
	held2 := []int{held, 2 * held}
	return []benchCase{
		rate("work-1", about+each, workers, traffic{loads: []load{{"work", 64, 1, n(60_000, 10_000)}}}),
		rate("work-64", about+group, workers, traffic{loads: []load{{"work", 16, 64, deep}}}),
		rate("work-group-64", "the same in three requests: QMPUSH, QCLAIM COUNT 64, QACK of 64", own,
			traffic{loads: []load{{"grouped", 16, 64, deep}}}),
		{
			name: "work-start", about: fmt.Sprintf(startAbout, short(held)), peers: own, run: starts, ends: []ending{killed, stopped},
			traffic: traffic{fill: []filling{{ask: "push", count: held + 1, perRound: 2}, {ask: "hold", count: held}}},
		},
		{
			name: "work-ready", about: fmt.Sprintf("resident memory with %s and %s packets that are ready", short(held), short(2*held)),
			peers: own, run: memory, rows: "memory", sizes: held2, traffic: filled("push", 0),
		},
		{
			name: "work-held", about: "the same with packets that are claimed",
			peers: own, run: memory, rows: "claimed", sizes: held2, traffic: traffic{fill: []filling{{ask: "push"}, {ask: "hold"}}},
		},
		{
			name: "work-renew", about: fmt.Sprintf(renewAbout, short(renewals)), peers: own, run: renewed, rate: renewals,
			traffic: traffic{loads: []load{{"pop", 16, 64, n(1_000_000, 100_000)}, {"renew", 4, 64, 0}}},
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
