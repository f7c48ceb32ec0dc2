package netproto

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// crowd is connections that want a turn, and who had how many.
type crowd struct {
	fair  fair
	clock int64           // in microseconds
	costs map[*conn]int64 // of a turn
	came  map[*conn]int64
	worst map[*conn]int64 // wait
	had   map[*conn]int
}

func newCrowd() *crowd {
	return &crowd{
		costs: map[*conn]int64{}, came: map[*conn]int64{}, worst: map[*conn]int64{}, had: map[*conn]int{},
	}
}

func (w *crowd) add(n int, cost int64) (added []*conn) {
	for range n {
		c := &conn{}
		w.costs[c] = cost
		added = append(added, c)
	}
	return added
}

// turn is one of the loop that serves at most so many. It returns who was served.
func (w *crowd) turn(come []*conn, most int) (served []*conn) {
	begun := w.clock
	for _, c := range come {
		w.came[c] = begun
	}
	w.fair.begin(come)
	for w.clock-begun < maxTurn.Microseconds() && len(served) < most {
		c := w.fair.next()
		if c == nil {
			break
		}
		w.worst[c] = max(w.worst[c], w.clock-w.came[c])
		w.clock += w.costs[c]
		c.known = true
		w.fair.charge(c, w.costs[c], 0)
		w.had[c]++
		served = append(served, c)
	}
	w.fair.end()
	return served
}

func TestAShortRequestWaitsForATurnAndNotForAllLongOnes(t *testing.T) {
	for _, k := range []struct {
		kind   string
		fresh  bool // each long one comes with a new connection
		behind int  // so many short ones
	}{{"long", false, 0}, {"of new connections", true, 0}, {"behind a short one", false, 1}, {"behind ten", false, 10}} {
		w := newCrowd()
		long, short := w.add(300, 11_000), w.add(5, 50)
		w.turn(short, 5) // so these are known
		come := append(slices.Clone(long), short...)
		for range 4_000 {
			come = w.turn(come, 10_000)
			for i, c := range come {
				switch {
				case slices.Contains(short, c):
				case k.fresh:
					come[i] = w.add(1, 11_000)[0]
				case w.had[c]%(1+k.behind) < k.behind:
					w.costs[c] = 50
				default:
					w.costs[c] = 11_000
				}
			}
			if w.clock < 10_000_000 { // it must be seen who asks for much
				clear(w.worst)
			}
		}
		for _, c := range short {
			if limit := int64(2 * (20_000 + 11_000)); w.worst[c] > limit || w.had[c] < 1_000 {
				t.Errorf("long requests %s: a short one waited for %d us of others, more than %d, and %d were served", k.kind, w.worst[c], limit, w.had[c])
			}
		}
		for _, c := range long {
			if !k.fresh && w.had[c] == 0 {
				t.Fatalf("long requests %s: one was not served", k.kind)
			}
		}
	}
}

func TestANewClientIsNotTakenForOneThatAsksForMuchWhereManyAreServed(t *testing.T) {
	w := newCrowd()
	come := append(w.add(300, 11_000), w.add(600, 50)...)
	for i := range 4_000 {
		come = slices.DeleteFunc(w.turn(come, 10_000), func(c *conn) bool { return w.costs[c] == 49 })
		if i%100 == 99 {
			come = append(come, w.add(1, 49)...)
		}
	}
	served := 0
	for c, cost := range w.costs {
		if cost == 49 && w.worst[c] > 200_000 {
			t.Errorf("it waited for %d us", w.worst[c])
		}
		if cost == 49 {
			served += w.had[c]
		}
	}
	if served < 39 { // the last one of 40 may still wait
		t.Errorf("%d new clients of 40 were served", served)
	}
}

func TestAShortRequestDoesNotWaitForAllWhoHangUp(t *testing.T) {
	w := newCrowd()
	gone, short := w.add(100, 9_000), w.add(1, 50)
	for _, c := range gone {
		c.known, c.hungUp = true, true
	}
	for come := append(gone, short...); w.had[short[0]] == 0; come = nil {
		w.turn(come, 10_000)
	}
	if w.worst[short[0]] > 0 {
		t.Errorf("it waited for %d us", w.worst[short[0]])
	}
}

func TestEachLineHasHalfOfTheTime(t *testing.T) {
	w := newCrowd()
	lengthy, quick := w.add(20, 2_000), w.add(1_000, 50)
	come := append(slices.Clone(quick), lengthy...)
	for range 1_000 {
		come = w.turn(come, 10_000)
	}
	used := map[bool]int64{}
	for c, n := range w.had {
		used[w.costs[c] > 50] += int64(n) * w.costs[c]
	}
	if q, l := used[false], used[true]; q*10 < l*9 || l*10 < q*9 {
		t.Errorf("the quick had %d us, the others %d", q, l)
	}
}

func TestNobodyIsServedForLongBecauseItDidNotComeBefore(t *testing.T) {
	for _, cost := range []int64{50, 2_000} { // of those that come later
		w := newCrowd()
		first, later := w.add(1, 2_050-cost), w.add(1_000, cost)
		for come := later; len(w.had) < len(later); come = nil {
			w.turn(come, 10_000)
		}
		for range 10_000 {
			w.turn(first, 10_000)
		}
		clear(w.worst)
		clear(w.had)
		come := append(slices.Clone(later), first...)
		for range 100 {
			come = w.turn(come, 10_000)
		}
		if c := first[0]; w.worst[c] > 60_000 || w.had[c] < 25 {
			t.Errorf("turns of %d us: who came first waited for %d us, and had %d turns", cost, w.worst[c], w.had[c])
		}
	}
}

func TestWhoFillsEachBatchLeavesTheNextToOthersAlsoWhileTheClockStands(t *testing.T) {
	w := newCrowd()
	quick, others := w.add(2, 0), w.add(2, 2_000)
	w.turn(others, 2)
	come := append(slices.Clone(quick), others...)
	for _, c := range others {
		w.costs[c] = 0
	}
	w.fair.ahead = 0
	for range 100 {
		come = w.turn(come, 1)
	}
	for _, c := range others {
		if w.had[c] < 2 {
			t.Error("one was not served")
		}
	}
}

// Whatever the turns take and whoever comes back at once: all are served.
func TestNobodyStarves(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		w := newCrowd()
		all := w.add(2+r.IntN(40), 0)
		most, eager := 1+r.IntN(4), r.IntN(2) == 0
		costs := []int64{0, 1, 50, 990, 1_000, 11_000, 100_000}[r.IntN(4):]
		come := all
		var away []*conn
		for range 6_000 {
			for _, c := range all {
				w.costs[c] = costs[r.IntN(len(costs))]
			}
			come = w.turn(come, most)
			come, away = append(come, away...), nil
			var back []*conn
			for _, c := range come { // some later than others
				if eager || r.IntN(3) == 0 {
					back = append(back, c)
				} else {
					away = append(away, c)
				}
			}
			come = back
		}
		for _, c := range all {
			if w.had[c] == 0 || w.worst[c] > int64(400_000*len(all)) {
				t.Fatalf("seed %d: of %d connections, %d a turn, one had %d turns and waited for %d us", seed, len(all), most, w.had[c], w.worst[c])
			}
		}
	}
}

func TestWhoWaitsForItsTurnIsNotLate(t *testing.T) {
	var frames timeline
	c := &conn{listed: true}
	frames.set(c, &c.frame, 10)
	if frames.due(10) != nil || c.frame.in == nil {
		t.Error("its deadline has ended")
	}
	c.listed = false
	if later := 10 + turnTime.Milliseconds(); frames.due(later-1) != nil || frames.due(later) != c {
		t.Error("it does not end later")
	}
}
