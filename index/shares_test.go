package index

import (
	"fmt"
	"math"
	"testing"
)

// sharedOut is an index with a queue that is shared out by the tags of its packets.
func sharedOut() (x *Index, q QueueID, push func(share string)) {
	x = New()
	q = x.AddQueue()
	x.ShareBy(q, &ShareRule{Name: func(tags []byte) []byte { return tags }, Rest: func([]byte) []byte { return nil }})
	seq := uint64(0)
	return x, q, func(share string) {
		seq++
		x.Push(Entry{Queue: q, Priority: 1, Seq: seq, Tags: []byte(share)}, 0)
	}
}

// take takes what is next, and returns its share and number; claimed, it stays.
func take(x *Index, q QueueID, claims bool) (share string, id ID) {
	p, ok := x.Best(q, Selection{End: Oldest})
	if !ok {
		return "", 0
	}
	share, _ = x.Tags(p.Lane)
	if x.Take(p.ID); claims {
		x.SetState(p.ID, Claimed, 0)
	} else {
		x.Remove(p.ID)
	}
	return share, p.ID
}

func TestAShareWithTenPacketsIsThroughInTheFirstTwentyTakes(t *testing.T) {
	x, q, push := sharedOut()
	for range 100_000 {
		push("large")
	}
	for range 10 {
		push("small")
	}
	small := 0
	for range 20 {
		if share, _ := take(x, q, false); share == "small" {
			small++
		}
	}
	if small != 10 {
		t.Errorf("%d of the small share's packets came in 20 takes, want all 10", small)
	}
}

// A share of weight w and one of weight v that always wait differ by 1/w + 1/v turns at most.
func TestPopsGoByWeight(t *testing.T) {
	x, q, push := sharedOut()
	weights := map[string]uint32{"a": 1, "b": 2, "c": 7, "d": 100}
	for range 3 {
		for name := range weights {
			push(name)
		}
	}
	for name, weight := range weights {
		x.SetShare(q, name, ShareOwn{Weight: weight})
	}
	served := map[string]float64{}
	for i := range 50_000 {
		share, _ := take(x, q, false)
		served[share]++
		push(share)
		for a, w := range weights {
			for b, v := range weights {
				most := 1/float64(w) + 1/float64(v) + 1e-3 // the first turn is one of weight 1
				if i > 300 && math.Abs(served[a]/float64(w)-served[b]/float64(v)) > most {
					t.Fatalf("after %d takes %q had %v turns and %q %v, want %v apart at most", i, a, served[a]/float64(w), b, served[b]/float64(v), most)
				}
			}
		}
	}
}

func TestClaimsGoByWeightWhateverTheNumberOfWorkers(t *testing.T) {
	for _, workers := range []int{1, 2, 5, 11, 22} {
		x, q, push := sharedOut()
		for range 3000 {
			push("heavy")
			push("light")
		}
		x.SetShare(q, "heavy", ShareOwn{Weight: 10})
		served, out := map[string]int{}, []ID{}
		for range 1100 {
			if len(out) == workers {
				x.Remove(out[0])
				out = out[1:]
			}
			share, id := take(x, q, true)
			served[share]++
			out = append(out, id)
		}
		if served["light"] < 90 || served["light"] > 110 {
			t.Errorf("with %d workers the shares had %v of 1100 takes, want 10 to 1", workers, served)
		}
	}
}

// Whoever comes with one packet at a time gets no more than the others.
func TestAShareThatComesNewIsAsIfJustServed(t *testing.T) {
	x, q, push := sharedOut()
	for range 400 {
		for i := range 25 {
			push(fmt.Sprint(i))
		}
	}
	push("new")
	served := 0
	for range 5000 {
		if share, _ := take(x, q, false); share == "new" {
			served++
			push("new")
		}
	}
	if served < 180 || served > 200 {
		t.Errorf("it had %d of 5000 takes, want a 26th", served)
	}
}

func TestSharesOfOnePacketComeInTheOrderOfTheirPushes(t *testing.T) {
	x, q, push := sharedOut()
	for i := range 1000 {
		push(fmt.Sprint(i))
	}
	for i := range 1000 {
		if share, _ := take(x, q, false); share != fmt.Sprint(i) {
			t.Fatalf("share %q came at %d", share, i)
		}
	}
}

// A packet of priority 0 goes with its group, and counts as a take of its own share.
func TestAPacketOfPriorityZeroThatIsTakenIsATurnOfItsShare(t *testing.T) {
	x, q, push := sharedOut()
	push("a")
	zero := x.Push(Entry{Queue: q, Seq: 99, Tags: []byte("a"), Key: []byte("k")}, 0)
	x.Take(zero)
	x.Remove(zero)
	if err := x.Check(); err != nil {
		t.Error(err)
	}
}

// The passes begin anew long before their clock overflows, and the order stays.
func TestTurnsGoOnWhenTheirClockBeginsAnew(t *testing.T) {
	x, q, push := sharedOut()
	for range 20 {
		push("a")
		push("b")
		push("c")
	}
	sh := x.queues.At(uint32(q)).shares
	sh.clock += passEnd - 10*oneTurn
	for s := range sh.each() {
		s.pass += passEnd - 10*oneTurn
		x.placeShare(x.queues.At(uint32(q)), s)
	}
	for i := range 60 {
		if share, _ := take(x, q, false); share != []string{"a", "b", "c"}[i%3] {
			t.Fatalf("take %d came from %q", i, share)
		}
	}
	if sh.clock > passEnd/2 {
		t.Errorf("the clock is at %d", sh.clock)
	}
}

// A queue of many packets is shared out at once, and tells how it gets on.
func TestAFloodedQueueIsSharedOutAtOnce(t *testing.T) {
	x := New()
	q := x.AddQueue()
	for i := range uint64(30_000) {
		x.Push(Entry{Queue: q, Priority: 1, Seq: i + 1, Key: []byte("flood")}, 0)
	}
	x.Push(Entry{Queue: q, Priority: 1, Seq: 99_999, Key: []byte("other")}, 0)
	told := 0
	x.OnProgress(func() { told++ })
	x.ShareBy(q, &ShareRule{})
	if first := x.Next(q, Selection{End: Oldest}, 0, 2, nil); first[0].Seq != 99_999 && first[1].Seq != 99_999 {
		t.Errorf("the first two are %+v, want the other share's among them", first)
	}
	if n := x.Shares(q); n != 3 || told != 30_001/progressStep {
		t.Errorf("there are %d shares, and it told %d times of progress", n, told)
	}
}

func TestSharesThatComeAndGoLeaveNoMemory(t *testing.T) {
	x, q, push := sharedOut()
	for range 10 {
		for i := range 20_000 {
			push(fmt.Sprint("tenant ", i))
		}
		for _, id := take(x, q, false); id != 0; {
			_, id = take(x, q, false)
		}
	}
	sh := x.queues.At(uint32(q)).shares
	if len(sh.all) != 1 || len(sh.byName) != 1 || len(sh.sets) != 0 || sh.lanes != 0 || cap(sh.heaps[open]) > 1 || x.lanes.Live != 1 {
		t.Errorf("left are %d shares, %d names, %d sets, %d lanes, a heap for %d", len(sh.all), len(sh.byName), len(sh.sets), x.lanes.Live, cap(sh.heaps[open]))
	}
}

// What is on disk comes to a queue at a start, and what it has when share-by is set is sorted: no
// limit refuses that.
func TestPacketsBeyondTheLimitOfSharesStayInTheEmptyOne(t *testing.T) {
	fill := func(x *Index, q QueueID) {
		for i := range uint64(MaxShareLanes + 50) {
			x.Push(Entry{Queue: q, Priority: 1, Seq: i + 1, Key: fmt.Append(nil, i)}, 0)
		}
	}
	started, sorted := New(), New()
	q := started.AddQueue()
	started.ShareBy(q, &ShareRule{})
	fill(started, q)
	sorted.AddQueue()
	fill(sorted, q)
	sorted.ShareBy(q, &ShareRule{})
	for name, x := range map[string]*Index{"a start": started, "a change": sorted} {
		x.Push(Entry{Queue: q, Priority: 1, Seq: 1 << 30, Key: []byte("7")}, 0)
		if shares := x.Shares(q); shares != MaxShareLanes+1 || x.Lanes(q) != MaxShareLanes {
			t.Errorf("%s made %d shares of %d lanes", name, shares, x.Lanes(q))
		}
		for share, want := range map[string]int{"": 50, "7": 2} {
			if n := x.Ready(q, Selection{Share: []byte(share)}, 100); n != want {
				t.Errorf("after %s share %q has %d packets, want %d", name, share, n, want)
			}
		}
	}
}

// A take with a filter leaves the shares that it passes over where they are, and asks none behind
// the one that gives.
func TestATakeWithAFilterMovesNoShare(t *testing.T) {
	const shares = 1000
	x, q, push := sharedOut()
	for i := range shares {
		push(fmt.Sprint(i))
	}
	heap := &x.queues.At(uint32(q)).shares.heaps[open]
	for want, most := range map[string]int{"": shares, "0": 1, "500": shares} {
		asked, moved := 0, 0
		s := Selection{Limits: true, Filter: func(tags string) bool {
			asked++
			moved += shares - len(*heap)
			return tags == want
		}}
		p, ok := x.Best(q, s)
		if want == "" {
			most *= 2
			x.Next(q, s, 0, 2, nil)
		}
		if tags, _ := x.Tags(p.Lane); ok != (want != "") || tags != want || moved > 0 || asked > most {
			t.Errorf("for %q it took %q, after %d asks and %d moves", want, tags, asked, moved)
		}
	}
}

// Passes that the clock has left behind are equal from then on.
func TestAClockThatBeginsAnewKeepsTheHeaps(t *testing.T) {
	x, q, push := sharedOut()
	for i, share := range []string{"a", "b", "c", "d", "e"} {
		for range 5 {
			push(share)
		}
		x.SetShare(q, share, ShareOwn{Weight: [...]uint32{1, 1000, 3, 500, 7}[i]})
	}
	for range 12 {
		take(x, q, true)
	}
	sh := x.queues.At(uint32(q)).shares
	sh.clock += 1 << 40
	sh.rebase()
	if err := x.Check(); err != nil {
		t.Error(err)
	}
}
