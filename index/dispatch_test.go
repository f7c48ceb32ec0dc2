package index

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// modelSubscriber is a subscriber in the naive model. Its place in the wait list of each of its
// lists is the moment it began to wait.
type modelSubscriber struct {
	class   Class
	credits uint32
	paused  bool
	waiting int
	since   map[WaitListID]int
}

func (s *modelSubscriber) canTake() bool { return s.credits > 0 && !s.paused }

// dispatchModel drives a dispatch and the naive model with the same calls.
type dispatchModel struct {
	d     *Dispatch
	held  map[SubscriberID]*modelSubscriber
	lists map[WaitListID]bool
	clock int
	lines map[modelLineID]*modelLine // of those who can take a delivery
	asked uint64                     // counts what classes return
}

// modelLineID says whose line it is: that of a class in a list.
type modelLineID struct {
	w WaitListID
	c Class
}

type modelLine struct {
	asked  uint64
	sleeps bool
}

// modelKeys are the keys of the classes. The first two have none.
var modelKeys = []Key{{}, {Gate: 1}, {[]string{"a"}, 0}, {[]string{"a", "b"}, 0}, {[]string{"b", "a", "c"}, 1}, {[]string{"b"}, 2}}

// line returns what the model knows of a line, which is new if it knows nothing.
func (m *dispatchModel) line(w WaitListID, c Class) *modelLine {
	id := modelLineID{w, c}
	if m.lines[id] == nil {
		m.lines[id] = &modelLine{}
	}
	return m.lines[id]
}

// first returns who waits longest of a class in a list, and since when; 0 if nobody does.
func (m *dispatchModel) first(w WaitListID, c Class) (first SubscriberID, since int) {
	for _, id := range m.of(w, c) {
		if at := m.held[id].since[w]; first == 0 || at < since {
			first, since = id, at
		}
	}
	return first, since
}

// toEnd puts a subscriber at the end of the wait lists.
func (m *dispatchModel) toEnd(s *modelSubscriber) {
	m.clock++
	s.waiting = m.clock
	for q := range s.since {
		s.since[q] = m.clock
		if len(m.of(q, s.class)) == 1 { // it is alone in a new line
			delete(m.lines, modelLineID{q, s.class})
		}
	}
}

// of returns those of a class that can take a delivery of a list.
func (m *dispatchModel) of(w WaitListID, c Class) (all []SubscriberID) {
	for id, s := range m.held {
		if _, ok := s.since[w]; ok && s.class == c && s.canTake() {
			all = append(all, id)
		}
	}
	return all
}

// change calls f and, if that makes a known subscriber wait, puts it at the end of its wait lists.
func (m *dispatchModel) change(s *modelSubscriber, f func()) {
	if s == nil {
		return
	}
	was := s.canTake()
	if f(); !was && s.canTake() {
		m.toEnd(s)
	}
}

// pick names a subscriber, an unknown one now and then.
func (m *dispatchModel) pick(t *rapid.T) (SubscriberID, *modelSubscriber) {
	id := SubscriberID(rapid.Uint32Range(0, 8).Draw(t, "subscriber"))
	return id, m.held[id]
}

// list names a wait list.
func (m *dispatchModel) list(t *rapid.T) WaitListID {
	if len(m.lists) == 0 {
		t.Skip("no list")
	}
	return rapid.SampledFrom(slices.Sorted(maps.Keys(m.lists))).Draw(t, "list")
}

func (m *dispatchModel) AddList(t *rapid.T) {
	if len(m.lists) == 3 {
		t.Skip("enough lists")
	}
	w := m.d.AddList()
	if w == 0 || m.lists[w] {
		t.Fatalf("AddList gave %d", w)
	}
	m.lists[w] = true
}

func (m *dispatchModel) RemoveList(t *rapid.T) {
	w := m.list(t)
	want := m.subscribers(w) == 0
	if got := m.d.IsEmpty(w); got != want {
		t.Fatalf("IsEmpty = %v, want %v", got, want)
	}
	if want {
		m.d.RemoveList(w)
		delete(m.lists, w)
	}
}

func (m *dispatchModel) AskAnew(t *rapid.T) {
	w := m.list(t)
	m.d.AskAnew(w)
	for id := range m.lines {
		if id.w == w {
			m.lines[id] = &modelLine{}
		}
	}
}

func (m *dispatchModel) Wake(t *rapid.T) {
	w, by := m.list(t), rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "by")
	m.asked++
	m.d.Wake(w, []byte(by), m.asked)
	for id, l := range m.lines {
		if k := m.d.waitList(w).keyed; id.w == w && l.sleeps && k.byClass[id.c].by == by {
			*l = modelLine{asked: m.asked}
		}
	}
}

func (m *dispatchModel) Add(t *rapid.T) {
	if len(m.held) == 8 {
		t.Skip("enough subscribers")
	}
	m.add(t, Class(rapid.IntRange(0, len(modelKeys)-1).Draw(t, "class")))
}

func (m *dispatchModel) add(t *rapid.T, c Class) (SubscriberID, *modelSubscriber) {
	id := m.d.Add(c)
	if id == 0 || m.held[id] != nil {
		t.Fatalf("Add gave %d", id)
	}
	m.held[id] = &modelSubscriber{class: c, since: map[WaitListID]int{}}
	return id, m.held[id]
}

func (m *dispatchModel) Remove(t *rapid.T) {
	id, _ := m.pick(t)
	m.d.Remove(id)
	delete(m.held, id)
}

func (m *dispatchModel) Subscribe(t *rapid.T) {
	id, s := m.pick(t)
	m.subscribe(t, id, s, m.list(t))
}

func (m *dispatchModel) subscribe(t *rapid.T, id SubscriberID, s *modelSubscriber, q WaitListID) {
	want := false
	if s != nil {
		_, has := s.since[q]
		want = !has
	}
	if got := m.d.Subscribe(id, q); got != want {
		t.Fatalf("Subscribe = %v, want %v", got, want)
	}
	if want {
		s.since[q] = s.waiting
	}
}

func (m *dispatchModel) Unsubscribe(t *rapid.T) {
	id, s := m.pick(t)
	q := m.list(t)
	want := false
	if s != nil {
		_, want = s.since[q]
		delete(s.since, q)
	}
	if got := m.d.Unsubscribe(id, q); got != want {
		t.Fatalf("Unsubscribe = %v, want %v", got, want)
	}
}

func (m *dispatchModel) Credit(t *rapid.T) {
	id, s := m.pick(t)
	m.credit(id, s, rapid.SampledFrom([]uint32{0, 1, 3, ^uint32(0)}).Draw(t, "n"))
}

func (m *dispatchModel) credit(id SubscriberID, s *modelSubscriber, n uint32) {
	m.d.Credit(id, n)
	m.change(s, func() { s.credits = uint32(min(uint64(s.credits)+uint64(n), 1<<32-1)) })
}

func (m *dispatchModel) Spend(t *rapid.T) {
	id, s := m.pick(t)
	m.d.Spend(id)
	if s != nil && s.credits > 0 {
		if s.credits--; s.canTake() {
			m.toEnd(s)
		}
	}
}

func (m *dispatchModel) Pause(t *rapid.T) {
	id, s := m.pick(t)
	m.d.SetPaused(id, true)
	m.change(s, func() { s.paused = true })
}

func (m *dispatchModel) Resume(t *rapid.T) {
	id, s := m.pick(t)
	m.d.SetPaused(id, false)
	m.change(s, func() { s.paused = false })
}

// subscribers is how many subscribers a wait list has.
func (m *dispatchModel) subscribers(q WaitListID) (n int) {
	for _, s := range m.held {
		if _, ok := s.since[q]; ok {
			n++
		}
	}
	return n
}

// asking is one question of Waiting to a class.
type asking struct {
	class Class
	asked uint64
}

// ask compares whom Waiting asks, with which numbers, and whom it returns.
func (m *dispatchModel) ask(t *rapid.T, w WaitListID) {
	open := rapid.IntRange(0, 3).Draw(t, "open")
	takes := make([]bool, len(modelKeys))
	var line []Class // the longest waiting first
	for c := range Class(len(modelKeys)) {
		takes[c] = rapid.IntRange(0, 4).Draw(t, "takes") == 0
		if first, _ := m.first(w, c); first != 0 {
			line = append(line, c)
		}
	}
	slices.SortFunc(line, func(a, b Class) int {
		_, x := m.first(w, a)
		_, y := m.first(w, b)
		return x - y
	})
	var want, got []asking
	var wanted SubscriberID
	for _, c := range line {
		l, key := m.line(w, c), modelKeys[c]
		if key.By != nil && (l.sleeps || key.Gate >= open) {
			continue
		}
		want = append(want, asking{c, l.asked})
		l.asked = m.asked + uint64(len(want))
		if l.sleeps = key.By != nil && !takes[c]; takes[c] {
			wanted, _ = m.first(w, c)
			break
		}
	}
	first, ok := m.d.Waiting(w, open, func(c Class, asked uint64) (uint64, bool) {
		got = append(got, asking{c, asked})
		return m.asked + uint64(len(got)), takes[c]
	})
	if m.asked += uint64(len(want)); !slices.Equal(got, want) || first != wanted || ok != (wanted != 0) {
		t.Fatalf("Waiting(%d, %d) asks %v and returns %d %v, want %v and %d", w, open, got, first, ok, want, wanted)
	}
}

// verify asks each list once, and compares all that can be asked without changing anything.
func (m *dispatchModel) verify(t *rapid.T) {
	for id := range m.lines {
		if !m.lists[id.w] || len(m.of(id.w, id.c)) == 0 {
			delete(m.lines, id)
		}
	}
	for _, q := range slices.Sorted(maps.Keys(m.lists)) {
		m.ask(t, q)
		keyed := slices.ContainsFunc([]Class{2, 3, 4, 5}, func(c Class) bool { return len(m.of(q, c)) > 0 })
		if m.d.HasKeyed(q) != keyed {
			t.Fatalf("HasKeyed(%d) = %v, want %v", q, !keyed, keyed)
		}
		all := m.d.Subscribers(q, nil)
		if n := len(all); n != m.subscribers(q) || n != len(slices.Compact(slices.Sorted(slices.Values(all)))) {
			t.Fatalf("Subscribers(%d) = %v, want %d", q, all, m.subscribers(q))
		}
		if again := m.d.Subscribers(q, nil); !slices.Equal(again, all) {
			t.Fatalf("Subscribers(%d) = %v and then %v", q, all, again)
		}
	}
	links := 0
	for id, s := range m.held {
		links += len(s.since)
		got := m.d.Lists(id, nil)
		slices.Sort(got)
		want := make([]WaitListID, 0, 3)
		for q := range s.since {
			want = append(want, q)
		}
		slices.Sort(want)
		if !slices.Equal(got, want) || m.d.Credits(id) != s.credits {
			t.Fatalf("subscriber %d has lists %v and %d credits, want %v and %d", id, got, m.d.Credits(id), want, s.credits)
		}
	}
	if int(m.d.subscriptions.Live) != links || int(m.d.waitLists.Live) != len(m.lists) || int(m.d.subscribers.Live) != len(m.held) {
		t.Fatal("subscriptions, lists or subscribers leaked")
	}
}

func TestDispatchDoesWhatTheNaiveModelDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &dispatchModel{d: NewDispatch(func(c Class) Key { return modelKeys[c] }), held: map[SubscriberID]*modelSubscriber{}, lists: map[WaitListID]bool{}, lines: map[modelLineID]*modelLine{}}
		m.AddList(t)
		for _, c := range rapid.Permutation([]Class{0, 1, 2, 3, 4, 5}).Draw(t, "line") {
			id, s := m.add(t, c)
			m.credit(id, s, 1)
			m.subscribe(t, id, s, m.list(t))
		}
		t.Repeat(map[string]func(*rapid.T){
			"Add": m.Add, "Remove": m.Remove, "Subscribe": m.Subscribe, "Unsubscribe": m.Unsubscribe, "AddList": m.AddList, "RemoveList": m.RemoveList,
			"AskAnew": m.AskAnew, "Wake": m.Wake, "Wake more": m.Wake, "Credit": m.Credit,
			"Spend": m.Spend, "Pause": m.Pause, "Resume": m.Resume, "": m.verify,
		})
	})
}
