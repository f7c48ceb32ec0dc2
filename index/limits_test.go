package index

import (
	"fmt"
	"testing"
)

// limited is a queue with shares by tag and some limits, at a moment.
type limited struct {
	*Index
	q    QueueID
	push func(share string)
	ms   int64
}

func newLimited(l Limits) *limited {
	x, q, push := sharedOut()
	m := &limited{x, q, push, 0}
	m.pass(1_000_000)
	m.limit(l)
	return m
}

func (m *limited) limit(l Limits) { m.SetLimits(m.q, l) }

// pass lets time pass, and has what is due follow.
func (m *limited) pass(ms int64) {
	m.ms += ms
	m.SetClock(m.ms)
	for ok := true; ok; {
		_, ok = m.Advance(0, m.ms)
	}
}

// pops takes all that may be taken.
func (m *limited) pops(s Selection) (n int) {
	s.Limits = true
	for p, ok := m.Best(m.q, s); ok; p, ok = m.Best(m.q, s) {
		m.Take(p.ID)
		m.Remove(p.ID)
		n++
	}
	return n
}

const second = 1_000_000_000 // of Gap

func TestAShareThatRestedIsServedWhenItsBurstAllows(t *testing.T) {
	m := newLimited(Limits{ShareGap: second, Burst: 10})
	for range 10 {
		m.push("a")
		m.pops(Selection{})
	}
	m.push("a")
	if m.pass(900); m.pops(Selection{}) != 0 {
		t.Error("one more than the burst was taken")
	}
	if m.pass(100); m.pops(Selection{}) != 1 {
		t.Error("after the gap nothing may be taken")
	}
}

func TestAShareThatWaitsIsServedThoughItsRulesChange(t *testing.T) {
	for _, wide := range []bool{false, true} {
		m := newLimited(Limits{ShareGap: second})
		for i := range uint64(3) {
			m.Push(Entry{Queue: m.q, Priority: 1, Seq: i + 1, Tags: []byte("a"), Wide: wide}, 0)
		}
		m.limit(Limits{ShareGap: second}) // which all shares follow
		m.pops(Selection{})
		rule := *m.queues.At(uint32(m.q)).shares.rule
		rule.By = "other"
		for _, change := range []func(){func() { m.ShareBy(m.q, &rule) }, func() { m.limit(Limits{ShareGap: second}) }} {
			change()
			if m.pass(1000); m.pops(Selection{}) != 1 {
				t.Fatalf("after the gap nothing may be taken of wide packets: %v", wide)
			}
		}
	}
}

// Who waits for a share that its rate keeps back is told when there is no rate any more.
func TestWhoWaitsIsToldThatALimitIsGone(t *testing.T) {
	m := newLimited(Limits{ShareGap: second})
	m.push("a")
	m.Spend(m.q, m.ms, TakeDue{}, 0)
	m.NoteFresh(m.q, true)
	s := Selection{Limits: true, Share: []byte("a")}
	asked, told := m.Fresh(m.q, s, 0)
	if told {
		t.Error("its burst is not spent")
	}
	m.SetLimits(m.q, Limits{})
	if _, told = m.Fresh(m.q, s, asked); !told {
		t.Error("nobody is told")
	}
}

// Who waits passes over a share at its limit, and is told of what comes back to it.
func TestWhoWaitsIsToldOfWhatComesBackToAShareAtItsLimit(t *testing.T) {
	m := newLimited(Limits{ShareClaimed: 1})
	m.push("a")
	claimed, _ := m.Best(m.q, Selection{})
	m.SetState(claimed.ID, Claimed, 0)
	m.NoteFresh(m.q, true)
	m.push("a")
	s := Selection{Limits: true, Claims: true}
	asked, told := m.Fresh(m.q, s, 0)
	if told {
		t.Error("the share is at its limit")
	}
	m.pops(Selection{})
	m.SetState(claimed.ID, Ready, 0)
	if _, told = m.Fresh(m.q, s, asked); !told {
		t.Error("nobody is told")
	}
}

func TestARaisedRateHoldsForSharesThatComeAfterAStart(t *testing.T) {
	m := newLimited(Limits{ShareGap: 3600 * second})
	m.Spend(m.q, m.ms, TakeDue{}, 0)
	m.limit(Limits{ShareGap: second})
	m.push("new")
	if m.pass(1000); m.pops(Selection{}) != 1 {
		t.Error("a share that comes new waits for the old rate")
	}
}

// The end of a claim costs nothing for a filter that takes nothing. Who was refused by the limit
// alone is told, whether it came before the limit was reached or at it.
func TestAFilterThatTakesNothingIsNotAskedAnewAtALimit(t *testing.T) {
	for _, l := range []Limits{{Claimed: 1}, {Gap: second}} {
		m := newLimited(l)
		asked := 0
		none := Selection{Claims: true, Limits: true, Filter: func(string) bool { asked++; return false }}
		some := Selection{Claims: true, Limits: true, Filter: func(tags string) bool { return tags == "last" }}
		var held ID
		give := func() {
			if held != 0 {
				m.Remove(held)
			}
			m.pass(1000)
		}
		claim := func() {
			p, _ := m.Best(m.q, Selection{Claims: true, Limits: true})
			m.Take(p.ID)
			m.SetState(p.ID, Claimed, 0)
			held = p.ID
		}
		for i := range 100 {
			m.push(string(rune('A' + i)))
		}
		m.NoteFresh(m.q, true)
		claim()
		from, _ := m.Fresh(m.q, none, 0)
		give()
		from, _ = m.Fresh(m.q, none, from) // once all: it came at the limit
		for range 20 {
			claim()
			m.ClearChanged(m.q)
			give()
			from, _ = m.Fresh(m.q, none, from)
			m.ClearChanged(m.q)
		}
		if asked > 300 {
			t.Errorf("%+v: a filter that takes nothing of 100 shares is asked %d times", l, asked)
		}
		first, _ := m.Fresh(m.q, some, 0)
		claim()
		m.push("last")
		m.ClearChanged(m.q)
		at := uint64(0)
		for _, from := range []*uint64{&first, &at} {
			*from, _ = m.Fresh(m.q, some, *from)
		}
		give()
		for _, from := range []uint64{first, at} {
			if _, told := m.Fresh(m.q, some, from); !told {
				t.Errorf("%+v: who waits from %d is not told", l, from)
			}
		}
	}
}

// However many shares rest without packets, nothing of them is left with the end of their queue,
// nor with another share-by.
func TestSharesThatRestEndWithTheirQueue(t *testing.T) {
	for what, end := range map[string]func(m *limited){
		"dropped": func(m *limited) {
			if err := m.DropQueue(m.q); err != nil {
				t.Error(err)
			}
		},
		"another share-by": func(m *limited) {
			m.ShareBy(m.q, &byTag)
			m.pass(3600_000)
		},
		"no share-by": func(m *limited) {
			m.ShareBy(m.q, nil)
			m.SetLimits(m.q, Limits{})
		},
	} {
		m := newLimited(Limits{ShareGap: 3600 * second})
		for i := range 100 {
			m.push(fmt.Sprint(i))
			m.pops(Selection{})
		}
		if n := m.queues.At(uint32(m.q)).shares.resting; n != 100 || m.timers.Live != 1 {
			t.Fatalf("%d shares rest, with %d timers", n, m.timers.Live)
		}
		end(m)
		if err := m.Check(); err != nil || m.timers.Live > 0 {
			t.Errorf("%s: %d timers are left: %v", what, m.timers.Live, err)
		}
	}
}

// As many shares rest in a queue as may: those of another one give all the same.
func TestSharesThatRestStopThoseOfTheirQueueAlone(t *testing.T) {
	m := newLimited(Limits{ShareGap: 3600 * second})
	m.RestAtMost(3)
	for i := range 5 {
		m.push(fmt.Sprint(i))
	}
	if n := m.pops(Selection{}); n != 3 {
		t.Errorf("%d were taken, want 3", n)
	}
	other := m.AddQueue()
	m.ShareBy(other, &byTag)
	m.SetLimits(other, Limits{ShareGap: 3600 * second})
	m.Push(Entry{Queue: other, Priority: 1, Seq: 1, Tags: []byte("a")}, 0)
	if _, ok := m.Best(other, Selection{Limits: true}); !ok {
		t.Error("the shares of one queue stop that of another")
	}
}

// Where as many rest as may, a look passes over the others once: then they stand aside.
func TestALookFindsSharesThatGiveNothingOnceOnly(t *testing.T) {
	m := newLimited(Limits{ShareGap: 3600 * second})
	m.RestAtMost(1)
	for i := range 100 {
		m.push(fmt.Sprint(i))
	}
	first, _ := m.Best(m.q, Selection{Limits: true})
	m.Take(first.ID)
	m.Remove(first.ID)
	m.Next(m.q, Selection{Limits: true}, 0, 2, nil)
	if h := m.queues.At(uint32(m.q)).shares.heaps; len(h[open]) > 0 || len(h[waits]) != 99 {
		t.Errorf("%d shares are open, and %d wait: want 99", len(h[open]), len(h[waits]))
	}
	if err := m.Check(); err != nil {
		t.Error(err)
	}
}

func TestARateThatChangesAllTheTimeLetsNoMorePass(t *testing.T) {
	for name, limits := range map[string]func(gap int64) Limits{
		"queue": func(gap int64) Limits { return Limits{Gap: gap, Burst: 10} },
		"share": func(gap int64) Limits { return Limits{ShareGap: gap, Burst: 10} },
	} {
		m, n := newLimited(limits(second)), 0
		for range 100 {
			m.push("a")
		}
		for range 5 { // seconds
			for range 50 {
				n += m.pops(Selection{})
				m.limit(limits(second / 2))
				n += m.pops(Selection{})
				m.limit(limits(second))
				n += m.pops(Selection{})
				m.pass(20)
			}
		}
		if n < 15 || n > 10+5*2+1 {
			t.Errorf("%s: %d were taken in five seconds", name, n)
		}
	}
}

func TestAStartForgivesNothingOfATakeThatWasEarly(t *testing.T) {
	const ms = 1_000_000
	g := gate{rate: rateOf(100*ms, 1)}
	after := g
	g.charge(0, 1)
	if g.passes(90*ms) != 1 {
		t.Fatal("a take is not 10 ms early")
	}
	g.charge(90*ms, 1)
	if after.begin(TakeDue{}, 90, 90*ms); after.due < g.due {
		t.Errorf("the next take is due after %d ms, and after a start after %d", g.due/ms, after.due/ms)
	}
}

// Advance has yet to come to the marker when a charge finds that the share gives again.
func TestAChargeTellsThatAShareGivesAgain(t *testing.T) {
	m := newLimited(Limits{ShareGap: second, Burst: 5})
	m.NoteFresh(m.q, true)
	for range 8 {
		m.push("a")
	}
	s := Selection{End: Oldest, Claims: true, Limits: true, Filter: func(tags string) bool { return tags == "a" }}
	var out []ID
	for p, ok := m.Best(m.q, s); ok; p, ok = m.Best(m.q, s) {
		m.Take(p.ID)
		m.SetState(p.ID, Claimed, 0)
		out = append(out, p.ID)
	}
	asked, _ := m.Fresh(m.q, s, 0)
	m.ClearChanged(m.q)
	m.ms += 4000
	m.SetClock(m.ms)
	m.Charge(out[0], 1)
	m.pass(0)
	_, gives := m.Best(m.q, s)
	if _, told := m.Fresh(m.q, s, asked); !gives || !told {
		t.Errorf("the share gives: %t, and who waits is told: %t", gives, told)
	}
}

// A share that SetShare brings with a due is due then, and not before.
func TestAShareThatComesWithADueWaitsForIt(t *testing.T) {
	for _, there := range []bool{false, true} {
		m := newLimited(Limits{ShareGap: 60 * second})
		if there {
			m.push("a")
		}
		m.SetShare(m.q, "a", ShareOwn{Due: TakeDue{At: m.ms + 90_000, Gap: 60 * second}})
		if e, ok := m.Advance(0, m.ms+80_000); ok {
			t.Errorf("with packets %t, Advance tells %+v before the due", there, e)
		}
	}
}

// What a start lets wait ends with the rules.
func TestRulesThatGoLeaveNothingToWaitFor(t *testing.T) {
	for name, set := range map[string]func(x *Index, q QueueID, on bool){
		"strict":    func(x *Index, q QueueID, on bool) { x.SetStrict(q, on, false) },
		"keep dead": func(x *Index, q QueueID, on bool) { x.KeepDead(q, map[bool]int64{true: 5}[on]) },
	} {
		x := New()
		q := x.AddQueue()
		set(x, q, true)
		x.SetClock(1000)
		x.Spend(q, 1000, TakeDue{}, 0)
		x.IsAhead(q)
		set(x, q, false)
		for ok := true; ok; {
			_, ok = x.Advance(0, 5000)
		}
		if err := x.DropQueue(q); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A share whose first packet comes with a delay, or is claimed, waits for its rate all the same.
func TestANewShareWaitsForItsRateWhateverItsFirstPacketDoes(t *testing.T) {
	for _, state := range []State{Ready, Delayed, Claimed, Dead} {
		m := newLimited(Limits{ShareGap: second})
		m.Spend(m.q, m.ms, TakeDue{}, 0) // so its burst is spent when it comes
		m.Push(Entry{Queue: m.q, Priority: 1, Seq: 1, Tags: []byte("a"), State: state}, 0)
		if err := m.Check(); err != nil {
			t.Errorf("%v: %v", state, err)
		}
	}
}
