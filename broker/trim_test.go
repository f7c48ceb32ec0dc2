package broker_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/holdfast-queue/holdfast/broker"
)

// A trim of many elements goes in slices. What it keeps stays, what it does not goes, and what
// comes meanwhile stays, wherever it comes.
func TestALongTrimGoesInSlices(t *testing.T) {
	const n, slice = 10_000, 2048
	for seed, row := range [][2]int{{0, 6000}, {4000, 6000}, {2500, 5000}, {3000, 1}, {0, 0}, {n, 0}} {
		from, keep := row[0], row[1]
		t.Run(fmt.Sprint(from, " ", keep), func(t *testing.T) {
			h, r := newHarness(t), rand.New(rand.NewPCG(uint64(seed), 1))
			defer func() { h.close() }()
			h.fill("q", n)
			h.push("q", 0, 0, "k", "no element") // so the queue cannot go as a whole
			list := h.list("q")
			stays := map[string]bool{}
			for _, e := range list[from : from+keep] {
				stays[e] = true
			}
			var c broker.ListCursor
			before := n
			for calls := 0; calls == 0 || c.More(); calls++ {
				h.together(func(tx *broker.Tx) error { return tx.TrimInSlices([]byte("q"), from, keep, &c) })
				after, more := 0, c.More()
				h.together(func(tx *broker.Tx) (err error) { after, err = tx.Len([]byte("q")); return err })
				if before-after > slice {
					t.Fatalf("one call deleted %d elements, want %d at most", before-after, slice)
				}
				for i := 0; more && i < 4; i++ {
					value, at := fmt.Sprint("new ", calls, " ", i), 0
					stays[value] = true
					switch list = h.list("q"); r.IntN(4) {
					case 0:
						h.pushEnd("q", broker.Newest, value)
						list = slices.Insert(list, 0, value)
					case 1:
						h.pushEnd("q", broker.Oldest, value)
						list = append(list, value)
					case 2, 3: // elements beside it move
						at = r.IntN(min(len(list), 900))
						if i%2 > 0 {
							at = len(list) - at
						}
						h.together(func(tx *broker.Tx) error { _, err := tx.InsertAt([]byte("q"), at, []byte(value)); return err })
						list = slices.Insert(list, at, value)
					}
					before = len(list)
				}
				if !more {
					before = after
				}
			}
			want := slices.DeleteFunc(list, func(e string) bool { return !stays[e] })
			check := func() {
				t.Helper()
				if got := h.list("q"); !slices.Equal(got, want) {
					t.Errorf("%d elements are left, want %d", len(got), len(want))
				}
			}
			check()
			h.restart()
			check()
		})
	}
}

// Where one element stays for each 32 that go, a trim has no slices: a crash leaves all or nothing.
func TestATrimThatKeepsLittleIsDoneAtOnce(t *testing.T) {
	for _, row := range []struct {
		gone, keep int
		more       bool
	}{{2048, 65, false}, {2049, 64, false}, {2049, 65, true}, {2545, 8, false}, {4096, 128, false}, {4096, 129, true}, {4097, 128, false}, {2049, 0, false}} {
		h := newHarness(t)
		h.fill("q", row.gone+row.keep)
		want := h.list("q")[1384 : 1384+row.keep]
		var c broker.ListCursor
		for calls := 0; calls == 0 || c.More(); calls++ {
			h.together(func(tx *broker.Tx) error { return tx.TrimInSlices([]byte("q"), 1384, row.keep, &c) })
			if calls == 0 && c.More() != row.more {
				t.Errorf("%d go and %d stay: it goes on is %v, want %v", row.gone, row.keep, c.More(), row.more)
			}
		}
		h.wantList("q", want...)
		h.close()
	}
}

func TestALongTrimEndsWithItsQueue(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	h.fill("q", 10_000)
	var c broker.ListCursor
	trim := func() { h.together(func(tx *broker.Tx) error { return tx.TrimInSlices([]byte("q"), 4000, 6000, &c) }) }
	trim()
	h.together(func(tx *broker.Tx) error { _, err := tx.Delete([]byte("q")); return err })
	h.fill("q", 3000)
	if trim(); c.More() {
		t.Error("the trim goes on in another queue")
	}
	h.swept()
	if got := len(h.list("q")); got != 3000 {
		t.Errorf("%d elements are left of another queue, want 3000", got)
	}
}

// In one piece a trim deletes no more than one call may, unless nearly all goes.
func TestATrimAtOnceHasALimit(t *testing.T) {
	for _, row := range []struct {
		from, keep int
		want       error
	}{
		{broker.MaxChanged, 3616, nil}, {broker.MaxChanged + 1, 3615, broker.ErrTooManyChanged}, {1, 3614, broker.ErrTooManyChanged}, {19_900, 100, nil}, {0, 0, nil},
	} {
		h := newHarness(t)
		h.fill("q", 20_000)
		want := h.list("q")
		err := error(nil)
		h.do(func(tx *broker.Tx) error {
			return tx.Atomic(func() error { err = tx.Trim([]byte("q"), row.from, row.keep); return nil })
		})
		if !errors.Is(err, row.want) {
			t.Errorf("%d from %d on: %v, want %v", row.keep, row.from, err, row.want)
		}
		if err == nil {
			want = want[row.from : row.from+row.keep]
		}
		h.wantList("q", want...)
		h.close()
	}
}

// The dead of a list, which lie elsewhere, can go back to it after a trim.
func TestATrimLeavesItsDeadTheirWayBack(t *testing.T) {
	for _, keep := range []int{0, 10} {
		for _, own := range []bool{false, true} {
			w := newWork(t)
			dies := func(s *broker.Settings) { s.DeadLetter = []byte("dead") }
			w.o.Defaults = defaultsWith("q", dies)
			if w.setDefaults(w.o.Defaults); own {
				w.harness.change("q", dies)
			}
			id := w.add(broker.PushRequest{Payload: []byte("died")})
			w.nacked(w.claimOne(), broker.Nack{Dead: true}, broker.Dead)
			w.harness.fill("q", 6000)
			var c broker.ListCursor
			for first := true; first || c.More(); first = false {
				w.together(func(tx *broker.Tx) error { return tx.TrimInSlices([]byte("q"), 0, keep, &c) })
			}
			w.restart()
			w.do(func(tx *broker.Tx) error {
				ok, err := tx.RedrivePacket([]byte("dead"), id)
				if n, _ := tx.Len([]byte("q")); !ok || n != keep+1 {
					t.Errorf("kept %d, own settings %v: the list has %d elements, and the dead one is back: %v (%v)", keep, own, n, ok, err)
				}
				return nil
			})
			w.close()
		}
	}
}
