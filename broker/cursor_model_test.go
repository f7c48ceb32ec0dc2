package broker_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdfast-queue/holdfast/broker"
)

// walk is a look at a list that goes on between other calls, and what it must find: of the elements
// that were there when it began those that still are, from the left.
type walk struct {
	name   string
	cursor broker.ListCursor
	ids    []int
	since  int // the last id when it began
}

// begin begins a look if none is under way.
func (p *player) begin(name string) {
	if p.walk != nil && p.walk.cursor.More() {
		return
	}
	list := p.m.byName[name]
	from := p.pick(len(list) + 1)
	p.walk = &walk{name: name, since: p.m.ids}
	if list = list[from:]; p.pick(2) == 0 {
		list = list[:p.pick(len(list)+1)]
	}
	for _, e := range list {
		p.walk.ids = append(p.walk.ids, e.id)
	}
	p.note("begin a look at %s %d %d", name, from, len(list))
	p.failed(p.tx.Elements([]byte(name), from, len(list), &p.walk.cursor), "Elements")
	p.goOn(name)
}

// goOn makes some slices of the look.
func (p *player) goOn(string) {
	if w := p.walk; w != nil && w.cursor.More() {
		n := 1 + p.pick(1+len(w.ids)/8)
		f, err := p.tx.NextElements([]byte(w.name), &w.cursor, n)
		p.note("look on at %s: %d of %d", w.name, len(f.Packets), n)
		p.failed(err, "NextElements")
		var want []element
		for _, e := range p.m.byName[w.name] {
			if slices.Contains(w.ids, e.id) {
				want = append(want, e)
			}
		}
		if len(f.Packets) > min(n, len(want)) {
			p.t.Fatalf("NextElements found %d of %d, after %v", len(f.Packets), len(want), p.trace)
		}
		for i, e := range f.Packets {
			if string(e.Payload) != want[i].value {
				p.t.Fatalf("NextElements found %.10q, want %.10q, after %v", e.Payload, want[i].value, p.trace)
			}
			w.ids = slices.DeleteFunc(w.ids, func(id int) bool { return id == want[i].id })
		}
		if !w.cursor.More() && len(f.Packets) < len(want) {
			p.t.Fatalf("the look ended at %d of %d, after %v", len(f.Packets), len(want), p.trace)
		}
	}
}

// endWalk ends the look.
func (p *player) endWalk() {
	if p.walk != nil {
		p.walk.cursor.End()
		p.walk = nil
	}
}

// slices returns what n slices of a look find, each of one element, or all slices if n is 0.
func (h *harness) slices(tx *broker.Tx, name string, c *broker.ListCursor, n int) (values []string) {
	h.t.Helper()
	for i := 0; c.More() && (n == 0 || i < n); i++ {
		f, err := tx.NextElements([]byte(name), c, 1)
		if err != nil {
			h.t.Fatal(err)
		}
		for _, e := range f.Packets {
			values = append(values, string(e.Payload))
		}
	}
	return values
}

func TestALookGoesOnBehindTheSameElementWhateverAnInsertionMoves(t *testing.T) {
	h := newHarness(t)
	defer func() { _ = h.b.Close() }()
	const n = 12
	var all []string
	for i := range n {
		all = append(all, fmt.Sprint(i))
	}
	for passed := 1; passed < n; passed++ {
		for gone := range min(passed, 3) + 1 { // of those that were passed last
			for at := range n - gone + 1 {
				name := fmt.Sprint("list ", passed, gone, at)
				h.together(func(tx *broker.Tx) error {
					for i := n - 1; i >= 0; i-- {
						r := broker.PushRequest{Queue: []byte(name), Priority: []uint32{5, 128, 200}[min(2, i/4)], Payload: []byte(all[i])}
						if _, err := tx.Push(r); err != nil {
							return err
						}
					}
					var c broker.ListCursor
					if err := tx.Elements([]byte(name), 0, n, &c); err != nil {
						return err
					}
					if got := h.slices(tx, name, &c, passed); !slices.Equal(got, all[:passed]) {
						t.Errorf("the look begins with %q", got)
					}
					for i := range gone {
						if _, err := tx.RemoveValue([]byte(name), []byte(all[passed-1-i]), broker.Newest, 1); err != nil {
							return err
						}
					}
					_, err := tx.InsertAt([]byte(name), at, []byte("new"))
					if got := h.slices(tx, name, &c, 0); !slices.Equal(got, all[passed:]) {
						t.Errorf("behind %d, %d of which went, and an insertion at %d: the look finds %q", passed, gone, at, got)
					}
					return err
				})
			}
		}
	}
}

// A list of ten is looked at one by one. After each slice there is a change.
func TestALookEndsWithTheElementThatWasItsLast(t *testing.T) {
	const n = 10
	remove := func(h *harness, e string) {
		h.together(func(tx *broker.Tx) error {
			_, err := tx.RemoveValue([]byte("q"), []byte(e), broker.Newest, 1)
			return err
		})
	}
	for name, test := range map[string]struct {
		from, n int
		change  func(h *harness, slice int)
		want    string
	}{
		"elements go ahead of it, and new ones come": {0, n, func(h *harness, slice int) {
			h.pushEnd("q", broker.Oldest, "new")
			remove(h, fmt.Sprint(n-slice))
		}, "0 1 2 3 4"},
		"the last one goes": {2, 4, func(h *harness, _ int) { remove(h, "5") }, "2 3 4"},
		"the last one moves": {2, 4, func(h *harness, slice int) {
			h.together(func(tx *broker.Tx) error {
				_, err := tx.InsertAt([]byte("q"), min(5+slice, 10), []byte("new"))
				return err
			})
		}, "2 3 4 5"},
		"an older one becomes ready": {0, 6, func(h *harness, _ int) { h.now.Add(1000) }, "0 1 2 3 delayed 4 5"},
	} {
		h := newHarness(t)
		for i := n - 1; i >= 0; i-- {
			h.pushEnd("q", broker.Newest, fmt.Sprint(i))
			if i == 4 {
				h.together(func(tx *broker.Tx) error {
					return pushError(tx.Push(broker.PushRequest{Queue: []byte("q"), Priority: broker.ListPriority, Delay: 1000, Payload: []byte("delayed")}))
				})
			}
		}
		var c broker.ListCursor
		h.together(func(tx *broker.Tx) error { return tx.Elements([]byte("q"), test.from, test.n, &c) })
		var found []string
		for slice := 1; c.More() && slice < 2*n; slice++ {
			h.together(func(tx *broker.Tx) error {
				found = append(found, h.slices(tx, "q", &c, 1)...)
				return nil
			})
			test.change(h, slice)
		}
		if got := strings.Join(found, " "); got != test.want || c.More() {
			t.Errorf("%s: the look finds %q, want %q; there is more: %v", name, got, test.want, c.More())
		}
		h.close()
	}
}

// A search goes on behind what it has passed: its positions are as far apart as those of a search
// that is made whole then.
func TestASearchGoesOnBehindTheSameElementWhateverAnInsertionMoves(t *testing.T) {
	h := newHarness(t)
	defer func() { _ = h.b.Close() }()
	const n = 12
	x := []byte("x")
	for i := range 2 * (n - 1) * 3 * n {
		end, passed, gone, at := broker.End(i%2), 1+i/2%(n-1), i/2/(n-1)%3, i/2/(n-1)/3
		gone = min(gone, passed)
		name := []byte(fmt.Sprint("list ", i))
		h.together(func(tx *broker.Tx) error {
			ids := make([]broker.ID, n) // in the order of the search
			for left := n - 1; left >= 0; left-- {
				id, err := tx.Push(broker.PushRequest{Queue: name, Priority: []uint32{5, 128, 200}[left/4], Payload: x})
				if ids[left] = id; err != nil {
					return err
				}
			}
			if end == broker.Oldest {
				slices.Reverse(ids)
			}
			var c broker.ListCursor
			find := func(calls int) (places []int) {
				for ; calls > 0; calls-- {
					at, err := tx.Find(name, x, end, 0, 1, &c, nil)
					if places = append(places, at...); err != nil {
						t.Fatal(err)
					}
				}
				return places
			}
			find(passed)
			if _, err := tx.DeletePackets(name, ids[passed-gone:passed]); err != nil {
				return err
			}
			if _, err := tx.InsertAt(name, min(at, n-gone), []byte("new")); err != nil {
				return err
			}
			got := find(n - passed)
			want, err := tx.Places(name, x, end, 0, 0, n)
			if want = want[passed-gone:]; !slices.Equal(got, want) {
				t.Errorf("from end %d behind %d, %d of which went, and an insertion at %d: found at %d, want %d", end, passed, gone, at, got, want)
			}
			return err
		})
	}
}

func TestASearchFromTheRightFindsNothingThatCameMeanwhile(t *testing.T) {
	h := newHarness(t)
	defer func() { _ = h.b.Close() }()
	const n, came = 6000, 3000
	h.pushEnd("q", broker.Oldest, slices.Repeat([]string{"x"}, n)...)
	var c broker.ListCursor
	var got []int
	find := func() {
		h.together(func(tx *broker.Tx) (err error) {
			got, err = tx.Find([]byte("q"), []byte("x"), broker.Oldest, 0, 2*n, &c, got)
			return err
		})
	}
	find()
	before := len(got)
	h.pushEnd("q", broker.Newest, slices.Repeat([]string{"x"}, came)...)
	for c.More() {
		find()
	}
	var want []int
	for at := n - 1; at >= 0; at-- {
		if want = append(want, at); len(want) > before {
			want[len(want)-1] += came
		}
	}
	if before == n || !slices.Equal(got, want) {
		t.Errorf("%d found at once, and %v after that, want %v", before, got[before:], want[before:])
	}
}

func TestALookGoesOnInTheQueueThatATrimMakes(t *testing.T) {
	const n = 6000
	var all []string
	for i := range n {
		all = append(all, fmt.Sprint(i))
	}
	for _, passed := range []int{1, 100, 150, 260} {
		h := newHarness(t)
		h.pushEnd("q", broker.Oldest, all...)
		h.together(func(tx *broker.Tx) error {
			var c broker.ListCursor
			if err := tx.Elements([]byte("q"), 0, n, &c); err != nil {
				return err
			}
			h.slices(tx, "q", &c, passed)
			err := tx.Trim([]byte("q"), 100, 150)
			if got, want := h.slices(tx, "q", &c, 0), all[max(passed, 100):max(passed, 250)]; !slices.Equal(got, want) {
				t.Errorf("behind %d the look finds %q, want %q", passed, got, want)
			}
			return err
		})
		_ = h.b.Close()
	}
}

func TestALookAtAHashFindsOnceWhatStays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHarness(t)
		defer func() { _ = h.b.Close() }()
		field := func() string { return fmt.Sprint(rapid.IntRange(0, 40).Draw(t, "field")) }
		found, stays := map[string]int{}, map[string]bool{}
		set := func(tx *broker.Tx, name, f string) {
			if _, err := tx.SetField([]byte(name), []byte(f), []byte("v")); err != nil {
				t.Fatal(err)
			}
		}
		h.together(func(tx *broker.Tx) error {
			for range rapid.IntRange(1, 60).Draw(t, "fields") {
				f := field()
				set(tx, "h", f)
				set(tx, "other", fmt.Sprint(rapid.IntRange(0, 40).Draw(t, "field of the other")))
				stays[f] = true
			}
			var c broker.FieldCursor
			for more := true; more; {
				var err error
				if more, err = tx.NextField([]byte("h"), &c, func(f []byte, _ broker.Value) { found[string(f)]++ }); err != nil {
					return err
				}
				switch f := field(); rapid.IntRange(0, 5).Draw(t, "change") {
				case 0, 1:
					set(tx, "h", f)
				case 2:
					if _, err := tx.DeleteField([]byte("h"), []byte(f)); err != nil {
						return err
					}
					delete(stays, f)
				case 3:
					if rapid.IntRange(0, 20).Draw(t, "all") == 0 { // another hash gets the name
						if _, err := tx.Rename([]byte("other"), []byte("h")); err != nil {
							return err
						}
						clear(stays)
					}
				}
			}
			return nil
		})
		for f, n := range found {
			if n > 1 {
				t.Errorf("field %s was found %d times", f, n)
			}
		}
		for f := range stays {
			if found[f] != 1 {
				t.Errorf("field %s was there all the time, and found %d times", f, found[f])
			}
		}
	})
}
