package index

import (
	"math"
	"slices"
	"testing"
)

// claimAll claims every selectable packet of a queue, oldest first, as a consumer does.
func claimAll(x *Index, q QueueID, leaseEnd int64) {
	for {
		p, ok := x.Best(q, Selection{End: Oldest})
		if !ok {
			return
		}
		x.SetState(p.ID, Claimed, leaseEnd)
		x.SetDelivery(p.ID, Delivery{Token: p.Seq, FirstClaim: 1, LastClaim: 1, Consumer: 1, Attempts: 1, Stored: 1})
	}
}

// seqs are the sequences of packets.
func seqs(packets []Packet) (list []uint64) {
	for _, p := range packets {
		list = append(list, p.Seq)
	}
	return list
}

func TestClockRules(t *testing.T) {
	checkRules(t, map[string]func(b *bench){
		"a jump of the wall clock ends no lease": func(b *bench) {
			b.push(1, "a", 0)
			b.claim(50)
			if ev, ok := b.Advance(math.MaxInt64, 49); ok {
				b.t.Fatalf("the event is %+v", ev)
			}
			if ev, _ := b.Advance(0, 50); ev.Kind != LeaseEnded {
				b.t.Fatalf("the event is %+v", ev)
			}
		},
		"time on the steady clock ends nothing but leases": func(b *bench) {
			for s := Ready; s <= Damaged; s++ {
				b.seq++
				b.Push(Entry{Queue: b.q, Priority: 1, Seq: b.seq, Expiry: 20, State: s, Until: 10}, 0)
			}
			if ev, _ := b.Advance(0, math.MaxInt64); ev.Kind != LeaseEnded {
				b.t.Fatalf("the event is %+v", ev)
			}
			if ev, ok := b.Advance(0, math.MaxInt64); ok {
				b.t.Fatalf("the event is %+v", ev)
			}
		},
		"a claimed packet whose lease ended waits for its expiry by the wall clock": func(b *bench) {
			b.push(1, "a", 20)
			b.claim(50)
			b.Advance(19, 50)
			if wait, ok := b.Wait(19, 50); !ok || wait != 1 {
				b.t.Fatalf("the wait is %d, %v", wait, ok)
			}
		},
		"a wait is that for the clock that comes first": func(b *bench) {
			b.push(1, "a", 1000)
			b.push(2, "b", 0)
			p, _ := b.Best(b.q, Selection{End: Oldest})
			b.SetState(p.ID, Claimed, 30)
			for _, c := range []struct{ now, steady, wait int64 }{{100, 10, 20}, {100, 40, -10}} {
				if wait, ok := b.Wait(c.now, c.steady); !ok || wait != c.wait {
					b.t.Fatalf("the wait at %+v is %d, %v", c, wait, ok)
				}
			}
		},
		"what is due for longer comes first, whatever its clock": func(b *bench) {
			for seq, until := range map[uint64]int64{1: 30, 2: 50} {
				b.Push(Entry{Queue: b.q, Priority: 1, Seq: seq, State: Delayed, Until: until}, 0)
			}
			b.Push(Entry{Queue: b.q, Priority: 1, Seq: 3, State: Claimed, Until: 1040}, 0)
			for _, want := range []uint64{1, 3, 2} {
				if p, _ := b.Due(60, 1060); p.Seq != want || p.State == Ready {
					b.t.Fatalf("due is %+v, want %d", p, want)
				}
				if ev, _ := b.Advance(60, 1060); ev.Packet.Seq != want || ev.Packet.State != Ready || ev.Packet.Until != 0 {
					b.t.Fatalf("the event is %+v, want of %d", ev, want)
				}
			}
		},
		"an extended lease ends at its new moment": func(b *bench) {
			b.push(1, "a", 0)
			p := b.claim(50)
			b.SetState(p.ID, Claimed, 90)
			if ev := b.advance(89); ev != nil {
				b.t.Fatalf("events at 89 are %+v", ev)
			}
			if ev := b.advance(90); len(ev) != 1 || ev[0].Kind != LeaseEnded {
				b.t.Fatalf("events at 90 are %+v", ev)
			}
		},
		"a lease without an end, and a delay without one, never end": func(b *bench) {
			for _, s := range []State{Claimed, Delayed} {
				b.push(1, "a", 0)
				p, _ := b.Best(b.q, Selection{})
				b.SetState(p.ID, s, -1)
			}
			if wait, ok := b.Wait(0, 0); ok {
				b.t.Fatalf("the wait is %d", wait)
			}
		},
	})
}

func TestStateRules(t *testing.T) {
	checkRules(t, map[string]func(b *bench){
		"only a ready packet is taken, and goes with its group": func(b *bench) {
			ready := b.push(2, "a", 0)
			for s := Delayed; s <= Damaged; s++ {
				b.seq++
				b.Push(Entry{Queue: b.q, Priority: 1, Seq: b.seq, Key: []byte("a"), State: s}, 0)
			}
			b.popIs(ready)
			b.popIs()
			if c := b.Counts(b.q); c != (Counts{Delayed: 1, Claimed: 1, Dead: 1, Done: 1, Damaged: 1}) {
				b.t.Fatalf("counts are %+v", c)
			}
		},
		"dead and done packets are gone at their expiry": func(b *bench) {
			b.Push(Entry{Queue: b.q, Priority: 1, Seq: 1, Expiry: 30, State: Dead}, 0)
			b.Push(Entry{Queue: b.q, Priority: 0, Seq: 2, Expiry: 20, State: Done, Until: 5}, 0)
			ev := b.advance(30)
			if len(ev) != 2 || ev[0].Packet.State != Done || ev[1].Packet.State != Dead || ev[0].Kind != Expired || ev[1].Kind != Expired {
				b.t.Fatalf("events are %+v", ev)
			}
		},
		"a packet that moves keeps its delivery and its identity": func(b *bench) {
			first := b.push(1, "a", 0)
			p := b.claim(50)
			d := Delivery{Token: 9, Attempts: 3, Origin: 4, Stored: 1}
			b.SetDelivery(p.ID, d)
			p.Priority, p.Seq = 7, first+100
			b.Move(p)
			got, ok := b.Find(first)
			if !ok || got.Identity != first || got.Seq != first+100 || got.Priority != 7 || got.Until != 50 || b.Delivery(got.ID) != d {
				b.t.Fatalf("found %+v with %+v", got, b.Delivery(got.ID))
			}
			if _, ok := b.Find(first + 100); ok {
				b.t.Fatal("a packet is found by its place")
			}
		},
		"the delivery is there after the lease ended": func(b *bench) {
			b.push(1, "a", 0)
			p := b.claim(50)
			b.SetDelivery(p.ID, Delivery{Attempts: 2, Consumer: 7, Stored: 3})
			if ev := b.advance(50); ev[0].Packet.Consumer != 7 || ev[0].Packet.Stored != 3 || b.Delivery(p.ID).Attempts != 2 {
				b.t.Fatalf("the event is %+v with %+v", ev[0], b.Delivery(p.ID))
			}
		},
		"an expired packet says in its event what the store has of it": func(b *bench) {
			b.Push(Entry{Queue: b.q, Priority: 1, Seq: 9, Identity: 4, Expiry: 20, Delivery: Delivery{Stored: 5}}, 0)
			if ev := b.advance(20); len(ev) != 1 || ev[0].Packet.Stored != 5 || ev[0].Packet.Identity != 4 {
				b.t.Fatalf("events are %+v", ev)
			}
		},
		"a number that is used again brings nothing along": func(b *bench) {
			b.Push(Entry{Queue: b.q, Priority: 1, Seq: 9, Identity: 4, Expiry: 20, Delivery: Delivery{Stored: 5}}, 0)
			b.pop(Limit{})
			b.push(1, "a", 0)
			if p, _ := b.Best(b.q, Selection{}); p.Identity != b.seq || p.Stored != 0 || p.Expiry != 0 {
				b.t.Fatalf("the packet is %+v", p)
			}
		},
	})
}

func TestListRules(t *testing.T) {
	checkRules(t, map[string]func(b *bench){
		"ready packets of all lanes come by priority, 0 first, then oldest first": func(b *bench) {
			two, wide, zero := b.push(2, "a", 0), b.pushWide(2, "b"), b.push(0, "c", 0)
			one, last := b.push(1, "d", 0), b.pushWide(math.MaxUint32, "e")
			if got := seqs(b.List(b.q, Ready, Place{}, 9, nil)); !slices.Equal(got, []uint64{zero, one, two, wide, last}) {
				b.t.Fatalf("the list is %v", got)
			}
		},
		"pages follow each other although packets go between them": func(b *bench) {
			var want, got []uint64
			for i := range uint32(200) {
				b.push(i%3+1, "a", 0)
			}
			claimAll(b.Index, b.q, 0)
			for _, p := range b.List(b.q, Claimed, Place{}, 1000, nil) {
				want = append(want, p.Seq)
			}
			for after := (Place{}); ; {
				page := b.List(b.q, Claimed, after, 7, nil)
				if len(page) == 0 {
					break
				}
				got = append(got, seqs(page)...)
				last := page[len(page)-1]
				after = last.Place()
				b.Remove(last.ID)
			}
			if len(want) != 200 || !slices.Equal(got, want) {
				b.t.Fatalf("pages gave %v, want %v", got, want)
			}
		},
		"nothing is behind the last place": func(b *bench) {
			b.push(1, "a", 0)
			for _, after := range []Place{{Priority: 1, Seq: b.seq}, {Priority: 1, Seq: math.MaxUint64}, {Priority: math.MaxUint32, Seq: math.MaxUint64}} {
				if got := b.List(b.q, Ready, after, 9, nil); len(got) > 0 {
					b.t.Fatalf("behind %v is %v", after, got)
				}
			}
		},
		"no packet is in a state that does not exist": func(b *bench) {
			b.push(1, "a", 0)
			p, _ := b.Best(b.q, Selection{})
			for _, s := range []State{0, Damaged + 1, math.MaxUint8} {
				if got := b.List(b.q, s, Place{}, 9, nil); len(got) > 0 || b.SetState(p.ID, s, 0) {
					b.t.Fatalf("in state %d are %v", s, got)
				}
			}
		},
	})
}

// The table grows and shrinks with the packets, and ends with the last one.
func TestEveryPacketIsFoundByItsIdentity(t *testing.T) {
	x := New()
	q := x.AddQueue()
	const n = 5000
	check := func(first, last uint64) {
		t.Helper()
		for id := uint64(1); id <= n; id++ {
			if p, ok := x.Find(id); ok != (id >= first && id <= last) || ok && p.Identity != id {
				t.Fatalf("Find(%d) = %+v, %v", id, p, ok)
			}
		}
		if err := x.Check(); err != nil {
			t.Fatal(err)
		}
	}
	for i := range uint64(n) {
		pushUnique(x, q, i+1)
		if i == n/2 {
			check(1, n/2+1)
		}
	}
	check(1, n)
	for i := range uint64(n) {
		if p, ok := x.Find(i + 1); !ok || !x.Remove(p.ID) {
			t.Fatalf("packet %d was not found", i+1)
		}
		if i == n-20 {
			check(n-18, n)
		}
	}
	check(0, 0)
	if x.identities.built != 0 || paged(&x.identities.next) > 20<<10 || paged(&x.identities.buckets.heads) > 20<<10 {
		t.Errorf("an empty index keeps a table of %d bytes", paged(&x.identities.next)+paged(&x.identities.buckets.heads))
	}
	for i := range uint64(n / 5) {
		pushUnique(x, q, i+1)
	}
	check(1, n/5)
}

func TestAClaimedPacketIsSmall(t *testing.T) {
	const n = 200_000
	x, q := fillList(n)
	claimAll(x, q, 1000)
	claimed := x.Memory()
	x.BuildIdentities(allBuilt)
	found := x.Memory()
	if claimed/n > 150 || (found-claimed)/n > 8 {
		t.Errorf("a claimed packet takes %d bytes, want 150 at most, and %d in the table of identities, want 8", claimed/n, (found-claimed)/n)
	}
}

// Workers that keep up with their queue find it empty again and again.
func TestAClaimAndItsAnswerAllocateNothing(t *testing.T) {
	x := New()
	q := x.AddQueue()
	seq := uint64(0)
	if allocs := testing.AllocsPerRun(1000, func() {
		seq++
		x.Push(Entry{Queue: q, Priority: 1, Seq: seq, Identity: seq + 1<<40}, 0)
		claimAll(x, q, 1000)
		p, _ := x.Find(seq + 1<<40)
		x.Remove(p.ID)
	}); allocs > 0 || x.Counts(q) != (Counts{}) {
		t.Errorf("a claim and its answer allocate %v times", allocs)
	}
}
