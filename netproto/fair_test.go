package netproto

import (
	"math/rand/v2"
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
	for w.clock-begun < maxServe.Microseconds() && len(served) < most {
		c := w.fair.next()
		if c == nil {
			break
		}
		w.worst[c] = max(w.worst[c], w.clock-w.came[c])
		w.clock += w.costs[c]
		w.fair.charge(c, w.costs[c], 0)
		w.had[c]++
		served = append(served, c)
	}
	w.fair.end()
	return served
}

func TestAShortRequestWaitsForATurnAndNotForAllLongOnes(t *testing.T) {
	for _, fresh := range []bool{false, true} { // or who asks for long comes with a new connection each time
		w := newCrowd()
		long, short := w.add(300, 11_000), w.add(5, 50)
		come := append(append([]*conn{}, long...), short...)
		w.turn(short, 5) // so these are known
		for range 1_000 {
			come = w.turn(come, 10_000)
			for i, c := range come {
				if fresh && w.costs[c] > 50 {
					delete(w.had, c)
					come[i] = w.add(1, 11_000)[0]
				}
			}
		}
		for _, c := range short {
			if limit := int64(2 * (20_000 + 11_000)); w.worst[c] > limit {
				t.Errorf("new connections %v: a short request waited for %d us of others, more than %d", fresh, w.worst[c], limit)
			}
			if w.had[c] < 500 {
				t.Errorf("new connections %v: the short requests had %d turns", fresh, w.had[c])
			}
		}
		if n := len(long); !fresh && (w.had[long[0]] < 1 || w.had[long[n-1]] < 1) {
			t.Error("long requests are not served")
		}
	}
}

func TestEachLineHasHalfOfTheTime(t *testing.T) {
	w := newCrowd()
	lengthy, quick := w.add(20, 2_000), w.add(1_000, 50)
	come := append(append([]*conn{}, quick...), lengthy...)
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
		come := append(append([]*conn{}, later...), first...)
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
	come := append(append([]*conn{}, quick...), others...)
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
