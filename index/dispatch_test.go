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
	asked map[[2]uint32]uint64
}

// toEnd puts a subscriber at the end of the wait lists.
func (m *dispatchModel) toEnd(s *modelSubscriber) {
	m.clock++
	s.waiting = m.clock
	for q := range s.since {
		s.since[q] = m.clock
	}
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
	id := SubscriberID(rapid.Uint32Range(0, 6).Draw(t, "subscriber"))
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
	for c := range uint32(3) {
		m.asked[[2]uint32{uint32(w), c}] = 0
	}
}

func (m *dispatchModel) Add(t *rapid.T) {
	if len(m.held) == 5 {
		t.Skip("enough subscribers")
	}
	class := Class(rapid.IntRange(0, 2).Draw(t, "class"))
	id := m.d.Add(class)
	if id == 0 || m.held[id] != nil {
		t.Fatalf("Add gave %d", id)
	}
	m.held[id] = &modelSubscriber{class: class, since: map[WaitListID]int{}}
}

func (m *dispatchModel) Remove(t *rapid.T) {
	id, _ := m.pick(t)
	m.d.Remove(id)
	delete(m.held, id)
}

func (m *dispatchModel) Subscribe(t *rapid.T) {
	id, s := m.pick(t)
	q := m.list(t)
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
	n := rapid.SampledFrom([]uint32{0, 1, 3, ^uint32(0)}).Draw(t, "n")
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

// asks answers for some of the classes. It counts, for each list and class, how often it was
// asked while somebody of the class waited.
func (m *dispatchModel) asks(t *rapid.T, q WaitListID, takes int) func(Class, uint64) (uint64, bool) {
	var asked [3]bool
	return func(c Class, n uint64) (uint64, bool) {
		at := [2]uint32{uint32(q), uint32(c)}
		if asked[c] || n != 0 && n != m.asked[at] {
			t.Fatalf("class %d of list %d is asked with %d, want %d or 0, and once: %v", c, q, n, m.asked[at], asked[c])
		}
		asked[c] = true
		m.asked[at] = n + 1
		return n + 1, takes>>c&1 == 1
	}
}

// verify compares all that can be asked without changing anything.
func (m *dispatchModel) verify(t *rapid.T) {
	for q := range m.lists {
		for takes := range 1 << 3 { // a bit for each class
			want, best := SubscriberID(0), 0
			for id, s := range m.held {
				since, ok := s.since[q]
				if ok && s.canTake() && takes>>s.class&1 == 1 && (want == 0 || since < best) {
					want, best = id, since
				}
			}
			if got, ok := m.d.Waiting(q, m.asks(t, q, takes)); got != want || ok != (want != 0) {
				t.Fatalf("Waiting(%d, %b) = %d %v, want %d", q, takes, got, ok, want)
			}
		}
		all := m.d.Subscribers(q, nil)
		if n := len(all); n != m.subscribers(q) || n != len(slices.Compact(slices.Sorted(slices.Values(all)))) {
			t.Fatalf("Subscribers(%d) = %v, want %d", q, all, m.subscribers(q))
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
		m := &dispatchModel{d: NewDispatch(), held: map[SubscriberID]*modelSubscriber{}, lists: map[WaitListID]bool{}, asked: map[[2]uint32]uint64{}}
		t.Repeat(map[string]func(*rapid.T){
			"Add": m.Add, "Remove": m.Remove, "Subscribe": m.Subscribe, "Unsubscribe": m.Unsubscribe, "AddList": m.AddList, "RemoveList": m.RemoveList,
			"AskAnew": m.AskAnew, "Credit": m.Credit,
			"Spend": m.Spend, "Pause": m.Pause, "Resume": m.Resume, "": m.verify,
		})
	})
}
