package loadgen

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
)

func TestUpdatesAreSpreadEvenlyAndFillingMakesEachItemOnce(t *testing.T) {
	items := Items{First: 500, Live: 100, Spread: 10}
	shifted, amounts, filled := map[uint32]int{}, map[uint32]int{}, map[uint32]int{}
	const requests = 100_000
	for n := range uint64(requests) {
		item, by := items.shift(n)
		shifted[item]++
		amounts[by]++
	}
	for n := range uint64(items.Live) {
		item, by := items.fill(n)
		filled[item]++
		if by < 1 || by > 10 {
			t.Errorf("filling adds %d, expected 1 to 10", by)
		}
	}
	for item := uint32(501); item <= 600; item++ {
		// 1000 are expected; 5 standard deviations are 160
		if shifted[item] < 840 || shifted[item] > 1160 || filled[item] != 1 {
			t.Errorf("item %d is shifted %d times and filled %d times, expected about 1000 and 1", item, shifted[item], filled[item])
		}
	}
	for by := uint32(1); by <= 10; by++ {
		if amounts[by] < 9_500 || amounts[by] > 10_500 {
			t.Errorf("%d is added %d times, expected about 10000", by, amounts[by])
		}
	}
	if len(shifted) != 100 || len(amounts) != 10 || len(filled) != 100 {
		t.Errorf("%d items, %d amounts, %d filled; expected 100, 10, 100", len(shifted), len(amounts), len(filled))
	}
}

func TestTheSeedDecidesWhichItemsAreShifted(t *testing.T) {
	sequence := func(seed uint64) string {
		items, s := Items{Live: 1000, Seed: seed}, ""
		for n := range uint64(20) {
			item, by := items.shift(n)
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

func TestItemsOutOfRangeAreRefused(t *testing.T) {
	for name, items := range map[string]Items{
		"none":        {},
		"too many":    {Live: MaxItems + 1},
		"numbers end": {First: math.MaxUint32 - 9, Live: 10},
		"negative":    {Live: 1, Spread: -1},
		"wide":        {Live: 1, Spread: MaxSpread + 1},
	} {
		if items.Check() == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := (Items{First: math.MaxUint32 - 10, Live: 10, Spread: MaxSpread}).Check(); err != nil {
		t.Error(err)
	}
}

// runs is one load of a board: fill it, shift it, and take from it while it is shifted.
func runs(ctx context.Context, t *testing.T, engine func(*run, []dialed), addr string, items Items) {
	t.Helper()
	group := func(name string, conns, depth int, count int64, proto func() Protocol) Group {
		return Group{Name: name, Conns: conns, Depth: depth, Count: count, New: proto}
	}
	for _, groups := range [][]Group{
		{group("fill", 3, 5, int64(items.Live), func() Protocol { return BarbershopFill(items) })},
		{group("update", 4, 16, 1000, func() Protocol { return BarbershopUpdate(items) })},
		{
			group("update", 2, 1, 100, func() Protocol { return BarbershopUpdate(items) }),
			group("next", 2, 7, 200, func() Protocol { return BarbershopNext(items.Later) }),
		},
	} {
		result, err := runOn(ctx, t, engine, Spec{Addr: addr, Limit: testLimit, Groups: groups})
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

func TestABoardIsFilledShiftedAndTakenFrom(t *testing.T) {
	for name, engine := range engines() {
		for dialect, later := range map[string]bool{"document": false, "later": true} {
			t.Run(name+" in dialect "+dialect, func(t *testing.T) {
				f := startFakeBarbershop(t)
				items := Items{Live: 500, Spread: 50, Later: later}
				runs(t.Context(), t, engine, f.addr, items)
				f.mu.Lock()
				defer f.mu.Unlock()
				if f.updates != 1600 || f.taken != 200 || len(f.scores) < 300 || len(f.scores) > 500 {
					t.Errorf("the server saw %d updates, gave %d items and has %d, expected 1600, 200 and 300 to 500", f.updates, f.taken, len(f.scores))
				}
			})
		}
	}
}
