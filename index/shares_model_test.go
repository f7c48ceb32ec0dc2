package index

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/index/tree"
	"pgregory.net/rapid"
)

// sharesModel drives a queue that is shared out, and says by looking at all packets what is next.
type sharesModel struct {
	x      *Index
	q      QueueID
	rule   string // "", "key" or "tag"
	seq    uint64
	held   []*sharePacket
	shares map[string]*modelShare
	own    map[string]ShareOwn
	clock  uint64
	turns  uint64
	limits Limits
	looks  []*modelTaker
	due    int64 // of the queue's meter
	now    int64 // in milliseconds

	strict, deadHolds bool
}

// modelTaker is somebody who waits for what a selection takes. If it has a share or a filter it may
// sleep, until fresh lanes wake it.
type modelTaker struct {
	Selection
	asked  uint64
	sleeps bool
}

// isWoken says that a lane wakes it.
func (l *modelTaker) isWoken(share, tags string) bool {
	if l.Share != nil {
		return share == string(l.Share)
	}
	return l.Filter == nil || l.Filter(tags)
}

type sharePacket struct {
	Packet
	key, tags string
	wide      bool
	share     string
	keyed     bool
	retried   bool // it was claimed
}

// mostLanes is the limit of lanes in the model.
const mostLanes = 12

// place says in which share a packet is that comes: where the queue has no place for another lane,
// in the empty one.
func (m *sharesModel) place(p *sharePacket) {
	name, lanes := m.nameOf(p), make(map[string]bool)
	lane := func(share, tags string, wide bool) string { return fmt.Sprintf("%q %q %v", share, tags, wide) }
	for _, other := range m.held {
		lanes[lane(other.share, other.tags, other.wide)] = true
	}
	delete(lanes, lane("", "", false))
	if p.share = name; m.rule != "" && len(lanes) >= mostLanes && !lanes[lane(name, p.tags, p.wide)] {
		p.share = ""
	}
}

type modelShare struct {
	pass, turn uint64
	weight     uint32
	maxClaimed uint32
	due        int64
	rest       int64 // in milliseconds
	gap        int64
}

// modelPasses says that a meter lets a take pass: its next one is due, give or take 10 ms.
func (m *sharesModel) modelPasses(due, gap int64) bool {
	return gap == 0 || due-(max(1, m.limits.Burst)-1)*gap <= m.now*1e6+10e6
}

// gap is that of a share.
func (m *sharesModel) gap(s *modelShare) int64 {
	if m.rule == "" {
		return 0
	}
	return cmp.Or(s.gap, m.limits.ShareGap)
}

// modelCharge counts a take.
func (m *sharesModel) modelCharge(due *int64, gap int64) {
	if gap > 0 {
		*due = max(*due, m.now*1e6) + gap
	}
}

// In the test the tags of a packet are a share before a slash, and the rest.
var byTag = ShareRule{
	By:   "tag",
	Name: func(tags []byte) []byte { name, _, _ := bytes.Cut(tags, []byte("/")); return name },
	Rest: func(tags []byte) []byte { _, rest, _ := bytes.Cut(tags, []byte("/")); return rest },
}

func (m *sharesModel) nameOf(p *sharePacket) string {
	name := ""
	switch m.rule {
	case "key":
		name = p.key
	case "tag":
		name, _, _ = strings.Cut(p.tags, "/")
	}
	if len(name) > MaxShareName {
		return ""
	}
	return name
}

// share returns a share, a new one if there is none.
func (m *sharesModel) share(name string) *modelShare {
	if m.shares[name] == nil {
		m.turns++
		own := m.own[name]
		m.shares[name] = &modelShare{m.clock + oneTurn/uint64(own.weight()), m.turns, own.weight(), own.MaxClaimed, 0, own.Rest, own.Gap}
	}
	return m.shares[name]
}

// forget ends the shares that have no packet.
func (m *sharesModel) forget() {
	for name, s := range m.shares {
		if m.gap(s) > 0 && s.due > m.now*1e6 || s.rest > m.now {
			continue // it is there for its meter, or its rest
		}
		has := func(p *sharePacket) bool { return p.share == name }
		if name != "" && !slices.ContainsFunc(m.held, has) {
			delete(m.shares, name)
		}
	}
}

func (m *sharesModel) serve(s *modelShare) {
	m.clock = max(m.clock, s.pass)
	m.turns++
	s.pass, s.turn = m.clock+oneTurn/uint64(s.weight), m.turns
}

func (m *sharesModel) Push(t *rapid.T) {
	m.seq++
	p := &sharePacket{
		key:  rapid.SampledFrom([]string{"", "", "a", "b", "c", strings.Repeat("k", MaxShareName), strings.Repeat("k", MaxShareName+1)}).Draw(t, "key"),
		tags: rapid.SampledFrom([]string{"", "a/", "a/x", "b/", "b/x", "b/y", "c/x", "/x", strings.Repeat("t", MaxShareName+1) + "/"}).Draw(t, "tags"),
	}
	p.wide = p.key == "c" || p.tags == "c/x" || rapid.IntRange(0, 3).Draw(t, "wide") == 0
	e := Entry{Queue: m.q, Seq: m.seq, Priority: rapid.SampledFrom([]uint32{0, 1, 2, 2, 10, 100}).Draw(t, "priority"), Tags: []byte(p.tags), Wide: p.wide, Size: 1}
	if p.key != "" || e.Priority == 0 {
		e.Key, p.keyed = []byte(p.key), true
	}
	m.place(p)
	m.share(p.share)
	p.Packet.ID = m.x.Push(e, 0)
	p.Packet, _ = m.x.Get(p.ID)
	m.held = append(m.held, p)
}

// isFirst says that a packet waits for no other of its key.
func (m *sharesModel) isFirst(p *sharePacket) bool {
	return !m.strict || !p.keyed || !slices.ContainsFunc(m.held, func(o *sharePacket) bool {
		switch {
		case !o.keyed || o.key != p.key:
			return false
		case o.State == Ready:
			return o.Priority > 0 && (tree.Place{Priority: o.Priority, Seq: o.Seq}).Before(tree.Place{Priority: p.Priority, Seq: p.Seq})
		}
		return o.State == Claimed || o.State == Delayed && o.retried || o.State == Dead && m.deadHolds
	})
}

// selectable returns the packets that a selection takes from a share, in its order.
func (m *sharesModel) selectable(name string, s Selection) (found []*sharePacket) {
	for _, p := range m.held {
		if p.State == Ready && p.Priority > 0 && p.share == name && !(s.Fits16 && p.wide) && (s.Filter == nil || s.Filter(p.tags)) && m.isFirst(p) {
			found = append(found, p)
		}
	}
	slices.SortFunc(found, func(a, b *sharePacket) int {
		if s.End.Earlier(tree.Place{Priority: a.Priority, Seq: a.Seq}, tree.Place{Priority: b.Priority, Seq: b.Seq}) {
			return -1
		}
		return 1
	})
	return found
}

// next is what the next n takes give, by turns that pass.
func (m *sharesModel) next(s Selection, n int) (want []*sharePacket) {
	shares, claims, clock, turns := make(map[string]*modelShare), make(map[string]uint32), m.clock, m.turns
	left := make(map[string][]*sharePacket)
	for name, share := range m.shares {
		own := *share
		if s.Share == nil || name == string(s.Share) {
			shares[name], left[name] = &own, m.selectable(name, s)
		}
	}
	all := uint32(0)
	for _, p := range m.held {
		if p.State == Claimed {
			claims[p.share]++
			all++
		}
	}
	m.shares, shares = shares, m.shares
	stopped, due := s.Limits && s.Claims, m.due
	for len(want) < n && !(stopped && m.limits.Claimed > 0 && all >= m.limits.Claimed) && (!s.Limits || m.modelPasses(due, m.limits.Gap)) {
		best, first := "", true
		for name, a := range m.shares {
			b := m.shares[best]
			if len(left[name]) == 0 || stopped && m.isFull(a, claims[name]) || s.Limits && m.rule != "" && (a.rest > m.now || !m.modelPasses(a.due, m.gap(a))) {
				continue
			}
			if !first && cmp.Or(cmp.Compare(claims[name]/a.weight, claims[best]/b.weight), cmp.Compare(a.pass, b.pass), cmp.Compare(a.turn, b.turn)) > 0 {
				continue
			}
			best, first = name, false
		}
		if first {
			break
		}
		want, left[best] = append(want, left[best][0]), left[best][1:]
		m.modelCharge(&due, m.limits.Gap)
		m.modelCharge(&m.shares[best].due, m.gap(m.shares[best]))
		if m.serve(m.shares[best]); s.Claims {
			claims[best]++
			all++
		}
	}
	m.shares, m.clock, m.turns = shares, clock, turns
	return want
}

// isFull says that a share with some claims is at its limit.
func (m *sharesModel) isFull(s *modelShare, claims uint32) bool {
	limit := cmp.Or(s.maxClaimed, m.limits.ShareClaimed)
	return limit > 0 && claims >= limit && m.rule != ""
}

func (m *sharesModel) draw(t *rapid.T) Selection {
	s := Selection{End: rapid.SampledFrom([]End{Newest, Oldest}).Draw(t, "end"), Fits16: rapid.IntRange(0, 2).Draw(t, "narrow") == 0, Claims: rapid.Bool().Draw(t, "claims"), Limits: rapid.Bool().Draw(t, "limits")}
	if rapid.IntRange(0, 2).Draw(t, "filters") == 0 {
		s.Filter = func(tags string) bool { return strings.HasSuffix(tags, "x") }
	}
	if rapid.IntRange(0, 4).Draw(t, "one") == 0 {
		s.Share = []byte(rapid.SampledFrom([]string{"", "a", "b", "none"}).Draw(t, "share"))
	}
	return s
}

// Take pops or claims what is next.
func (m *sharesModel) Take(t *rapid.T) {
	s, n := m.draw(t), rapid.IntRange(1, 6).Draw(t, "n")
	want := m.next(s, n)
	got := m.x.Next(m.q, s, 0, n, nil)
	if !slices.EqualFunc(got, want, func(a Packet, b *sharePacket) bool { return a.ID == b.ID }) {
		t.Fatalf("Next(%+v, %d) = %+v, want %v", s, n, got, want)
	}
	if skip := rapid.IntRange(0, 3).Draw(t, "skip"); skip < len(want) {
		if rest := m.x.Next(m.q, s, skip, n-skip, nil); !slices.Equal(rest, got[skip:]) {
			t.Fatalf("Next behind %d = %+v, want %+v", skip, rest, got[skip:])
		}
	}
	if best, ok := m.x.Best(m.q, s); ok != (len(want) > 0) || ok && best != got[0] {
		t.Fatalf("Best = %+v %v, want the first of %+v", best, ok, got)
	}
	for i, p := range want {
		m.x.Take(p.ID)
		m.modelCharge(&m.due, m.limits.Gap)
		m.modelCharge(&m.shares[p.share].due, m.gap(m.shares[p.share]))
		if m.serve(m.shares[p.share]); s.Claims {
			p.State, p.retried = Claimed, true
			m.x.SetDelivery(p.ID, Delivery{Token: 1})
			m.x.SetState(p.ID, Claimed, 0)
			continue
		}
		m.x.Remove(got[i].ID)
		m.held = slices.DeleteFunc(m.held, func(o *sharePacket) bool { return o == p })
		m.forget()
	}
}

// Change gives a packet another state, or another priority, or removes it.
func (m *sharesModel) Change(t *rapid.T) {
	if len(m.held) == 0 {
		t.Skip("no packet")
	}
	i := rapid.IntRange(0, len(m.held)-1).Draw(t, "packet")
	p := m.held[i]
	switch rapid.IntRange(0, 4).Draw(t, "change") {
	case 0:
		m.x.Remove(p.ID)
		m.held = slices.Delete(m.held, i, i+1)
		m.forget()
	case 1:
		p.Priority = max(1, rapid.SampledFrom([]uint32{1, 2, 10}).Draw(t, "priority"))
		m.x.Move(p.Packet)
	default:
		p.State = rapid.SampledFrom([]State{Ready, Ready, Delayed, Claimed, Dead}).Draw(t, "state")
		if p.State == Claimed && !p.retried {
			p.retried = m.x.SetDelivery(p.ID, Delivery{Token: 1})
		}
		m.x.SetState(p.ID, p.State, 0)
	}
}

// Charge counts more takes of a claimed packet.
func (m *sharesModel) Charge(t *rapid.T) {
	for _, p := range m.held {
		if p.State == Claimed {
			n := rapid.Int64Range(0, 4).Draw(t, "takes")
			m.x.Charge(p.ID, n)
			for range n {
				m.modelCharge(&m.due, m.limits.Gap)
				m.modelCharge(&m.shares[p.share].due, m.gap(m.shares[p.share]))
			}
			return
		}
	}
	t.Skip("nothing is claimed")
}

// Own gives a share a weight, a limit and a rest of its own, or takes them away.
func (m *sharesModel) Own(t *rapid.T) {
	name := rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(t, "share")
	own := ShareOwn{
		Weight: rapid.SampledFrom([]uint32{0, 1, 2, 3, 1000}).Draw(t, "weight"), MaxClaimed: rapid.SampledFrom([]uint32{0, 0, 0, 1, 4}).Draw(t, "own limit"),
		Gap: rapid.SampledFrom([]int64{0, 0, 1_000_000, 30_000_001}).Draw(t, "own gap"),
	}
	if rapid.Bool().Draw(t, "rests") {
		own.Rest = m.now + rapid.Int64Range(1, 90).Draw(t, "rest")
	}
	if m.x.SetShare(m.q, name, own); m.rule == "" {
		return
	}
	if m.own[name] = own; m.shares[name] != nil || own.Rest > 0 {
		s := m.share(name)
		was := m.gap(s)
		s.weight, s.maxClaimed, s.rest, s.gap = own.weight(), own.MaxClaimed, own.Rest, own.Gap
		m.follow(&s.due, was, m.gap(s), false)
	}
	m.forget()
}

// follow lets a due go by another gap or burst: as many takes are ahead of the next one, of one
// burst at most.
func (m *sharesModel) follow(due *int64, was, gap int64, burst bool) {
	if was == gap && !burst {
		return
	}
	now := m.now * 1e6
	if *due > now && was > 0 {
		*due = now + int64(float64(*due-now)/float64(was)*float64(gap))
	}
	*due = min(*due, now+max(1, m.limits.Burst)*gap)
}

// Limit gives the queue other limits.
func (m *sharesModel) Limit(t *rapid.T) {
	draw := func(name string) uint32 { return rapid.SampledFrom([]uint32{0, 0, 1, 2, 5}).Draw(t, name) }
	gap := func(name string) int64 {
		return rapid.SampledFrom([]int64{0, 0, 0, 1_000_000, 7_000_001, 50_000_000}).Draw(t, name)
	}
	was := m.limits
	m.limits = Limits{draw("queue"), draw("share"), gap("gap"), gap("share gap"), rapid.Int64Range(0, 3).Draw(t, "burst")}
	m.x.SetLimits(m.q, m.limits)
	burst := max(1, was.Burst) != max(1, m.limits.Burst) // 0 is 1
	m.follow(&m.due, was.Gap, m.limits.Gap, burst)
	for _, s := range m.shares {
		m.follow(&s.due, cmp.Or(s.gap, was.ShareGap), m.gap(s), burst)
	}
	m.forget()
}

// Tick lets time pass.
func (m *sharesModel) Tick(t *rapid.T) {
	m.now += rapid.Int64Range(0, 60).Draw(t, "ms")
	m.x.SetClock(m.now)
	for ok := true; ok; {
		var e Event
		if e, ok = m.x.Advance(0, m.now); e.HasRested && m.own[e.Rested].Rest == 0 {
			t.Fatalf("%q has not rested", e.Rested)
		} else if own := m.own[e.Rested]; e.HasRested {
			own.Rest = 0
			m.own[e.Rested] = own
		}
	}
	for name, own := range m.own {
		if own.Rest > 0 && own.Rest <= m.now {
			t.Fatalf("nobody was told that the rest of %q is over", name)
		}
	}
	if wait, ok := m.x.Wait(0, m.now); ok && wait <= 0 {
		t.Fatalf("a moment is left %d ms ago", -wait)
	}
	m.forget()
}

// Wait begins to wait for what a selection takes. Who finds something at once is told of it.
func (m *sharesModel) Wait(t *rapid.T) {
	l := &modelTaker{Selection: m.draw(t)}
	m.looks = append(m.looks, l)
	if _, finds := m.x.Best(m.q, l.Selection); finds {
		m.x.Refresh(m.q)
	}
}

// wake wakes those that fresh lanes may be for, in one go or in several.
func (m *sharesModel) wake(t *rapid.T) {
	for more := true; more; {
		pause := rapid.IntRange(0, 3).Draw(t, "pause") == 0
		anew, done := m.x.TellFresh(m.q, func(at uint64, share, tags string) bool {
			for _, l := range m.looks {
				if l.sleeps && l.isWoken(share, tags) {
					l.sleeps, l.asked = false, at
				}
			}
			return !pause
		})
		for _, l := range m.looks {
			if anew {
				l.sleeps, l.asked = false, 0
			}
		}
		more = !done
	}
}

// verifyWaits compares who is told of packets with who finds some.
func (m *sharesModel) verifyWaits(t *rapid.T) {
	served := false
	m.wake(t)
	for _, l := range m.looks {
		best, finds := m.x.Best(m.q, l.Selection)
		told, waits := false, l.Limits && l.Claims && m.x.AtLimit(m.q)
		if !l.sleeps && !waits {
			l.asked, told = m.x.Fresh(m.q, l.Selection, l.asked)
			_, some := m.x.Best(m.q, Selection{Limits: true})
			l.sleeps = !told && (l.Share != nil || l.Filter != nil) && (some || !l.Limits)
		}
		if told != finds {
			t.Fatalf("%+v is told %v, and finds %+v %v", l, told, best, finds)
		}
		if n := m.x.Ready(m.q, l.Selection, 3); n != len(m.next(l.Selection, 3)) {
			t.Fatalf("%+v finds %d, want %v", l, n, m.next(l.Selection, 3))
		}
		served = served || told
	}
	if !served && rapid.Bool().Draw(t, "all wait") {
		m.x.ClearChanged(m.q)
	}
}

// Rule shares the queue out anew. Each packet is where it belongs at once.
func (m *sharesModel) Rule(t *rapid.T) {
	was := m.rule
	m.rule = rapid.SampledFrom([]string{"", "key", "tag"}).Draw(t, "rule")
	if sh := m.x.queues.At(uint32(m.q)).shares; sh != nil {
		sh.most = MaxShareLanes // in the midst of a change there are lanes of both rules
	}
	m.x.ShareBy(m.q, map[string]*ShareRule{"key": {By: "key"}, "tag": &byTag}[m.rule])
	if sh := m.x.queues.At(uint32(m.q)).shares; sh != nil {
		sh.most = mostLanes
	}
	if rapid.Bool().Draw(t, "worst") {
		m.x.KeepWorst(m.q)
	}
	for name, own := range m.own {
		m.x.SetShare(m.q, name, own)
	}
	m.shares, m.clock, m.turns = map[string]*modelShare{"": {0, 0, 1, 0, 0, 0, 0}}, 0, 0
	for _, p := range m.held {
		p.Packet, _ = m.x.Get(p.ID)
		p.share = ""
		if s := m.x.lanes.At(uint32(p.Lane)).share; s != nil {
			p.share = s.name
		}
		if was != m.rule && p.share != m.nameOf(p) {
			t.Fatalf("%+v is in share %q, want %q", p, p.share, m.nameOf(p))
		}
	}
	sh := m.x.queues.At(uint32(m.q)).shares
	if sh == nil {
		m.own = map[string]ShareOwn{}
	} else {
		m.clock, m.turns = sh.clock, sh.turns
		for s := range sh.each() {
			own := sh.own[s.name]
			m.shares[s.name] = &modelShare{s.pass, s.turn, s.weight, own.MaxClaimed, s.due, s.rest / 1e6, own.Gap}
		}
	}
}

// verifyHeld compares how much is held back.
func (m *sharesModel) verifyHeld(t *rapid.T) {
	var want HeldCounts
	claims := make(map[string]uint32)
	for _, p := range m.held {
		if p.State == Claimed {
			claims[p.share]++
		}
		if p.State == Ready && p.Priority > 0 && !m.isFirst(p) {
			want.PacketsBehind++
		}
	}
	for name, s := range m.shares {
		gives := len(m.next(Selection{Share: []byte(name), Claims: true, Limits: true}, 1)) > 0
		ready, _, _ := m.x.ShareCounts(m.q, name)
		if _, is := m.x.HeldShare(m.q, name); m.rule != "" && ready > 0 && is == gives {
			t.Fatalf("HeldShare of %q = %v, and it gives something %v", name, is, gives)
		}
		switch {
		case m.rule == "" || len(m.selectable(name, Selection{})) == 0:
		case s.rest > m.now || !m.modelPasses(s.due, m.gap(s)):
			want.SharesNotDue++
		case m.isFull(s, claims[name]):
			want.SharesAtLimit++
		}
	}
	if got := m.x.HeldCounts(m.q); got != want {
		t.Fatalf("HeldCounts = %+v, want %+v", got, want)
	}
}

// Strict changes the order within keys.
func (m *sharesModel) Strict(t *rapid.T) {
	m.strict, m.deadHolds = rapid.IntRange(0, 2).Draw(t, "strict") > 0, rapid.Bool().Draw(t, "dead hold")
	m.x.SetStrict(m.q, m.strict, m.deadHolds)
	m.forget()
}

// Elements looks at places, which no rule changes. With shares there are none.
func (m *sharesModel) Elements(t *rapid.T) {
	var want []ID
	if m.x.queues.At(uint32(m.q)).shares == nil {
		held := slices.DeleteFunc(slices.Clone(m.held), func(p *sharePacket) bool { return p.State != Ready || p.Priority == 0 })
		slices.SortFunc(held, func(a, b *sharePacket) int {
			return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(b.Seq, a.Seq))
		})
		for _, p := range held {
			want = append(want, p.ID)
		}
	}
	from, n := rapid.IntRange(0, len(want)).Draw(t, "from"), rapid.IntRange(0, 9).Draw(t, "n")
	want = want[from:][:min(n, len(want)-from)]
	got := m.x.Elements(m.q, from, n, nil)
	if !slices.EqualFunc(got, want, func(p Packet, id ID) bool { return p.ID == id }) {
		t.Fatalf("%d elements from %d on are %+v, want %v", n, from, got, want)
	}
}

// List pages through the ready packets: share by share, each in the order of its places.
func (m *sharesModel) List(t *rapid.T) {
	numbers := make(map[string]uint32)
	if sh := m.x.queues.At(uint32(m.q)).shares; sh != nil {
		for s := range sh.each() {
			numbers[s.name] = s.num
		}
	}
	var share []byte
	if rapid.Bool().Draw(t, "one") {
		share = []byte(rapid.SampledFrom([]string{"", "a", "b", "none"}).Draw(t, "share"))
	}
	var want []*sharePacket
	for _, p := range m.held {
		if p.State == Ready && (share == nil || p.share == string(share)) {
			want = append(want, p)
		}
	}
	number := func(p *sharePacket) uint32 {
		if p.Priority == 0 {
			return 0
		}
		return numbers[p.share]
	}
	slices.SortFunc(want, func(a, b *sharePacket) int {
		return cmp.Or(cmp.Compare(number(a), number(b)), cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Seq, b.Seq))
	})
	var got []Packet
	for after, n := (Place{}), rapid.IntRange(1, 4).Draw(t, "page"); ; {
		from := len(got)
		for p, takes := range m.x.Each(m.q, Ready, after, nil, share) {
			if takes {
				got = append(got, p)
			}
			if after = p.Place(); len(got)-from == n {
				break
			}
		}
		if len(got) == from {
			break
		}
	}
	if !slices.EqualFunc(got, want, func(a Packet, b *sharePacket) bool { return a.ID == b.ID }) {
		t.Fatalf("%q lists %+v, want %v", share, got, want)
	}
}

// verify compares what the index counts.
func (m *sharesModel) verify(t *rapid.T) {
	if err := m.x.Check(); err != nil {
		t.Fatal(err)
	}
	unfinished := make(map[string]int)
	for _, p := range m.held {
		if p.State <= Claimed {
			unfinished[p.share]++
		}
	}
	for name := range m.shares {
		if sh := m.x.queues.At(uint32(m.q)).shares; sh != nil && int(sh.byName[name].unfinished) != unfinished[name] {
			t.Fatalf("share %q has %d unfinished packets, want %d", name, sh.byName[name].unfinished, unfinished[name])
		}
	}
	var bands [len(BandStarts)]int
	sets, wide := make(map[string]bool), make(map[LaneID]bool)
	for _, p := range m.held {
		rest := p.tags
		if m.rule == "tag" {
			_, rest, _ = strings.Cut(rest, "/")
		}
		if rest != "" {
			sets[rest] = true
		}
		if p.State == Ready && p.Priority > 0 {
			bands[band(p.Priority)]++
		}
		if now, _ := m.x.Get(p.ID); p.wide {
			wide[now.Lane] = true
		}
	}
	if n := m.x.WideLanes(m.q); n != len(wide) {
		t.Fatalf("WideLanes = %d, want %v", n, wide)
	}
	for _, s := range []Selection{{}, {Fits16: true}, {Claims: true}, {Claims: true, Fits16: true}} {
		s.Limits = true
		if got, want := m.x.Ready(m.q, s, 1), len(m.next(s, 1)); got != want {
			t.Fatalf("%+v finds %d, want %d", s, got, want)
		}
		if _, ok := m.x.Best(m.q, s); ok != (len(m.next(s, 1)) > 0) {
			t.Fatalf("%+v finds a best one: %v", s, ok)
		}
	}
	m.verifyHeld(t)
	m.verifyWaits(t)
	if got := m.x.Bands(m.q); got != bands {
		t.Fatalf("Bands = %v, want %v", got, bands)
	}
	if got, _ := m.x.TagSets(m.q, nil); m.rule != "" && got != len(sets) {
		t.Fatalf("TagSets = %d, want %v", got, sets)
	}
	if n := m.x.Shares(m.q); m.rule != "" && n != len(m.shares) {
		t.Fatalf("Shares = %d, want %v", n, m.shares)
	}
	var worst, want []ID
	for p := range m.x.Worst(m.q) {
		worst = append(worst, p.ID)
	}
	held := slices.DeleteFunc(slices.Clone(m.held), func(p *sharePacket) bool { return p.State > Delayed })
	slices.SortFunc(held, func(a, b *sharePacket) int { // priority 0 first, then the worst
		return -cmp.Or(cmp.Compare(a.Priority-1, b.Priority-1), cmp.Compare(a.Seq, b.Seq))
	})
	for _, p := range held {
		want = append(want, p.ID)
	}
	if !slices.Equal(worst, want) {
		t.Fatalf("Worst = %v, want %v", worst, want)
	}
}

func TestSharesTakeTurnsAsTheModelSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &sharesModel{x: New(), own: map[string]ShareOwn{}, shares: map[string]*modelShare{"": {0, 0, 1, 0, 0, 0, 0}}, now: 1000}
		m.x.SetClock(m.now)
		m.q = m.x.AddQueue()
		m.x.NoteFresh(m.q, true)
		m.x.Push(Entry{Queue: m.x.AddQueue(), Priority: 1, Seq: 1, Tags: []byte("a/x"), Key: []byte("a")}, 0)
		t.Repeat(map[string]func(*rapid.T){
			"Push": m.Push, "Push more": m.Push, "Take": m.Take, "Take more": m.Take, "Change": m.Change, "Own": m.Own, "Charge": m.Charge, "Limit": m.Limit, "Wait": m.Wait, "Tick": m.Tick, "Tick more": m.Tick, "Rule": m.Rule, "Strict": m.Strict, "List": m.List, "Elements": m.Elements, "": m.verify,
		})
		for _, p := range m.held {
			m.x.Remove(p.ID)
		}
		if err := m.x.Check(); err != nil || m.x.forest.Live > 0 {
			t.Fatalf("without packets %d nodes are left: %v", m.x.forest.Live, err)
		}
	})
}
