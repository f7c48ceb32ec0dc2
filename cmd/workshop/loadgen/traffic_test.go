package loadgen

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

func TestUpdatesAreSpreadEvenlyAndFillingMakesEachItemOnce(t *testing.T) {
	items := Items{First: 500, Live: 100, Spread: 10}
	ordered := items
	ordered.InOrder = true
	updated, amounts, filled := map[uint64]int{}, map[uint64]int{}, map[uint64]int{}
	const requests = 100_000
	for n := range uint64(requests) {
		item, by := items.update(n)
		updated[item]++
		amounts[by]++
	}
	for n := range uint64(items.Live) {
		item, by := ordered.update(n)
		filled[item]++
		if by < 1 || by > 10 {
			t.Errorf("filling adds %d, expected 1 to 10", by)
		}
	}
	for item := uint64(501); item <= 600; item++ {
		// 1000 are expected; 5 standard deviations are 160
		if updated[item] < 840 || updated[item] > 1160 || filled[item] != 1 {
			t.Errorf("item %d is updated %d times and filled %d times, expected about 1000 and 1", item, updated[item], filled[item])
		}
	}
	for by := uint64(1); by <= 10; by++ {
		if amounts[by] < 9_500 || amounts[by] > 10_500 {
			t.Errorf("%d is added %d times, expected about 10000", by, amounts[by])
		}
	}
	if len(updated) != 100 || len(amounts) != 10 || len(filled) != 100 {
		t.Errorf("%d items, %d amounts, %d filled; expected 100, 10, 100", len(updated), len(amounts), len(filled))
	}
}

func TestTheSeedDecidesWhichItemsAreUpdated(t *testing.T) {
	sequence := func(seed uint64) string {
		items, s := Items{Live: 1000, Seed: seed}, ""
		for n := range uint64(20) {
			item, by := items.update(n)
			s += fmt.Sprintln(item, by)
		}
		return s
	}
	if one := sequence(1); one != sequence(1) || one == sequence(1_000_000) {
		t.Error("equal seeds must give equal updates, and different seeds different ones")
	}
}

func TestBothServersAreGivenTheSameUpdates(t *testing.T) {
	items := Items{Queue: "q", Live: 1 << 20, Spread: MaxSpread, Seed: 7}
	words := func(p Protocol) []string { return strings.Fields(string(p.Append(nil, 3, 50))) }
	lines, bulks := words(BarbershopUpdate(items)), words(RedisZIncrBy(items))
	for n := range 50 {
		// update item amount; *4 $7 ZINCRBY $1 q $n amount $n item
		item, by := lines[3*n+1], lines[3*n+2]
		if bulks[9*n+6] != by || bulks[9*n+8] != item {
			t.Fatalf("update %d adds %s to %s, and in Redis %s to %s", n, by, item, bulks[9*n+6], bulks[9*n+8])
		}
		if length := bulks[9*n+7]; length != fmt.Sprintf("$%d", len(item)) {
			t.Fatalf("item %s has length %s", item, length)
		}
	}
}

// runs fills a board, updates it, and takes from it while it is updated.
func runs(ctx context.Context, t *testing.T, addr string, items Items) {
	t.Helper()
	group := func(name string, conns, depth int, count int64, proto func() Protocol) Group {
		return Group{Name: name, Conns: conns, Depth: depth, Count: count, New: proto}
	}
	for _, groups := range [][]Group{
		{group("fill", 3, 5, int64(items.Live), func() Protocol { return BarbershopFill(items) })},
		{group("update", 4, 16, 1000, func() Protocol { return BarbershopUpdate(items) })},
		{
			group("update", 2, 1, 100, func() Protocol { return BarbershopUpdate(items) }),
			group("next", 2, 7, 200, func() Protocol { return BarbershopNext() }),
		},
	} {
		result, err := Run(ctx, Spec{Addr: addr, Limit: testLimit, Groups: groups})
		if err != nil {
			t.Fatal(err)
		}
		for i, g := range result.Groups {
			if g.Packets != groups[i].Count || !g.Finished {
				t.Errorf("group %s: %d of %d done", g.Name, g.Packets, groups[i].Count)
			}
		}
	}
}

func TestABoardIsFilledUpdatedAndTakenFrom(t *testing.T) {
	f := startFakeBarbershop(t)
	runs(t.Context(), t, f.addr, Items{Live: 500, Spread: 50})
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.updates != 1600 || f.taken != 200 || len(f.scores) < 300 || len(f.scores) > 500 {
		t.Errorf("the server saw %d updates, gave %d items and has %d, expected 1600, 200 and 300 to 500", f.updates, f.taken, len(f.scores))
	}
}
