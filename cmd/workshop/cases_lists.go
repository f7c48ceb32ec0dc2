package main

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/workshop/loadgen"
)

// The cases of the Redis protocol: Holdfast and Redis get the same requests, for lists and strings.
// Pinpriq's pushes and pops stand beside those of lists.

const claimedQueue = queueName + ":claimed"

func listCases(peers []*peer, s sizes) []benchCase {
	all := contenders(peers, false)
	waiting := make([]contender, len(all))
	for i, c := range all {
		waiting[i] = contender{label: c.label, peer: c.peer, wait: true}
	}
	lists := named(all, "holdfast", "redis")
	deep := throughput{limit: s.limit, traffic: both(pushes(32, 64, s.mixedDeep), pops(32, 64, s.mixedDeep))}
	each := throughput{limit: s.limit, traffic: both(pushes(32, 1, s.mixedEach), pops(32, 1, s.mixedEach))}
	return []benchCase{
		{
			name: "lpush-1", about: "LPUSH, 64 connections, one at a time",
			contenders: all, run: throughput{limit: s.limit, traffic: pushes(64, 1, s.pushEach)}.run,
		},
		{
			name: "lpush-64", about: "LPUSH, 16 connections, 64 at a time",
			contenders: all, run: throughput{limit: s.limit, traffic: pushes(16, 64, s.pushDeep)}.run,
		},
		{
			name: "rpop-1", about: "RPOP, 64 connections, one at a time",
			contenders: all, run: throughput{fill: s.popEach, limit: s.limit, traffic: pops(64, 1, s.popEach)}.run,
		},
		{
			name: "rpop-64", about: fmt.Sprintf("RPOP of %s elements, 16 connections, 64 at a time", short(s.drain)),
			contenders: all, run: throughput{fill: s.drain, limit: time.Minute, traffic: pops(16, 64, s.drain)}.run,
		},
		{name: "brpop-1", about: "32 connections LPUSH and 32 BRPOP, one at a time", contenders: waiting, run: each.run},
		{name: "brpop-64", about: "32 connections LPUSH and 32 BRPOP, 64 at a time", contenders: waiting, run: deep.run},
		{
			name:       "claim",
			about:      fmt.Sprintf("RPOPLPUSH and LREM of another element, %s elements claimed, 16 connections, 16 at a time", short(s.claimed)),
			contenders: lists, run: claims{standing: s.claimed, count: s.claims, limit: s.limit}.run,
		},
		{
			name: "get-64", about: fmt.Sprintf("GET of random strings among %s, 16 connections, 64 at a time", short(s.strings)),
			contenders: lists, run: boardThroughput{items: s.strings, limit: s.limit, traffic: gets(16, 64, s.gets)}.run,
		},
		{
			name: "set-64", about: fmt.Sprintf("SET of random strings among %s, 16 connections, 64 at a time", short(s.strings)),
			contenders: lists, run: boardThroughput{items: s.strings, limit: s.limit, traffic: updates(16, 64, s.sets)}.run,
		},
		{
			name: "list memory", about: fmt.Sprintf("resident memory with lists of %s and %s elements", short(s.memoryLow), short(2*s.memoryLow)),
			contenders: lists, run: memory{low: s.memoryLow, high: 2 * s.memoryLow}.run,
		},
	}
}

// claims measures what a consumer of rfq does for a message, while many are claimed already.
type claims struct {
	standing int // elements of the list of what is claimed
	count    int
	limit    time.Duration
}

func (l claims) run(ctx context.Context, b *bench, c *benchCase) ([]*row, error) {
	rows := newRows(c, "claims/s")
	err := b.each(ctx, c, b.rounds, func(_, i int) error {
		p := c.contenders[i].peer
		s, err := b.filled(ctx, p, 0)
		if err != nil {
			return err
		}
		claimed := loadgen.Packets{Queue: claimedQueue, Size: payloadSize}
		waiting := loadgen.Packets{Queue: queueName, Size: payloadSize, Base: uint64(l.standing)}
		// Request n deletes the packet n, which is in the list from the beginning or was claimed
		// long before.
		oldest := loadgen.Packets{Queue: queueName, Size: payloadSize}
		for _, list := range []struct {
			packets loadgen.Packets
			count   int
		}{{claimed, l.standing}, {waiting, l.count}} {
			if err := s.fill(ctx, list.count, func() loadgen.Protocol { return p.push(list.packets) }); err != nil {
				return err
			}
		}
		result, err := s.measure(ctx, group("claim", 16, 16, l.count, func() loadgen.Protocol { return p.claim(oldest, claimedQueue) }), l.limit)
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

func gets(conns, depth, count int) traffic {
	return func(c contender, s state) []loadgen.Group {
		return group("get", conns, depth, count, func() loadgen.Protocol { return c.peer.get(s.items) })
	}
}
