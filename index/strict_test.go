package index

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// many pushes more packets of one key than a ring has.
func (m *sharesModel) many(t *rapid.T) {
	if len(m.held) > ringMax {
		t.Skip("they are many")
	}
	for range ringMax + 1 {
		m.seq++
		p := &sharePacket{key: "a", keyed: true, tags: rapid.SampledFrom([]string{"a/", "a/x"}).Draw(t, "tags"), wide: rapid.IntRange(0, 3).Draw(t, "wide") == 0}
		e := Entry{Queue: m.q, Seq: m.seq, Priority: rapid.Uint32Range(0, 3).Draw(t, "priority"), Key: []byte("a"), Tags: []byte(p.tags), Wide: p.wide, Size: 1}
		m.place(p)
		m.share(p.share)
		p.Packet.ID = m.x.Push(e, 0)
		p.Packet, _ = m.x.Get(p.ID)
		m.held = append(m.held, p)
	}
}

func TestLargeGroupsAreInStrictOrderAsTheModelSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &sharesModel{x: New(), own: map[string]ShareOwn{}, shares: map[string]*modelShare{"": {weight: 1}}, now: 1000}
		m.q = m.x.AddQueue()
		m.x.NoteFresh(m.q, true)
		m.Rule(t)
		m.many(t)
		m.Strict(t)
		t.Repeat(map[string]func(*rapid.T){
			"Many": m.many, "Take": m.Take, "Take more": m.Take, "Change": m.Change, "Change more": m.Change, "Strict": m.Strict, "": m.verify,
		})
	})
}

// A key of more packets than a ring holds has trees: its packets come in the same order.
func TestAKeyOfManyPacketsComesInOrder(t *testing.T) {
	const n = 100_000
	x := New()
	q := x.AddQueue()
	x.SetStrict(q, true, false)
	longest := time.Duration(0)
	timed := func(do func()) {
		begun := time.Now()
		do()
		longest = max(longest, time.Since(begun))
	}
	for i := range n {
		timed(func() {
			id := x.Push(Entry{Queue: q, Seq: uint64(n - i), Priority: 1, Key: []byte("k"), Size: 1}, 0)
			if i%2 > 0 {
				x.SetState(id, Delayed, 0)
			}
		})
	}
	for i := range n / 4 {
		timed(func() {
			p, ok := x.Best(q, Selection{End: Newest})
			x.SetDelivery(p.ID, Delivery{Token: 1})
			if x.SetState(p.ID, Claimed, 0); !ok || p.Seq != uint64(2*i+2) {
				t.Fatalf("take %d = %+v", i, p)
			}
			x.SetState(p.ID, Delayed, 0)
			if got, ok := x.Best(q, Selection{}); ok {
				t.Fatalf("%+v is out beside %+v", got, p)
			}
			x.Remove(p.ID)
		})
	}
	if err := x.Check(); err != nil {
		t.Fatal(err)
	}
	for _, on := range []bool{false, true} {
		x.SetStrict(q, on, false)
		if n := x.Ready(q, Selection{}, n); (n == 1) != on {
			t.Errorf("with strict %v %d can be taken", on, n)
		}
	}
	t.Logf("the longest change of a packet took %v", longest)
}

// Without strict order a share gives at once what waited for its key, also to a filter.
func TestAShareGivesWhatWaitedOnceTheOrderEnds(t *testing.T) {
	x, q, _ := sharedOut()
	x.SetStrict(q, true, false)
	for seq := range uint64(2) {
		x.Push(Entry{Queue: q, Seq: 1 + seq, Priority: 1, Key: []byte("k"), Tags: []byte("a")}, 0)
	}
	first, _ := x.Best(q, Selection{End: Oldest, Share: []byte("a")})
	x.SetState(first.ID, Claimed, 0)
	s := Selection{Limits: true, Filter: func(tags string) bool { return tags == "a" }}
	if p, ok := x.Best(q, s); ok {
		t.Fatalf("%+v is out beside the first of its key", p)
	}
	x.SetStrict(q, false, false)
	if p, ok := x.Best(q, s); !ok || p.ID == first.ID {
		t.Errorf("share a gives %+v, %v", p, ok)
	}
}
