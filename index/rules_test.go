package index

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// bench is an index with one queue, whose packets are told apart by their sequence.
type bench struct {
	*Index
	t   *testing.T
	q   QueueID
	seq uint64
}

func newBench(t *testing.T) *bench {
	x := New()
	t.Cleanup(func() {
		if err := x.Check(); err != nil {
			t.Error(err)
		}
	})
	return &bench{Index: x, t: t, q: x.AddQueue()}
}

// push adds a packet with the next sequence, which it returns. A key of "-" is none.
func (b *bench) push(priority uint32, key string, expiry int64) uint64 {
	b.seq++
	e := Entry{Queue: b.q, Priority: priority, Seq: b.seq, Expiry: expiry, Size: 10}
	if key != "-" {
		e.Key = []byte(key)
	}
	if b.Push(e, 0) == 0 {
		b.t.Fatal("the push was refused")
	}
	return b.seq
}

// pop takes as a pinpriq pop does and returns the sequences.
func (b *bench) pop(lim Limit) []uint64 {
	var seqs []uint64
	for _, p := range b.Pop(b.q, Selection{Group: true, Limit: lim}, nil) {
		seqs = append(seqs, p.Seq)
	}
	return seqs
}

func (b *bench) popIs(want ...uint64) {
	b.t.Helper()
	if got := b.pop(Limit{}); !slices.Equal(got, want) {
		b.t.Fatalf("pop gave %v, want %v", got, want)
	}
}

// claim claims the selected packet.
func (b *bench) claim(leaseEnd int64) Packet {
	p, _ := b.Best(b.q, Selection{})
	b.SetState(p.ID, Claimed, leaseEnd)
	return p
}

// advance makes all changes that are due when both clocks show a moment.
func (b *bench) advance(at int64) (events []Event) {
	for {
		ev, ok := b.Advance(at, at)
		if !ok {
			return events
		}
		events = append(events, ev)
	}
}

// checkRules runs each rule on an index of its own.
func checkRules(t *testing.T, rules map[string]func(b *bench)) {
	for name, rule := range rules {
		t.Run(name, func(t *testing.T) { rule(newBench(t)) })
	}
}

func TestSelectionRules(t *testing.T) {
	checkRules(t, map[string]func(b *bench){
		"priority 1 comes before priority 2, and 2 before 4294967295": func(b *bench) {
			last, two, one := b.push(math.MaxUint32, "a", 0), b.push(2, "b", 0), b.push(1, "c", 0)
			b.popIs(one)
			b.popIs(two)
			b.popIs(last)
			b.popIs()
		},
		"of equal priority the newest comes first": func(b *bench) {
			first, second := b.push(1, "a", 0), b.push(1, "b", 0)
			b.popIs(second)
			b.popIs(first)
		},
		"the oldest comes first for a consumer that asks for it": func(b *bench) {
			first := b.push(2, "a", 0)
			b.push(2, "b", 0)
			b.push(3, "c", 0)
			if p, ok := b.Best(b.q, Selection{End: Oldest}); !ok || p.Seq != first {
				b.t.Fatalf("best is %+v", p)
			}
		},
		"priority 0 is never selected": func(b *bench) {
			b.push(0, "a", 0)
			b.push(0, "-", 0)
			b.popIs()
			if c := b.Counts(b.q); c.Ready != 0 || c.Unselectable != 2 || c.Len() != 2 {
				b.t.Fatalf("counts are %+v", c)
			}
		},
		"a pop without groups takes the selected packet only": func(b *bench) {
			b.push(1, "a", 0)
			two := b.push(1, "a", 0)
			if got := b.Pop(b.q, Selection{}, nil); len(got) != 1 || got[0].Seq != two {
				b.t.Fatalf("pop gave %+v", got)
			}
		},
		"a packet pushed twice is kept twice": func(b *bench) {
			one, two := b.push(1, "a", 7), b.push(1, "a", 7)
			b.popIs(two, one)
		},
		"a returned packet keeps its place in the order": func(b *bench) {
			one, two, three := b.push(1, "a", 0), b.push(1, "b", 0), b.push(1, "c", 0)
			b.popIs(three)
			p := b.claim(0)
			four := b.push(1, "d", 0)
			b.SetState(p.ID, Ready, 0)
			b.popIs(four)
			b.popIs(two)
			b.popIs(one)
		},
	})
}

func TestGroupRules(t *testing.T) {
	checkRules(t, map[string]func(b *bench){
		"a pop takes all packets of the key": func(b *bench) {
			one, other, two := b.push(1, "a", 0), b.push(1, "b", 0), b.push(1, "a", 0)
			b.popIs(two, one)
			b.popIs(other)
		},
		"priority 0 leaves with a selected packet of its key": func(b *bench) {
			zero, one := b.push(0, "a", 0), b.push(1, "a", 0)
			b.popIs(one, zero)
		},
		"a group comes selected first, then by priority, newest first, priority 0 last": func(b *bench) {
			zeroOld, three := b.push(0, "a", 0), b.push(3, "a", 0)
			two, twoNew := b.push(2, "a", 0), b.push(2, "a", 0)
			zeroNew, one := b.push(0, "a", 0), b.push(1, "a", 0)
			b.popIs(one, twoNew, two, three, zeroNew, zeroOld)
		},
		"the packet selected at the oldest end comes first all the same": func(b *bench) {
			one, two, three := b.push(1, "a", 0), b.push(1, "a", 0), b.push(1, "a", 0)
			got := b.Pop(b.q, Selection{End: Oldest, Group: true}, nil)
			if len(got) != 3 || got[0].Seq != one || got[1].Seq != three || got[2].Seq != two {
				b.t.Fatalf("pop gave %+v", got)
			}
		},
		"empty keys are equal": func(b *bench) {
			one, two := b.push(2, "", 0), b.push(1, "", 0)
			b.popIs(two, one)
		},
		"packets without a key belong to no group": func(b *bench) {
			one, two := b.push(1, "-", 0), b.push(1, "-", 0)
			empty := b.push(1, "", 0)
			b.popIs(empty)
			b.popIs(two)
			b.popIs(one)
		},
		"the key of another queue is another key": func(b *bench) {
			other := b.AddQueue()
			b.Push(Entry{Queue: other, Priority: 1, Seq: 99, Key: []byte("a")}, 0)
			b.popIs(b.push(1, "a", 0))
			if b.Counts(other).Ready != 1 {
				b.t.Fatal("the other queue lost its packet")
			}
		},
		"a claimed packet of the key stays out of the group": func(b *bench) {
			one, two := b.push(1, "a", 0), b.push(1, "a", 0)
			if p := b.claim(50); p.Seq != two {
				b.t.Fatalf("claimed %+v", p)
			}
			b.popIs(one)
			b.advance(50)
			b.popIs(two)
		},
	})
}

// pushWide adds a wide packet with the next sequence, which it returns.
func (b *bench) pushWide(priority uint32, key string) uint64 {
	b.seq++
	if b.Push(Entry{Queue: b.q, Wide: true, Priority: priority, Seq: b.seq, Key: []byte(key), Size: 10}, 0) == 0 {
		b.t.Fatal("the push was refused")
	}
	return b.seq
}

// narrowIs fails the test unless a narrow pop with groups at an end takes these sequences.
func (b *bench) narrowIs(end End, want ...uint64) {
	b.t.Helper()
	var got []uint64
	for _, p := range b.Pop(b.q, Selection{End: end, Fits16: true, Group: true}, nil) {
		got = append(got, p.Seq)
	}
	if !slices.Equal(got, want) {
		b.t.Fatalf("a narrow pop gave %v, want %v", got, want)
	}
}

func TestNarrowRules(t *testing.T) {
	checkRules(t, map[string]func(b *bench){
		"a narrow selection leaves wide packets at both ends": func(b *bench) {
			oldest, old := b.pushWide(1, "a"), b.push(2, "b", 0)
			new, newest := b.push(2, "c", 0), b.pushWide(1, "d")
			b.narrowIs(Newest, new)
			b.narrowIs(Oldest, old)
			b.narrowIs(Newest)
			b.popIs(newest)
			b.popIs(oldest)
		},
		"a queue of wide packets has nothing for a narrow selection": func(b *bench) {
			b.pushWide(1, "a")
			_, best := b.Best(b.q, Selection{Fits16: true})
			if next := b.Next(b.q, Selection{Fits16: true}, 0, 9, nil); best || len(next) > 0 {
				b.t.Fatalf("best is %v, next are %v", best, next)
			}
			if b.WideLanes(b.q) != 1 {
				b.t.Fatal("it has wide packets in some lane")
			}
		},
		"a narrow pop leaves the wide packets of its group": func(b *bench) {
			wide, one, two := b.pushWide(1, "a"), b.push(2, "a", 0), b.push(0, "a", 0)
			b.narrowIs(Newest, one, two)
			b.popIs(wide)
		},
		"a narrow pop leaves the wide packets of a large group": func(b *bench) {
			var wide, narrow []uint64
			for range 100 {
				wide = slices.Insert(wide, 0, b.pushWide(1, "a"))
				narrow = slices.Insert(narrow, 0, b.push(1, "a", 0))
			}
			b.narrowIs(Newest, narrow...)
			if err := b.Check(); err != nil {
				b.t.Fatal(err)
			}
			b.popIs(wide...)
		},
		"a selection that takes wide packets takes a group in one order": func(b *bench) {
			one, two, three, four := b.pushWide(1, "a"), b.push(1, "a", 0), b.pushWide(1, "a"), b.push(2, "a", 0)
			b.popIs(three, two, one, four)
		},
		"wide packets that a narrow pop leaves do not count towards its limit": func(b *bench) {
			one := b.push(1, "a", 0)
			b.pushWide(1, "a")
			two := b.push(1, "a", 0)
			got := b.Pop(b.q, Selection{Fits16: true, Group: true, Limit: Limit{Packets: 2}}, nil)
			if len(got) != 2 || got[0].Seq != two || got[1].Seq != one {
				b.t.Fatalf("pop gave %+v", got)
			}
		},
	})
}

func TestLimitRules(t *testing.T) {
	checkRules(t, map[string]func(b *bench){
		"a group that just fits the limit is taken whole": func(b *bench) {
			for _, lim := range []Limit{{Bytes: 30}, {Packets: 3}} {
				one, two, three := b.push(1, "a", 0), b.push(1, "a", 0), b.push(1, "a", 0)
				if got := b.pop(lim); !slices.Equal(got, []uint64{three, two, one}) {
					b.t.Fatalf("pop with %+v gave %v", lim, got)
				}
			}
		},
		"the first packet that does not fit the limit stays, and all behind it": func(b *bench) {
			for _, lim := range []Limit{{Bytes: 29}, {Packets: 2}} {
				one, two, three := b.push(1, "a", 0), b.push(1, "a", 0), b.push(1, "a", 0)
				if got := b.pop(lim); !slices.Equal(got, []uint64{three, two}) {
					b.t.Fatalf("pop with %+v gave %v", lim, got)
				}
				b.popIs(one)
			}
		},
		"of a large group the first of the order are taken and the last stay": func(b *bench) {
			var ones, zeros []uint64
			for range 300 {
				ones = slices.Insert(ones, 0, b.push(1, "a", 0))
				zeros = slices.Insert(zeros, 0, b.push(0, "a", 0))
			}
			want := slices.Concat(ones, zeros)
			if got := b.pop(Limit{Packets: 450}); !slices.Equal(got, want[:450]) {
				b.t.Fatalf("pop gave %v", got)
			}
			if c := b.Counts(b.q); c.Ready != 0 || c.Unselectable != 150 {
				b.t.Fatalf("counts are %+v", c)
			}
		},
		"what a packet has beyond its size counts, too, rounded up": func(b *bench) {
			for seq := range uint64(3) {
				b.Push(Entry{Queue: b.q, Priority: 1, Seq: seq, Key: []byte("a"), Size: 1, TagBytes: 65}, 0)
			}
			if c := b.Counts(b.q); c.Bytes != 3 {
				b.t.Fatalf("counts are %+v", c)
			}
			if got := b.pop(Limit{Bytes: 2*97 - 1}); !slices.Equal(got, []uint64{2}) {
				b.t.Fatalf("pop gave %v", got)
			}
			if got := b.pop(Limit{Bytes: 2 * 97}); !slices.Equal(got, []uint64{1, 0}) {
				b.t.Fatalf("pop gave %v", got)
			}
		},
		"the selected packet is taken whatever its size": func(b *bench) {
			b.push(1, "a", 0)
			two := b.push(1, "a", 0)
			if got := b.pop(Limit{Bytes: 1}); !slices.Equal(got, []uint64{two}) {
				b.t.Fatalf("pop gave %v", got)
			}
		},
	})
}

func TestTimeRules(t *testing.T) {
	checkRules(t, map[string]func(b *bench){
		"an expired packet is not in the group and does not lift it": func(b *bench) {
			stays, gone := b.push(2, "a", 0), b.push(1, "a", 100)
			better := b.push(1, "b", 0)
			if ev := b.advance(100); len(ev) != 1 || ev[0].Kind != Expired || ev[0].Packet.Seq != gone {
				b.t.Fatalf("events are %+v", ev)
			}
			b.popIs(better)
			b.popIs(stays)
		},
		"expiry 0 is never": func(b *bench) {
			one := b.push(1, "a", 0)
			if ev := b.advance(math.MaxInt64); len(ev) != 0 {
				b.t.Fatalf("events are %+v", ev)
			}
			b.popIs(one)
		},
		"a packet lives until its millisecond": func(b *bench) {
			b.push(1, "a", 100)
			if ev := b.advance(99); len(ev) != 0 {
				b.t.Fatalf("events at 99 are %+v", ev)
			}
			if wait, ok := b.Wait(40, 0); !ok || wait != 60 {
				b.t.Fatalf("the wait is %d", wait)
			}
			b.advance(100)
			b.popIs()
		},
		"a claimed packet that expires stays until the end of its lease and never comes back": func(b *bench) {
			b.push(1, "a", 20)
			p := b.claim(50)
			if ev := b.advance(49); len(ev) != 0 {
				b.t.Fatalf("events at 49 are %+v", ev)
			}
			if ev := b.advance(50); len(ev) != 1 || ev[0].Kind != Expired || ev[0].Packet.ID != p.ID {
				b.t.Fatalf("events at 50 are %+v", ev)
			}
		},
		"a delayed packet that expires first never becomes ready": func(b *bench) {
			b.Push(Entry{Queue: b.q, Priority: 1, Seq: 9, Expiry: 20, Until: 30}, 0)
			if ev := b.advance(40); len(ev) != 1 || ev[0].Kind != Expired {
				b.t.Fatalf("events are %+v", ev)
			}
		},
		"a moment that has come stays come when the clock goes back": func(b *bench) {
			b.Push(Entry{Queue: b.q, Priority: 1, Seq: 9, Until: 30}, 0)
			b.advance(30)
			b.advance(10)
			b.popIs(9)
		},
	})
}

func TestWhatIsUnknownIsRefused(t *testing.T) {
	b := newBench(t)
	gone := b.Push(Entry{Queue: b.q, Priority: 1, Seq: 1}, 0)
	b.Remove(gone)
	pushes := map[string]Entry{
		"queue 0":                {Priority: 1, Seq: 1},
		"a queue never made":     {Queue: 99, Priority: 1, Seq: 1},
		"a state never heard of": {Queue: b.q, Priority: 1, Seq: 1, State: Damaged + 1},
		"a key that is too long": {Queue: b.q, Priority: 1, Seq: 1, Key: make([]byte, MaxKey+1)},
	}
	for name, e := range pushes {
		if id := b.Push(e, 0); id != 0 {
			t.Errorf("a push to %s gave %d", name, id)
		}
	}
	for _, id := range []ID{0, gone, 77, math.MaxUint32} {
		_, got := b.Get(id)
		_, key := b.Key(id, nil)
		if got || key || b.Remove(id) || b.Move(Packet{ID: id, Queue: b.q, Priority: 1, Seq: 1}) || b.SetState(id, Ready, 0) || b.SetDelivery(id, Delivery{Attempts: 1}) ||
			b.Delivery(id) != (Delivery{}) || b.Before(id) != -1 || b.SetRef(id, 1, 1) {
			t.Errorf("packet %d is known", id)
		}
	}
	for _, q := range []QueueID{0, 99, math.MaxUint32} {
		_, best := b.Best(q, Selection{})
		_, found := b.Only(q, nil)
		if best || found != 0 || b.DropQueue(q) != ErrUnknownQueue || b.Counts(q) != (Counts{}) ||
			len(b.Next(q, Selection{}, 0, 1, nil)) != 0 || len(b.List(q, Ready, Place{}, 1, nil)) != 0 || b.Bands(q) != [len(BandStarts)]int{} {
			t.Errorf("queue %d is known", q)
		}
	}
	for _, l := range []LaneID{0, 99, math.MaxUint32} {
		if _, ok := b.Tags(l); ok {
			t.Errorf("lane %d is known", l)
		}
	}
}

func TestTwoPacketsInOnePlacePanic(t *testing.T) {
	x := New()
	q := x.AddQueue()
	defer func() {
		if recover() == nil {
			t.Error("the second packet was accepted")
		}
	}()
	for range 2 {
		x.Push(Entry{Queue: q, Priority: 1, Seq: 1}, 0)
	}
}

// thirtyLanes is an index with packets of 30 lanes, 100 each, spread over seven priorities.
func thirtyLanes() (x *Index, q QueueID) {
	x = New()
	q = x.AddQueue()
	for i := range uint64(3000) {
		x.Push(Entry{Queue: q, Tags: fmt.Append(nil, "lane ", i%30), Priority: uint32(i%7) + 1, Seq: i}, 0)
	}
	return x, q
}

func TestAFilterIsAskedOnceALane(t *testing.T) {
	x, q := thirtyLanes()
	for _, end := range []End{Newest, Oldest} {
		asked := map[string]int{}
		s := Selection{End: end, Filter: func(tags string) bool {
			asked[tags]++
			return tags == "lane 7"
		}}
		check := func(call string, found []Packet, want int) {
			if len(found) != want {
				t.Errorf("%s gave %d packets, want %d", call, len(found), want)
			}
			for _, p := range found {
				if tags, _ := x.Tags(p.Lane); tags != "lane 7" {
					t.Errorf("%s gave a packet of %s", call, tags)
				}
			}
			for tags, n := range asked {
				if n > 1 {
					t.Errorf("%s asked %s %d times", call, tags, n)
				}
			}
			clear(asked)
		}
		p, _ := x.Best(q, s)
		check("Best", []Packet{p}, 1)
		check("Next", x.Next(q, s, 0, 50, nil), 50)
		check("Next behind others", x.Next(q, s, 80, 50, nil), 20)
	}
}

func TestOnlyFreshLanesAreAskedAbout(t *testing.T) {
	x := New()
	q := x.AddQueue()
	push := func(lane int, seq uint64) {
		x.Push(Entry{Queue: q, Tags: fmt.Append(nil, "lane ", lane), Priority: 1, Seq: seq}, 0)
	}
	for i := range 10_000 {
		push(i, uint64(i))
	}
	x.NoteFresh(q, true)
	asked := 0
	s := Selection{Filter: func(tags string) bool {
		asked++
		return tags == "lane 7"
	}}
	push(3, 20_000)
	push(3, 20_001)
	from, ok := x.Fresh(q, s, 0)
	if ok || asked != 1 {
		t.Errorf("%d lanes were asked about, and one is accepted: %v; want the one that got packets, and no", asked, ok)
	}
	push(7, 20_002)
	if at, ok := x.Fresh(q, s, from); !ok || asked != 2 {
		t.Errorf("lane %d is accepted: %v, and %d were asked about; want the second that got packets, alone", at, ok, asked)
	}
	x.ClearChanged(q)
	if _, ok := x.Fresh(q, s, 0); ok || asked != 2 {
		t.Errorf("a lane is accepted after ClearChanged: %v; %d were asked about", ok, asked)
	}
	x.Refresh(q)
	if _, ok := x.Fresh(q, s, 0); !ok {
		t.Error("no lane is accepted after Refresh")
	}
}

func TestAFilterIsNotAskedForLanesThatComeAfterTheBest(t *testing.T) {
	x, q := thirtyLanes()
	best, _ := x.Best(q, Selection{})
	first, _ := x.Tags(best.Lane)
	asked := 0
	if p, _ := x.Best(q, Selection{Filter: func(tags string) bool {
		asked++
		return tags != first
	}}); p.Lane == best.Lane || asked > 3 {
		t.Errorf("%d lanes were asked for the second best, want 3 at most: %+v", asked, p)
	}
}

func TestAFilterIsAskedOnceALaneAlsoOfPacketsThatCannotBeSelected(t *testing.T) {
	x := New()
	q := x.AddQueue()
	for i := range uint64(300) {
		x.Push(Entry{Queue: q, Tags: fmt.Append(nil, "lane ", i%3), Priority: 1, Seq: i, State: Dead}, 0)
	}
	asked, taken := 0, 0
	for p, takes := range x.Each(q, Dead, Place{}, func(tags string) bool { asked++; return tags == "lane 2" }, nil) {
		if takes != (p.Seq%3 == 2) {
			t.Errorf("packet %d is taken: %v", p.Seq, takes)
		}
		taken++
	}
	if asked != 3 || taken != 300 {
		t.Errorf("of %d packets in 3 lanes the filter was asked %d times", taken, asked)
	}
}

// What a peak took is given back when the index is empty, and steady use allocates nothing.
func TestMemoryFollowsUse(t *testing.T) {
	const n = 200_000
	x, q := fill(n)
	full := x.Memory()
	var dst []Packet
	for range n {
		dst = x.Pop(q, Selection{Group: true}, dst[:0])
	}
	if empty := x.Memory(); empty > full/2 || empty > 16<<20 {
		t.Errorf("empty, the index holds %d bytes of %d", empty, full)
	}
	if perPacket := full / n; perPacket > 100 {
		t.Errorf("a packet takes %d bytes, want 100 at most", perPacket)
	}
	seq := uint64(n)
	if allocs := testing.AllocsPerRun(1000, func() {
		seq++
		pushUnique(x, q, seq)
		dst = x.Pop(q, Selection{Group: true}, dst[:0])
	}); allocs > 0 {
		t.Errorf("a push and a pop allocate %v times", allocs)
	}
	for range n {
		seq++
		pushUnique(x, q, seq)
	}
	if err := x.Check(); err != nil {
		t.Errorf("filled again: %v", err)
	}
}

// Servers have many queues that hold a packet or none.
func TestAQueueIsSmall(t *testing.T) {
	const n = 100_000
	x := New()
	for i := range uint64(n) {
		if q := x.AddQueue(); x.Push(Entry{Queue: q, Priority: 1, Seq: i + 1, Key: []byte("key")}, 0) == 0 {
			t.Fatal("the push was refused")
		}
	}
	if perQueue := x.Memory() / n; perQueue > 256 {
		t.Errorf("a queue with one packet takes %d bytes, want 256 at most", perQueue)
	}
	if err := x.Check(); err != nil {
		t.Error(err)
	}
}
