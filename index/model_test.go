package index

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"sort"
	"testing"

	"github.com/holdfast-queue/holdfast/index/tree"
	"pgregory.net/rapid"
)

// modelPacket is a packet in the naive model: everything is found by looking at all of them.
type modelPacket struct {
	Packet
	key    []byte
	hasKey bool
	tags   string
	wide   bool
	hash   uint64
	unique string
	tried  Delivery
}

// wait is how long the packet still waits for its moment; false when it waits for none.
func (m *indexModel) wait(p *modelPacket) (int64, bool) {
	switch {
	case p.State == Claimed:
		return p.Until - m.steady, p.Until != 0
	case p.State == Delayed && p.Until != 0 && (p.Expiry == 0 || p.Until < p.Expiry):
		return p.Until - m.now, true
	}
	if keep := m.keep[p.Queue]; p.State == Dead && keep > 0 && p.Until != 0 && (p.Expiry == 0 || p.Until+keep < p.Expiry) {
		return p.Until + keep - m.now, true
	}
	return p.Expiry - m.now, p.Expiry != 0
}

// setState gives a packet a state and its moment.
func (p *modelPacket) setState(s State, until int64) {
	p.State, p.Until = s, 0
	if s == Delayed || s == Claimed || s == Dead {
		p.Until = max(until, 0)
	}
}

// indexModel drives an index and the naive model with the same calls.
type indexModel struct {
	x      *Index
	now    int64
	steady int64
	high   uint64 // newest sequence so far
	low    uint64 // oldest sequence so far
	queues []QueueID
	held   []*modelPacket
	looks  map[QueueID]*modelLook // at fresh lanes
	keep   map[QueueID]int64      // how long dead packets stay
	alarms map[QueueID]int64

	windows []modelWindow
}

type modelWindow struct {
	queue    QueueID
	unique   string
	identity uint64
	until    int64
}

// Window begins a window of an id, or ends one.
func (m *indexModel) Window(t *rapid.T) {
	q, unique := m.queue(t), drawUnique(t)
	if rapid.IntRange(0, 3).Draw(t, "end") == 0 {
		identity, ok := m.x.EndWindow(q)
		at := slices.IndexFunc(m.windows, func(w modelWindow) bool { return w.queue == q && w.identity == identity })
		if ok != (at >= 0) || ok != slices.ContainsFunc(m.windows, func(w modelWindow) bool { return w.queue == q }) {
			t.Fatalf("EndWindow = %d %v", identity, ok)
		}
		if ok {
			m.windows = slices.Delete(m.windows, at, at+1)
		}
		return
	}
	if len(unique) == 0 {
		return
	}
	m.high++
	w := modelWindow{q, string(unique), m.high, m.now + rapid.Int64Range(1, 100).Draw(t, "window")}
	want := !slices.ContainsFunc(m.windows, func(o modelWindow) bool { return o.queue == q && o.unique == w.unique })
	if got := m.x.AddWindow(q, unique, w.identity, w.until); got != want {
		t.Fatalf("AddWindow = %v, want %v", got, want)
	}
	if want {
		m.windows = append(m.windows, w)
	}
}

// SetAlarm sets the alarm of a queue, or takes it away.
func (m *indexModel) SetAlarm(t *rapid.T) {
	q := m.queue(t)
	if m.alarms[q] = m.now + rapid.Int64Range(1, 100).Draw(t, "alarm"); rapid.IntRange(0, 3).Draw(t, "never") == 0 {
		m.alarms[q] = 0
	}
	m.x.SetAlarm(q, m.alarms[q])
	if m.alarms[q] == 0 {
		delete(m.alarms, q)
	}
}

// KeepDead says how long the dead packets of a queue stay.
func (m *indexModel) KeepDead(t *rapid.T) {
	q := m.queue(t)
	if m.keep == nil {
		m.keep = make(map[QueueID]int64)
	}
	m.keep[q] = max(0, rapid.Int64Range(-5, 30).Draw(t, "keep"))
	m.x.KeepDead(q, m.keep[q])
	for last, more := (Place{}), true; more; {
		last, more = m.x.RescheduleDead(q, last, rapid.IntRange(1, 3).Draw(t, "slice"))
	}
}

// modelLook is who looks at the fresh lanes of a queue. All that was selectable at the last
// ClearChanged and is since then, known, need not be found.
type modelLook struct {
	known map[*modelPacket]bool
	from  map[int]uint64 // by place in freshSelections
}

var freshSelections = []Selection{
	{}, {Fits16: true}, {Filter: func(tags string) bool { return tags == "x" }},
	{Filter: func(tags string) bool { return tags != "x" }, Fits16: true},
}

// NoteFresh begins, goes on with or ends looking at the fresh lanes of a queue.
func (m *indexModel) NoteFresh(t *rapid.T) {
	q := m.queue(t)
	switch rapid.SampledFrom([]string{"on", "off", "settle", "settle", "refresh"}).Draw(t, "what") {
	case "off":
		m.x.NoteFresh(q, false)
		delete(m.looks, q)
		if at, ok := m.x.Fresh(q, Selection{}, 7); ok || at != 7 {
			t.Fatalf("Fresh = %d %v without NoteFresh", at, ok)
		}
		return
	case "on":
		m.x.NoteFresh(q, true)
		if m.looks[q] == nil {
			m.looks[q] = &modelLook{from: map[int]uint64{}}
		}
	case "settle":
		m.x.ClearChanged(q)
	case "refresh":
		m.x.Refresh(q)
		if look := m.looks[q]; look != nil {
			clear(look.known)
		}
		return
	}
	if look := m.looks[q]; look != nil {
		look.known = map[*modelPacket]bool{}
		for _, p := range m.order(q, Selection{}) {
			look.known[p] = true
		}
	}
}

// verifyFresh looks at the fresh lanes of a queue. What came since ClearChanged is found, and what
// is found is there.
func (m *indexModel) verifyFresh(t *rapid.T, q QueueID) {
	look := m.looks[q]
	if look == nil {
		return
	}
	for p := range look.known {
		if !slices.Contains(m.order(q, Selection{}), p) {
			delete(look.known, p)
		}
	}
	for i, s := range freshSelections {
		list := m.order(q, s)
		at, ok := m.x.Fresh(q, s, look.from[i])
		came := slices.ContainsFunc(list, func(p *modelPacket) bool { return !look.known[p] })
		if ok && len(list) == 0 || !ok && came || at < look.from[i] {
			t.Fatalf("Fresh from %d on = %d %v with %d packets of selection %d, and new ones among them: %v", look.from[i], at, ok, len(list), i, came)
		}
		look.from[i] = at
	}
}

var modelTags = []string{"", "x", "y", "z"}

func (m *indexModel) queue(t *rapid.T) QueueID {
	if len(m.queues) == 0 {
		m.AddQueue(t)
	}
	return rapid.SampledFrom(m.queues).Draw(t, "queue")
}

func (m *indexModel) anyPacket(t *rapid.T) *modelPacket {
	if len(m.held) == 0 {
		t.Skip("nothing is queued")
	}
	return rapid.SampledFrom(m.held).Draw(t, "packet")
}

func (m *indexModel) forget(p *modelPacket) {
	i := slices.Index(m.held, p)
	m.held = slices.Delete(m.held, i, i+1)
}

func (m *indexModel) byID(id ID) *modelPacket {
	for _, p := range m.held {
		if p.ID == id {
			return p
		}
	}
	return nil
}

// order is every packet of a queue that a selection can take, in order of selection.
func (m *indexModel) order(q QueueID, s Selection) []*modelPacket {
	var list []*modelPacket
	for _, p := range m.held {
		if p.Queue == q && p.State == Ready && p.Priority > 0 && !(s.Fits16 && p.wide) && (s.Filter == nil || s.Filter(p.tags)) {
			list = append(list, p)
		}
	}
	sort.Slice(list, func(i, j int) bool {
		a, b := list[i], list[j]
		if a.Priority != b.Priority {
			return a.Priority < b.Priority
		}
		return (a.Seq < b.Seq) == (s.End == Oldest)
	})
	return list
}

// group is what a pop takes with p, in order.
func (m *indexModel) group(p *modelPacket, narrow bool) []*modelPacket {
	var list []*modelPacket
	for _, o := range m.held {
		if o != p && !(narrow && o.wide) && o.Queue == p.Queue && o.State == Ready && p.hasKey && o.hasKey && bytes.Equal(o.key, p.key) {
			list = append(list, o)
		}
	}
	sort.Slice(list, func(i, j int) bool {
		a, b := list[i], list[j]
		if a.Priority != b.Priority {
			return b.Priority == 0 || a.Priority != 0 && a.Priority < b.Priority
		}
		return a.Seq > b.Seq
	})
	return list
}

// drawHash draws from few hashes, some of which share a half.
func drawHash(t *rapid.T) uint64 {
	return rapid.SampledFrom([]uint64{0, 1, 2, 1 << 32, 1<<32 + 1, 1<<64 - 1}).Draw(t, "hash")
}

// drawUnique draws from few ids, short ones and one that its group has no room for.
func drawUnique(t *rapid.T) []byte {
	return rapid.SampledFrom([][]byte{nil, nil, {}, {0}, []byte("job-17"), bytes.Repeat([]byte("long id "), 20)}).Draw(t, "unique")
}

func drawEnd(t *rapid.T) End { return rapid.SampledFrom([]End{Newest, Oldest}).Draw(t, "end") }

func drawSelection(t *rapid.T) Selection {
	return Selection{End: drawEnd(t), Filter: drawFilter(t), Fits16: rapid.Bool().Draw(t, "narrow")}
}

func drawFilter(t *rapid.T) Filter {
	switch tags := rapid.SampledFrom(append([]string{"all", "not x"}, modelTags...)).Draw(t, "filter"); tags {
	case "all":
		return nil
	case "not x":
		return func(b string) bool { return b != "x" }
	default:
		return func(b string) bool { return b == tags }
	}
}

func (m *indexModel) drawKey(t *rapid.T) []byte {
	return rapid.SampledFrom([][]byte{
		nil, {}, []byte("a"), []byte("twelve bytes"), []byte("thirteen byte"), []byte("thirteen byts"),
		bytes.Repeat([]byte("long key "), 9), bytes.Repeat([]byte("long key "), 10),
	}).Draw(t, "key")
}

func (m *indexModel) drawTime(t *rapid.T, name string) int64 {
	if rapid.IntRange(0, 2).Draw(t, name+" set") > 0 {
		return 0
	}
	return m.now + rapid.Int64Range(-5, 40).Draw(t, name)
}

// drawMoment draws what ends a state, on the clock of that state.
func (m *indexModel) drawMoment(t *rapid.T, s State) int64 {
	until := m.drawTime(t, "until")
	if s == Claimed && until != 0 {
		until += m.steady - m.now
	}
	return until
}

func drawDelivery(t *rapid.T) Delivery {
	return rapid.SampledFrom([]Delivery{
		{}, {}, {Attempts: 1}, {Stored: 3}, {Consumer: 7}, {Origin: 1<<32 - 1},
		{Token: 1<<64 - 1, FirstClaim: 1 << 62, LastClaim: -1, Consumer: 1<<32 - 1, Attempts: 65535, Stored: 255},
	}).Draw(t, "delivery")
}

func (m *indexModel) nextSeq(t *rapid.T) uint64 {
	if rapid.Bool().Draw(t, "newest end") {
		m.high++
		return m.high
	}
	m.low--
	return m.low
}

func (m *indexModel) AddQueue(t *rapid.T) {
	if len(m.queues) >= 3 {
		t.Skip("enough queues")
	}
	q := m.x.AddQueue()
	if q == 0 || slices.Contains(m.queues, q) {
		t.Fatalf("AddQueue gave %d beside %v", q, m.queues)
	}
	m.queues = append(m.queues, q)
}

func (m *indexModel) DropQueue(t *rapid.T) {
	q := m.queue(t)
	want := error(nil)
	if slices.ContainsFunc(m.held, func(p *modelPacket) bool { return p.Queue == q }) ||
		slices.ContainsFunc(m.windows, func(w modelWindow) bool { return w.queue == q }) {
		want = ErrNotEmpty
	}
	if err := m.x.DropQueue(q); err != want {
		t.Fatalf("DropQueue(%d) = %v, want %v", q, err, want)
	}
	if want == nil {
		delete(m.looks, q)
		delete(m.keep, q)
		delete(m.alarms, q)
		m.queues = slices.DeleteFunc(m.queues, func(o QueueID) bool { return o == q })
		if err := m.x.DropQueue(q); err != ErrUnknownQueue {
			t.Fatalf("DropQueue(%d) again = %v", q, err)
		}
	}
}

// Push adds a burst of packets that differ in sequence only, so that groups and leaves get full.
func (m *indexModel) Push(t *rapid.T) {
	e := Entry{
		Queue: m.queue(t), Priority: rapid.SampledFrom([]uint32{0, 1, 2, 3, 10, 12_000}).Draw(t, "priority"), Key: m.drawKey(t),
		Size: rapid.Uint32Range(0, 9).Draw(t, "size"), Flags: rapid.Uint8().Draw(t, "flags"),
		Expiry: m.drawTime(t, "expiry"), State: State(rapid.SampledFrom([]int{0, 0, 0, 1, 2, 3, 4, 5, 6}).Draw(t, "state")),
		Ref: rapid.Uint32().Draw(t, "ref"), Hash: drawHash(t), Unique: drawUnique(t), Delivery: drawDelivery(t), UntilClaim: rapid.Bool().Draw(t, "until claim"),
	}
	e.Until = m.drawMoment(t, e.State)
	ownIdentity := rapid.SampledFrom([]string{"none", "the sequence", "its own"}).Draw(t, "identity")
	if e.Priority == 4 {
		e.Priority = ^uint32(0)
	}
	tags := rapid.SampledFrom(modelTags).Draw(t, "tags")
	e.Tags, e.Wide = []byte(tags), rapid.Bool().Draw(t, "wide")
	for range rapid.SampledFrom([]int{1, 2, 40}).Draw(t, "burst") {
		e.Seq = m.nextSeq(t)
		switch ownIdentity {
		case "the sequence":
			e.Identity = e.Seq
		case "its own":
			e.Identity = m.nextSeq(t)
		}
		p := &modelPacket{key: bytes.Clone(e.Key), hasKey: e.Key != nil, tags: tags, wide: e.Wide, unique: string(e.Unique), Packet: Packet{
			ID: m.x.Push(e, m.now), Queue: e.Queue, Priority: e.Priority, Seq: e.Seq, Expiry: max(e.Expiry, 0),
			Size: e.Size, Flags: e.Flags, Ref: e.Ref, Identity: e.Seq, Stored: e.Delivery.Stored, Consumer: e.Delivery.Consumer, HasUnique: len(e.Unique) > 0, UntilClaim: len(e.Unique) > 0 && e.UntilClaim,
		}}
		if p.tried = e.Delivery; e.Identity != 0 {
			p.Identity = e.Identity
		}
		if !p.hasKey {
			p.hash = e.Hash
		}
		if p.setState(max(e.State, Ready), e.Until); p.State == Ready && e.Until > m.now {
			p.setState(Delayed, e.Until)
		}
		if p.ID == 0 || m.byID(p.ID) != nil {
			t.Fatalf("Push gave %d", p.ID)
		}
		got, _ := m.x.Get(p.ID)
		p.Lane = got.Lane
		m.held = append(m.held, p)
	}
}

func (m *indexModel) Best(t *rapid.T) {
	q, s := m.queue(t), drawSelection(t)
	got, ok := m.x.Best(q, s)
	want := m.order(q, s)
	if ok != (len(want) > 0) || ok && got != want[0].Packet {
		t.Fatalf("Best = %+v %v, want the first of %d", got, ok, len(want))
	}
}

func (m *indexModel) Pop(t *rapid.T) {
	q, s := m.queue(t), drawSelection(t)
	s.Group = rapid.Bool().Draw(t, "group")
	s.Limit = Limit{
		Packets: rapid.SampledFrom([]int{0, 1, 2, 35, 1000}).Draw(t, "limit packets"),
		Bytes:   rapid.SampledFrom([]int64{0, 1, 10, 200}).Draw(t, "limit bytes"),
	}
	var want []*modelPacket
	if list := m.order(q, s); len(list) > 0 {
		want = list[:1]
		if s.Group {
			want = append(want[:1:1], m.group(list[0], s.Fits16)...)
		}
		lim, bytes := s.Limit, int64(0)
		for i, p := range want {
			bytes += int64(p.Size)
			if i > 0 && (lim.Packets > 0 && i >= lim.Packets || lim.Bytes > 0 && bytes > lim.Bytes) {
				want = want[:i]
				break
			}
		}
	}
	before := Packet{ID: 77}
	got := m.x.Pop(q, s, []Packet{before})
	if len(got) != len(want)+1 || got[0] != before {
		t.Fatalf("Pop appended %d packets, want %d", len(got)-1, len(want))
	}
	for i, p := range want {
		if got[i+1] != p.Packet {
			t.Fatalf("Pop gave %+v at %d, want %+v", got[i+1], i, p.Packet)
		}
		m.forget(p)
	}
}

func (m *indexModel) Next(t *rapid.T) {
	q, s := m.queue(t), drawSelection(t)
	if all := m.order(q, Selection{}); len(all) > 0 && m.x.Last(q) != all[len(all)-1].Packet {
		t.Fatalf("Last gave %+v, want %+v", m.x.Last(q), all[len(all)-1].Packet)
	}
	want := m.order(q, s)
	skip := rapid.SampledFrom([]int{0, 1, 30, 90, len(want) / 2, len(want) - 1}).Draw(t, "skip")
	skip, n := max(skip, 0), rapid.IntRange(0, 60).Draw(t, "n")
	want = want[min(skip, len(want)):]
	want = want[:min(n, len(want))]
	got := m.x.Next(q, s, skip, n, nil)
	if len(got) != len(want) {
		t.Fatalf("Next gave %d packets, want %d", len(got), len(want))
	}
	for i, p := range want {
		if got[i] != p.Packet {
			t.Fatalf("Next gave %+v at %d, want %+v", got[i], i, p.Packet)
		}
	}
}

// NextBehind goes on where a packet is, or was, and once more behind a change.
func (m *indexModel) NextBehind(t *rapid.T) {
	q, end := m.queue(t), drawEnd(t)
	var after Place
	if len(m.held) > 0 && rapid.Bool().Draw(t, "from a place") {
		p := m.anyPacket(t)
		after = Place{Priority: p.Priority, Seq: p.Seq - 1 + rapid.Uint64Range(0, 2).Draw(t, "beside it")}
	}
	n := rapid.SampledFrom([]int{-1, 0, 1, 3, 40, 1000}).Draw(t, "n")
	for _, p := range m.nextBehind(t, q, end, after, n) {
		after = p.Place()
	}
	rapid.SampledFrom([]func(*rapid.T){m.Push, m.Remove, func(*rapid.T) {}}).Draw(t, "change")(t)
	if m.x.hasQueue(q) {
		m.nextBehind(t, q, end, after, n)
	}
}

// behind is the packets that an end selects behind a place.
func (m *indexModel) behind(q QueueID, end End, after Place) []*modelPacket {
	return slices.DeleteFunc(m.order(q, Selection{End: end}), func(p *modelPacket) bool {
		return after.Priority > 0 && !end.Earlier(tree.Place{Priority: after.Priority, Seq: after.Seq}, tree.Place{Priority: p.Priority, Seq: p.Seq})
	})
}

func (m *indexModel) nextBehind(t *rapid.T, q QueueID, end End, after Place, n int) []Packet {
	want := m.behind(q, end, after)
	got := m.x.NextBehind(q, end, after, n, nil)
	if len(got) != min(max(n, 0), len(want)) {
		t.Fatalf("NextBehind %v gave %d packets of %d", after, len(got), len(want))
	}
	for i := range got {
		if got[i] != want[i].Packet {
			t.Fatalf("NextBehind %v gave %+v at %d, want %+v", after, got[i], i, want[i].Packet)
		}
	}
	return got
}

func (m *indexModel) FindValue(t *rapid.T) {
	q, hash, end := m.queue(t), drawHash(t), drawEnd(t)
	limit := rapid.SampledFrom([]int{0, 1, 3}).Draw(t, "max")
	var want []Packet
	for _, p := range m.order(q, Selection{}) {
		if p.hash == hash && hash != 0 {
			want = append(want, p.Packet)
		}
	}
	var from Place
	if len(m.held) > 0 && rapid.Bool().Draw(t, "from a place") {
		p := m.anyPacket(t)
		from = Place{Priority: max(p.Priority, 1), Seq: p.Seq - 1 + rapid.Uint64Range(0, 2).Draw(t, "beside it")}
		want = slices.DeleteFunc(want, func(p Packet) bool {
			return Newest.Earlier(tree.Place{Priority: from.Priority, Seq: from.Seq}, tree.Place{Priority: p.Priority, Seq: p.Seq}) == (end == Oldest)
		})
	}
	if end == Oldest {
		slices.Reverse(want)
	}
	if limit > 0 {
		want = want[:min(limit, len(want))]
	}
	before := Packet{ID: 77}
	if got, _ := m.x.FindValue(q, hash, end, from, limit, []Packet{before}); got[0] != before || !slices.Equal(got[1:], want) {
		t.Fatalf("FindValue appended %+v, want %+v", got[1:], want)
	}
}

// BuildValues makes a part of a tree; later actions and Check find whether it is right.
func (m *indexModel) BuildValues(t *rapid.T) {
	m.x.BuildValues(m.queue(t), rapid.IntRange(1, 8).Draw(t, "numbers"))
}

func (m *indexModel) SetState(t *rapid.T) {
	p := m.anyPacket(t)
	m.setState(t, p, State(rapid.IntRange(1, 6).Draw(t, "state")))
}

// Claim sets the state of the packet that is next, as consumers do, so that groups and lanes see
// packets of all kinds leave and come back.
func (m *indexModel) Claim(t *rapid.T) {
	if list := m.order(m.queue(t), drawSelection(t)); len(list) > 0 {
		m.setState(t, list[0], Claimed)
	}
}

func (m *indexModel) setState(t *rapid.T, p *modelPacket, s State) {
	until := m.drawMoment(t, s)
	if !m.x.SetState(p.ID, s, until) {
		t.Fatalf("SetState(%d) = false", p.ID)
	}
	p.setState(s, until)
}

func (m *indexModel) SetDelivery(t *rapid.T) {
	p := m.anyPacket(t)
	p.tried = drawDelivery(t)
	p.Stored, p.Consumer = p.tried.Stored, p.tried.Consumer
	if !m.x.SetDelivery(p.ID, p.tried) {
		t.Fatalf("SetDelivery(%d) = false", p.ID)
	}
}

func (m *indexModel) Find(t *rapid.T) {
	for _, p := range m.held {
		if got, ok := m.x.Find(p.Identity); !ok || got != p.Packet {
			t.Fatalf("Find(%d) = %+v %v, want %+v", p.Identity, got, ok, p.Packet)
		}
	}
	if got, ok := m.x.Find(m.high + 1); ok {
		t.Fatalf("Find of what was never pushed = %+v", got)
	}
}

func (m *indexModel) List(t *rapid.T) {
	q, s := m.queue(t), State(rapid.IntRange(1, 6).Draw(t, "state"))
	var want []Packet
	for _, p := range m.held {
		if p.Queue == q && p.State == s {
			want = append(want, p.Packet)
		}
	}
	slices.SortFunc(want, func(a, b Packet) int {
		if s == Delayed {
			return cmp.Or(cmp.Compare(a.Until, b.Until), cmp.Compare(a.Seq, b.Seq))
		}
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Seq, b.Seq))
	})
	var after Place
	if len(want) > 0 && rapid.Bool().Draw(t, "from the start") {
		i := rapid.IntRange(0, len(want)-1).Draw(t, "after")
		after = want[i].Place()
		want = want[i+1:]
	}
	n := rapid.SampledFrom([]int{-1, 0, 1, 40, 1000}).Draw(t, "n")
	want = want[:min(max(n, 0), len(want))]
	before := Packet{ID: 77}
	if got := m.x.List(q, s, after, n, []Packet{before}); got[0] != before || !slices.Equal(got[1:], want) {
		t.Fatalf("List of %v after %v gave %+v, want %+v", s, after, got[1:], want)
	}
}

// Each gives all packets in one state but those that could be selected if the filter took them.
func (m *indexModel) Each(t *rapid.T) {
	q, s, f := m.queue(t), State(rapid.IntRange(1, 6).Draw(t, "state")), drawFilter(t)
	want := make(map[Packet]bool)
	for _, p := range m.held {
		if takes := f == nil || f(p.tags); p.Queue == q && p.State == s && (takes || s != Ready || p.Priority == 0) {
			want[p.Packet] = takes
		}
	}
	got := maps.Collect(m.x.Each(q, s, Place{}, f, nil))
	if !maps.Equal(got, want) {
		t.Fatalf("Each gave %+v, want %+v", got, want)
	}
}

func (m *indexModel) Worst(t *rapid.T) {
	q, n := m.queue(t), rapid.SampledFrom([]int{1, 3, 1000}).Draw(t, "n")
	var want []Packet
	for _, p := range m.held {
		if p.Queue == q && p.State <= Delayed {
			want = append(want, p.Packet)
		}
	}
	slices.SortFunc(want, func(a, b Packet) int {
		zero := func(p Packet) int { return 1 - int(min(p.Priority, 1)) }
		return cmp.Or(zero(b)-zero(a), cmp.Compare(b.Priority, a.Priority), cmp.Compare(b.Seq, a.Seq))
	})
	var got []Packet
	for p := range m.x.Worst(q) {
		if got = append(got, p); len(got) == n {
			break
		}
	}
	if !slices.Equal(got, want[:min(n, len(want))]) {
		t.Fatalf("the worst are %+v, want the first %d of %+v", got, n, want)
	}
}

func (m *indexModel) Bands(t *rapid.T) {
	q := m.queue(t)
	var want [len(BandStarts)]int
	for _, p := range m.order(q, Selection{}) {
		want[sort.Search(len(BandStarts), func(i int) bool { return BandStarts[i] > p.Priority })-1]++
	}
	if got := m.x.Bands(q); got != want {
		t.Fatalf("Bands = %v, want %v", got, want)
	}
}

func (m *indexModel) Remove(t *rapid.T) {
	p := m.anyPacket(t)
	if !m.x.Remove(p.ID) {
		t.Fatalf("Remove(%d) = false", p.ID)
	}
	m.forget(p)
	if m.x.Remove(p.ID) {
		t.Fatalf("Remove(%d) again = true", p.ID)
	}
	if _, ok := m.x.Get(p.ID); ok {
		t.Fatalf("Get(%d) after Remove = true", p.ID)
	}
}

func (m *indexModel) Move(t *rapid.T) {
	p := m.anyPacket(t)
	p.Priority = rapid.SampledFrom([]uint32{0, 1, 2, 3, 10, 12_000}).Draw(t, "priority")
	switch rapid.SampledFrom([]string{"new", "the same", "the first"}).Draw(t, "sequence") {
	case "new":
		p.Seq = m.nextSeq(t)
	case "the first":
		p.Seq = p.Identity
	}
	if rapid.Bool().Draw(t, "elsewhere") {
		p.Queue, p.Flags = m.queue(t), rapid.Uint8().Draw(t, "flags")
		p.Expiry = max(0, m.drawTime(t, "expiry"))
	}
	if m.x.Move(Packet{ID: p.ID, Queue: 99}) || !m.x.Move(p.Packet) {
		t.Fatalf("Move(%d) must succeed for a known queue only", p.ID)
	}
	got, _ := m.x.Get(p.ID)
	p.Lane = got.Lane
}

func (m *indexModel) SetRef(t *rapid.T) {
	p := m.anyPacket(t)
	if m.x.SetRef(p.ID, p.Seq+1<<40, 1) || !m.x.SetRef(p.ID, p.Seq, p.Ref+1) {
		t.Fatal("SetRef must succeed for the packet's own sequence only")
	}
	p.Ref++
}

// FreeUnique takes the id from a packet, which may have none.
func (m *indexModel) FreeUnique(t *rapid.T) {
	p := m.anyPacket(t)
	m.x.FreeUnique(p.ID)
	p.unique, p.HasUnique, p.UntilClaim = "", false, false
}

// BuildIdentities makes a slice of the table of identities.
func (m *indexModel) BuildIdentities(t *rapid.T) {
	m.x.BuildIdentities(rapid.SampledFrom([]uint32{0, 1, 3, allBuilt}).Draw(t, "numbers"))
}

// Holder asks for the packet that holds an id: the youngest that has it and is not finished.
func (m *indexModel) Holder(t *rapid.T) {
	q, unique := m.queue(t), drawUnique(t)
	want := uint64(0)
	for _, p := range m.held {
		if p.Queue == q && p.unique == string(unique) && p.unique != "" && p.State != Dead && p.State != Done {
			want = max(want, p.Identity)
		}
	}
	for _, w := range m.windows {
		if w.queue == q && w.unique == string(unique) {
			want = max(want, w.identity)
		}
	}
	if got, ok := m.x.Holder(q, unique); ok != (want != 0) || got != want {
		t.Fatalf("Holder(%q) = %d %v, want %d", unique, got, ok, want)
	}
}

func (m *indexModel) Only(t *rapid.T) {
	q, key := m.queue(t), m.drawKey(t)
	if key == nil {
		key = []byte("never pushed")
	}
	var with []*modelPacket
	for _, p := range m.held {
		if p.Queue == q && p.hasKey && bytes.Equal(p.key, key) && p.State != Done {
			with = append(with, p)
		}
	}
	got, n := m.x.Only(q, key)
	if n != min(len(with), 2) || n == 1 && got != with[0].Packet {
		t.Fatalf("Only(%q) = %+v %d, want one of %d", key, got, n, len(with))
	}
}

func (m *indexModel) Group(t *rapid.T) {
	s := Selection{End: drawEnd(t), Fits16: rapid.Bool().Draw(t, "narrow")}
	list := m.order(m.queue(t), s)
	if len(list) == 0 {
		t.Skip("nothing is selectable")
	}
	s.Limit.Packets = rapid.SampledFrom([]int{0, 1, 3}).Draw(t, "limit packets")
	want := append(list[:1:1], m.group(list[0], s.Fits16)...)
	if s.Limit.Packets > 0 {
		want = want[:min(s.Limit.Packets, len(want))]
	}
	got := m.x.Group(list[0].ID, s, nil)
	if !slices.EqualFunc(got, want, func(p Packet, o *modelPacket) bool { return p == o.Packet }) {
		t.Fatalf("Group gave %d packets, want %d", len(got), len(want))
	}
}

// Advance lets both clocks go on, and the one of the wall jump now and then.
func (m *indexModel) Advance(t *rapid.T) {
	ms := rapid.Int64Range(0, 20).Draw(t, "ms")
	m.now, m.steady = m.now+ms, m.steady+ms
	if rapid.IntRange(0, 5).Draw(t, "jump") == 0 {
		m.now = max(1, m.now+rapid.Int64Range(-300, 60).Draw(t, "by"))
	}
	for range rapid.SampledFrom([]int{1, 3, 1000}).Draw(t, "max") {
		least, any := int64(0), false
		for _, p := range m.held {
			if w, ok := m.wait(p); ok && (!any || w < least) {
				least, any = w, true
			}
		}
		for _, w := range m.windows {
			if wait := w.until - m.now; !any || wait < least {
				least, any = wait, true
			}
		}
		for _, at := range m.alarms {
			if wait := at - m.now; !any || wait < least {
				least, any = wait, true
			}
		}
		before, due := m.x.Due(m.now, m.steady)
		ev, ok := m.x.Advance(m.now, m.steady)
		if ok != due || ok != (any && least <= 0) {
			t.Fatalf("Advance = %v and Due = %v with the first in %d, %v", ok, due, least, any)
		}
		if !ok {
			return
		}
		if ev.Kind == Alarm {
			if at, set := m.alarms[ev.Packet.Queue]; !set || at-m.now != least || before != (Packet{}) {
				t.Fatalf("Advance gave %+v, and the first is due in %d", ev, least)
			}
			delete(m.alarms, ev.Packet.Queue)
			continue
		}
		if ev.Kind == WindowEnded {
			at := slices.IndexFunc(m.windows, func(w modelWindow) bool { return w.queue == ev.Packet.Queue && w.identity == ev.Packet.Identity })
			if at < 0 || m.windows[at].until-m.now != least || before != (Packet{}) {
				t.Fatalf("Advance gave %+v, and the first is due in %d", ev, least)
			}
			m.windows = slices.Delete(m.windows, at, at+1)
			continue
		}
		p := m.byID(ev.Packet.ID)
		if w, waits := m.wait(p); !waits || w != least || before != p.Packet {
			t.Fatalf("Due = %+v, which waits for another %d, and the first is due in %d", before, w, least)
		}
		m.happened(t, ev, p)
	}
}

// happened follows the change that was due for a packet.
func (m *indexModel) happened(t *rapid.T, ev Event, p *modelPacket) {
	kind := Due
	switch {
	case p.Expiry != 0 && p.Expiry <= m.now || p.State == Dead:
		kind = Expired
		m.forget(p)
	case p.State == Claimed:
		kind = LeaseEnded
	}
	if kind != Expired {
		p.setState(Ready, 0)
	}
	if ev.Kind != kind || ev.Packet != p.Packet {
		t.Fatalf("Advance gave %v of %+v, want %v of %+v", ev.Kind, ev.Packet, kind, p.Packet)
	}
}

// AdvancePacket lets time pass, and then one packet alone follows.
func (m *indexModel) AdvancePacket(t *rapid.T) {
	m.now, m.steady = m.now+20, m.steady+20
	p := m.anyPacket(t)
	wait, waits := m.wait(p)
	ev, ok := m.x.AdvancePacket(p.ID, m.now, m.steady)
	if ok != (waits && wait <= 0) {
		t.Fatalf("AdvancePacket gave %+v, %v of one that is due in %d, %v", ev, ok, wait, waits)
	}
	if ok {
		m.happened(t, ev, p)
	}
}

// AdvanceHolder ends all that is due before somebody holds an id.
func (m *indexModel) AdvanceHolder(t *rapid.T) {
	m.now, m.steady = m.now+20, m.steady+20
	q, unique := m.queue(t), drawUnique(t)
	due := func(p *modelPacket) bool { wait, waits := m.wait(p); return waits && wait <= 0 }
	for {
		ev, ok := m.x.AdvanceHolder(q, unique, m.now, m.steady)
		if !ok {
			break
		}
		if at := slices.IndexFunc(m.windows, func(w modelWindow) bool { return w.queue == q && w.unique == string(unique) }); ev.Kind == WindowEnded {
			if at < 0 || m.windows[at].until > m.now || m.windows[at].identity != ev.Packet.Identity {
				t.Fatalf("AdvanceHolder gave %+v", ev)
			}
			m.windows = slices.Delete(m.windows, at, at+1)
			continue
		}
		p := m.byID(ev.Packet.ID)
		if p.unique != string(unique) || !due(p) {
			t.Fatalf("AdvanceHolder gave %+v, which is not due", ev)
		}
		m.happened(t, ev, p)
	}
	holder, _ := m.x.Holder(q, unique)
	for _, w := range m.windows {
		if w.queue == q && w.unique == string(unique) && w.until <= m.now {
			t.Fatalf("a window that is over holds %q", unique)
		}
	}
	for _, p := range m.held {
		if p.Queue == q && p.Identity == holder && p.unique == string(unique) && p.State.unfinished() && due(p) {
			t.Fatalf("%+v holds %q, and is due", p.Packet, unique)
		}
	}
}

// verify compares all that can be asked without changing anything.
func (m *indexModel) verify(t *rapid.T) {
	if err := m.x.Check(); err != nil {
		t.Fatal(err)
	}
	for _, q := range m.queues {
		if m.x.queues.At(uint32(q)).values == unsearchable {
			t.Fatal("a queue whose packets have different sequences has no tree of values")
		}
	}
	counts := map[QueueID]Counts{}
	priorities := map[[2]uint32]bool{} // by lane
	wait, any := int64(0), false
	for _, p := range m.held {
		c := counts[p.Queue]
		c.Bytes += int64(p.Size)
		if p.State >= Dead {
			c.Ended += int64(p.Size)
		}
		if p.State <= Dead && p.tried.Origin != 0 {
			c.Strays++
		}
		switch {
		case p.State == Claimed:
			c.Claimed++
		case p.State == Delayed:
			c.Delayed++
		case p.State == Dead:
			c.Dead++
		case p.State == Done:
			c.Done++
		case p.State == Damaged:
			c.Damaged++
		case p.Priority == 0:
			c.Unselectable++
		default:
			c.Ready++
			if at := [2]uint32{uint32(p.Lane), p.Priority}; !priorities[at] {
				priorities[at] = true
				c.Priorities++
			}
		}
		counts[p.Queue] = c
		if w, ok := m.wait(p); ok && (!any || w < wait) {
			wait, any = w, true
		}
		if got := m.x.Delivery(p.ID); got != p.tried {
			t.Fatalf("Delivery = %+v, want %+v", got, p.tried)
		}
		if got, ok := m.x.Get(p.ID); !ok || got != p.Packet {
			t.Fatalf("Get = %+v %v, want %+v", got, ok, p.Packet)
		}
		if key, ok := m.x.Key(p.ID, nil); ok != p.hasKey || !bytes.Equal(key, p.key) {
			t.Fatalf("Key = %q %v, want %q %v", key, ok, p.key, p.hasKey)
		}
		if unique, ok := m.x.Unique(p.ID, nil); ok != (p.unique != "") || string(unique) != p.unique {
			t.Fatalf("Unique = %q %v, want %q", unique, ok, p.unique)
		}
		if tags, ok := m.x.Tags(p.Lane); !ok || tags != p.tags {
			t.Fatalf("Tags = %q %v, want %q", tags, ok, p.tags)
		}
	}
	for _, w := range m.windows {
		if at := w.until - m.now; !any || at < wait {
			wait, any = at, true
		}
	}
	for _, at := range m.alarms {
		if at -= m.now; !any || at < wait {
			wait, any = at, true
		}
	}
	for _, q := range m.queues {
		if got, want := m.x.HasWindow(q), slices.ContainsFunc(m.windows, func(w modelWindow) bool { return w.queue == q }); got != want {
			t.Fatalf("HasWindow = %v, want %v", got, want)
		}
		all := m.order(q, Selection{})
		oldest := m.order(q, Selection{End: Oldest})
		for i, p := range all {
			if got := m.x.Position(p.ID); got != i {
				t.Fatalf("Position(%d) = %d, want %d", p.ID, got, i)
			}
			if got, want := m.x.Before(p.ID), slices.Index(oldest, p); got != want {
				t.Fatalf("Before(%d) = %d, want %d", p.ID, got, want)
			}
			if got := m.x.Distance(q, all[i/2].Place(), p.Place()); got != i-i/2 {
				t.Fatalf("Distance from %d to %d = %d", i/2, i, got)
			}
		}
		narrow := m.order(q, Selection{Fits16: true})
		if p, ok := m.x.Best(q, Selection{Fits16: true}); ok != (len(narrow) > 0) || ok && p.ID != narrow[0].ID {
			t.Fatalf("a narrow take finds %d %v, want the first of %d", p.ID, ok, len(narrow))
		}
		m.verifyLanes(t, q)
		m.verifyFresh(t, q)
		if got := m.x.Counts(q); got != counts[q] {
			t.Fatalf("Counts(%d) = %+v, want %+v", q, got, counts[q])
		}
	}
	if got, ok := m.x.Wait(m.now, m.steady); got != wait || ok != any {
		t.Fatalf("Wait = %d %v, want %d %v", got, ok, wait, any)
	}
}

// verifyLanes compares how many lanes a queue has, and which.
func (m *indexModel) verifyLanes(t *rapid.T, q QueueID) {
	lanes, wide, tags := map[LaneID]bool{}, map[LaneID]bool{}, map[string]bool{}
	for _, p := range m.held {
		if p.Queue == q && (p.tags != "" || p.wide) {
			lanes[p.Lane], tags[p.tags] = true, true
		}
		if p.Queue == q && p.wide {
			wide[p.Lane] = true
		}
	}
	if n := m.x.WideLanes(q); n != len(wide) {
		t.Fatalf("WideLanes = %d, want %v", n, wide)
	}
	for _, set := range modelTags {
		if n, has := m.x.TagSets(q, []byte(set)); n != len(lanes) || has != tags[set] {
			t.Fatalf("Lanes(%q) = %d %v, want %d %v", set, n, has, len(lanes), tags[set])
		}
	}
}

func TestIndexDoesWhatTheNaiveModelDoes(t *testing.T) {
	defer func(n int) { searchedByWalk = n }(searchedByWalk)
	searchedByWalk = 2
	rapid.Check(t, func(t *rapid.T) {
		m := &indexModel{x: New(), now: 1000, steady: 5000, high: 1 << 32, low: 1<<32 + 1, looks: map[QueueID]*modelLook{}, alarms: map[QueueID]int64{}}
		actions := map[string]func(*rapid.T){
			"AddQueue": m.AddQueue, "DropQueue": m.DropQueue, "KeepDead": m.KeepDead, "SetAlarm": m.SetAlarm, "Push": m.Push, "Push more": m.Push, "Push even more": m.Push,
			"Best": m.Best, "Pop": m.Pop, "Next": m.Next, "Claim": m.Claim, "Claim more": m.Claim, "SetState": m.SetState,
			"SetDelivery": m.SetDelivery, "List": m.List, "NextBehind": m.NextBehind, "Bands": m.Bands, "Remove": m.Remove, "Move": m.Move, "SetRef": m.SetRef, "FreeUnique": m.FreeUnique,
			"Only": m.Only, "Holder": m.Holder, "Holder more": m.Holder, "Window": m.Window, "BuildIdentities": m.BuildIdentities, "Worst": m.Worst, "Group": m.Group, "Advance": m.Advance, "AdvancePacket": m.AdvancePacket, "AdvanceHolder": m.AdvanceHolder,
			"FindValue": m.FindValue, "FindValue more": m.FindValue, "BuildValues": m.BuildValues, "NoteFresh": m.NoteFresh,
			"": m.verify,
		}
		for i := range 3 {
			if i == rapid.IntRange(0, 3).Draw(t, "searched from") {
				actions["Find"] = m.Find
			}
			t.Repeat(actions)
		}
		for len(m.held) > 0 {
			m.Remove(t)
		}
		for _, w := range m.windows {
			m.x.EndWindow(w.queue)
		}
		m.windows = nil
		for q := range m.alarms {
			m.x.SetAlarm(q, 0)
		}
		clear(m.alarms)
		m.verify(t)
		if m.x.entries.Live+m.x.forest.Live+m.x.keys.groups.Live+m.x.keys.blocks.Live+m.x.largeGroups.Live+m.x.timers.Live+
			m.x.deliveries.Live+m.x.byStates.Live+m.x.uniques.ids.groups.Live+m.x.uniques.ids.blocks.Live != 0 || m.x.identities.built != 0 {
			t.Fatal("an empty index still holds slots")
		}
	})
}

// Due returns the packet that the next Advance changes, as it is before, the zero Packet if that
// is of a window or a queue; false when nothing is due.
func (x *Index) Due(now, steady int64) (Packet, bool) {
	timer, ago, ok := x.first(now, steady)
	if !ok || ago < 0 {
		return Packet{}, false
	}
	t := x.timers.At(timer)
	if t.delivery == windowTimer || t.delivery == alarmTimer {
		return Packet{}, true
	}
	return x.packet(t.entry, x.entries.At(t.entry)), true
}
