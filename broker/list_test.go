package broker_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/recovery"
	"github.com/holdfast-queue/holdfast/storage"
)

// together makes calls as one.
func (h *harness) together(fn func(tx *broker.Tx) error) {
	h.t.Helper()
	if err := atomicCall(h.b, fn); err != nil {
		h.t.Fatalf("calls failed: %v", err)
	}
}

func (h *harness) pushEnd(name string, end broker.End, values ...string) {
	h.t.Helper()
	h.together(func(tx *broker.Tx) error { return pushEnd(tx, name, end, values...) })
}

func pushEnd(tx *broker.Tx, name string, end broker.End, values ...string) error {
	var all [][]byte
	for _, v := range values {
		all = append(all, []byte(v))
	}
	_, err := tx.PushEnd([]byte(name), end, all)
	return err
}

// list returns the elements from left to right.
func (h *harness) list(name string) []string {
	h.t.Helper()
	r := &inbox{}
	c := h.b.Attach(r, broker.Selection{})
	h.together(func(tx *broker.Tx) error {
		n, err := tx.Len([]byte(name))
		for at, slice := 0, 0; at < n || slice == 0; at += slice {
			var f broker.Found
			if f, err = tx.Range([]byte(name), at, n-at); err != nil {
				return err
			}
			slice = max(1, len(f.Packets))
			_ = reply(c)(f, err)
		}
		return err
	})
	h.barrier()
	return slices.Concat(r.got...)
}

func (h *harness) wantList(name string, want ...string) {
	h.t.Helper()
	if got := h.list(name); !slices.Equal(got, want) {
		h.t.Errorf("%s holds %.40q, want %.40q", name, got, want)
	}
}

func (h *harness) wantReplies(r *inbox, want ...string) {
	h.t.Helper()
	h.barrier()
	got := []string{}
	for _, reply := range r.got {
		got = append(got, strings.Join(reply, " "))
	}
	if !slices.Equal(got, want) {
		h.t.Errorf("got %.40q, want %.40q", got, want)
	}
}

func (h *harness) stored() (packets, queues int) {
	h.barrier()
	for _, q := range h.store.queues {
		if string(q.Name) != "barrier" {
			queues++
		}
	}
	return len(h.store.packets), queues
}

// uncached is a value that is too long for the cache of the tests, so that only the disk has it
// once its batch is committed.
func uncached(v string) string { return strings.Repeat(v, 10_000) }

func letters(from, to byte) (all []string) {
	for c := from; c <= to; c++ {
		all = append(all, string(c))
	}
	return all
}

func TestBothEndsOfAListAreKeptOverARestart(t *testing.T) {
	h := newHarness(t)
	defer func() { h.b.Close() }()
	h.pushEnd("q", broker.Newest, "c", "b", "a")
	h.pushEnd("q", broker.Oldest, "d", "e")
	h.wantList("q", letters('a', 'e')...)
	h.barrier()
	h.restart()
	h.pushEnd("q", broker.Oldest, "f")
	h.pushEnd("q", broker.Newest, "_")
	h.wantList("q", append([]string{"_"}, letters('a', 'f')...)...)
}

func TestAnElementThatIsPushedAndMovedInOneBatchIsWrittenOnce(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	r := &inbox{}
	c := h.b.Attach(r, broker.Selection{})
	h.together(func(tx *broker.Tx) error {
		err := pushEnd(tx, "from", broker.Newest, "x")
		for _, to := range []string{"to", "from", "to"} {
			from := "from"
			if to == "from" {
				from = "to"
			}
			_, e := replyMoved(c)(tx.MoveEnd([]byte(from), broker.Oldest, []byte(to), broker.Newest))
			err = errors.Join(err, e)
		}
		return err
	})
	h.wantReplies(r, "x", "x", "x")
	if h.store.written != 1 {
		t.Errorf("%d records were written, want one", h.store.written)
	}
	h.restart()
	h.wantList("to", "x")
	h.wantList("from")
}

func TestAnElementOnDiskThatIsMovedAndPoppedInOneBatchIsGone(t *testing.T) {
	for _, moves := range []int{1, 2} {
		h := newHarness(t)
		h.pushEnd("from", broker.Newest, uncached("x"))
		h.barrier()
		written, moved, popped := h.store.written, &inbox{}, &inbox{}
		cm, cp := h.b.Attach(moved, broker.Selection{}), h.b.Attach(popped, broker.Selection{})
		h.together(func(tx *broker.Tx) (err error) {
			for range moves {
				_, e := replyMoved(cm)(tx.MoveEnd([]byte("from"), broker.Oldest, []byte("from"), broker.Newest))
				err = errors.Join(err, e)
			}
			_, e := replyMoved(cm)(tx.MoveEnd([]byte("from"), broker.Oldest, []byte("to"), broker.Oldest))
			return errors.Join(err, e, reply(cp)(tx.Pop([]byte("to"), broker.Selection{})))
		})
		h.wantReplies(popped, uncached("x"))
		h.wantReplies(moved, slices.Repeat([]string{uncached("x")}, moves+1)...)
		if packets, _ := h.stored(); packets != 0 || h.store.written != written {
			t.Errorf("%d packets are left and %d were written, want none", packets, h.store.written-written)
		}
		h.b.Close()
	}
}

func TestAMovedElementIsReadInTheSameBatchAndInTheNext(t *testing.T) {
	h := newHarness(t)
	defer func() { h.b.Close() }()
	h.pushEnd("from", broker.Newest, uncached("x"))
	h.barrier()
	r := &inbox{}
	c := h.b.Attach(r, broker.Selection{})
	h.together(func(tx *broker.Tx) error {
		_, err := replyMoved(c)(tx.MoveEnd([]byte("from"), broker.Oldest, []byte("to"), broker.Newest))
		return errors.Join(err, reply(c)(tx.Range([]byte("to"), 0, 1)))
	})
	h.wantReplies(r, uncached("x"), uncached("x"))
	h.wantList("to", uncached("x"))
	h.restart()
	h.wantList("to", uncached("x"))
}

func TestAReadSeesTheValueOfItsMoment(t *testing.T) {
	for name, value := range map[string]string{"cached": "old", "on disk": uncached("old")} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			defer func() { h.b.Close() }()
			h.pushEnd("q", broker.Newest, value)
			h.barrier()
			r := &inbox{}
			c := h.b.Attach(r, broker.Selection{})
			look := func(tx *broker.Tx) error { return reply(c)(tx.Range([]byte("q"), 0, 1)) }
			set := func(tx *broker.Tx, v string) error {
				_, err := tx.SetAt([]byte("q"), 0, []byte(v))
				return err
			}
			h.together(func(tx *broker.Tx) error {
				err := errors.Join(look(tx), set(tx, "second"), look(tx), set(tx, uncached("third")), look(tx))
				return errors.Join(err, reply(c)(tx.Pop([]byte("q"), broker.Selection{})))
			})
			h.wantReplies(r, value, "second", uncached("third"), uncached("third"))
			if packets, _ := h.stored(); packets != 0 {
				t.Errorf("%d packets are left, want none", packets)
			}
		})
	}
}

func TestAReplacedElementStaysReplacedOverARestart(t *testing.T) {
	h := newHarness(t)
	defer func() { h.b.Close() }()
	h.pushEnd("q", broker.Newest, "c", uncached("b"), "a")
	h.barrier()
	h.together(func(tx *broker.Tx) error {
		_, err := tx.SetAt([]byte("q"), 1, []byte("B"))
		return err
	})
	h.barrier()
	h.together(func(tx *broker.Tx) error {
		_, err1 := tx.SetAt([]byte("q"), 0, []byte("A"))
		_, err2 := tx.SetAt([]byte("q"), 0, []byte("AA"))
		if ok, err := tx.SetAt([]byte("q"), 3, nil); ok || err != nil {
			t.Errorf("SetAt beyond the end: %v %v", ok, err)
		}
		return errors.Join(err1, err2)
	})
	h.wantList("q", "AA", "B", "c")
	h.restart()
	h.wantList("q", "AA", "B", "c")
}

func TestInsertMovesTheElementsOfTheShorterSide(t *testing.T) {
	for _, row := range []struct {
		at    int
		moved int
	}{{0, 0}, {1, 1}, {4, 4}, {6, 3}, {9, 0}} {
		t.Run(fmt.Sprint(row.at), func(t *testing.T) {
			h := newHarness(t)
			defer func() { h.b.Close() }()
			want := letters('a', 'i')
			h.pushEnd("q", broker.Oldest, want...)
			h.barrier()
			h.restart() // nothing is in the cache
			moved := 0
			h.store.reads = func(ids int) { moved += ids }
			h.do(func(tx *broker.Tx) error {
				return tx.Atomic(func() error {
					n, err := tx.InsertAt([]byte("q"), row.at, []byte("X"))
					if n != 10 {
						t.Errorf("the length is %d, want 10", n)
					}
					return err
				})
			})
			if h.barrier(); moved != row.moved {
				t.Errorf("%d elements were moved, want %d", moved, row.moved)
			}
			want = slices.Insert(want, row.at, "X")
			h.wantList("q", want...)
			h.restart()
			h.wantList("q", want...)
		})
	}
}

func TestElementsAreFoundByValueAfterARestart(t *testing.T) {
	h := newHarness(t)
	defer func() { h.b.Close() }()
	small, same, large, other := "small", "sm@ll", strings.Repeat("large", 500), strings.Repeat("l@rge", 500)
	h.pushEnd("q", broker.Oldest, small, same, large, other, small, large, "", same)
	h.push("q", broker.ListPriority, 0, "key", small) // has a key: passed over
	h.barrier()
	h.restart()
	read := 0
	h.store.reads = func(ids int) { read += ids }
	h.together(func(tx *broker.Tx) error {
		at, err := tx.Places([]byte("q"), []byte(small), broker.Oldest, 0, 0, 1)
		if !slices.Equal(at, []int{5, 1}) {
			t.Errorf("found at %v, want 5 and 1", at)
		}
		for _, row := range []struct {
			value string
			max   int
			want  int
		}{{small, 1, 1}, {large, 0, 2}, {"", 0, 1}, {"none", 0, 0}} {
			n, e := tx.RemoveValue([]byte("q"), []byte(row.value), broker.Newest, row.max)
			if n != row.want {
				t.Errorf("%d of %.10q were removed, want %d", n, row.value, row.want)
			}
			err = errors.Join(err, e)
		}
		return err
	})
	h.barrier()
	if read != 0 {
		t.Errorf("%d records were read, want none", read)
	}
	h.wantList("q", small, same, other, small, same)
	h.restart()
	h.wantList("q", small, same, other, small, same)
}

func TestSeveralAreTakenFromAnEndInOneReply(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	h.pushEnd("q", broker.Oldest, letters('a', 'g')...)
	r := &inbox{}
	c := h.b.Attach(r, broker.Selection{})
	h.together(func(tx *broker.Tx) error {
		return errors.Join(
			reply(c)(tx.Pop([]byte("q"), broker.Selection{End: broker.Oldest, Count: 2})),
			reply(c)(tx.Pop([]byte("q"), broker.Selection{Count: 3})),
			reply(c)(tx.Pop([]byte("q"), broker.Selection{Count: 100})),
			reply(c)(tx.Pop([]byte("q"), broker.Selection{Count: 100})))
	})
	h.wantReplies(r, "g f", "a b c", "d e", "")
}

func TestAPopOfManyStopsAtTheBytesOfAGroup(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	const size, n = 200_000, 90
	for range n {
		h.push("q", broker.ListPriority, 0, "k", strings.Repeat("x", size))
	}
	r := &inbox{}
	c := h.b.Attach(r, broker.Selection{})
	h.do(func(tx *broker.Tx) error { return reply(c)(tx.Pop([]byte("q"), broker.Selection{Count: n})) })
	h.barrier()
	if got, want := len(r.got[0]), broker.MaxGroupBytes/(size+1); got != want {
		t.Errorf("%d packets were taken, want the %d that fit", got, want)
	}
}

func TestMovesOfElementsWithARecordOfTheirOwnKeepTheStoreSound(t *testing.T) {
	dir := t.TempDir()
	var h *harness
	var store *storage.Store
	open := func() {
		var err error
		if store, err = storage.Open(dir, storage.Options{}); err != nil {
			t.Fatal(err)
		}
		state, err := recovery.Restore(store, recovery.Options{Now: startTime})
		if err != nil {
			t.Fatal(err)
		}
		h = &harness{t: t}
		h.now.Store(startTime)
		h.b = newDriver(store, state, broker.Options{Cache: 1 << 16}, h.clocks)
	}
	stop := func() {
		if err := errors.Join(h.b.Close(), store.Close()); err != nil {
			t.Fatal(err)
		}
	}
	open()
	var want []string
	for c := byte('a'); c < 'k'; c++ {
		want = append(want, strings.Repeat(string(c), 20_000))
	}
	for i := 0; i < len(want); i += 5 {
		h.pushEnd("from", broker.Oldest, want[i:i+5]...)
	}
	stop()
	open()
	r := &inbox{}
	c := h.b.Attach(r, broker.Selection{})
	for range want {
		h.together(func(tx *broker.Tx) error {
			_, err := replyMoved(c)(tx.MoveEnd([]byte("from"), broker.Oldest, []byte("to"), broker.Newest))
			return err
		})
	}
	h.wantList("to", want...)
	stop()
	open()
	h.wantList("to", want...)
	h.wantList("from")
	stop()
}

func TestInsertionsAreBoundedByWhatTheyMove(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	const n, most = 1000, broker.MaxChanged / 500 // each moves half of the list
	h.pushEnd("l", broker.Newest, make([]string, n)...)
	h.barrier()
	done := 0
	var err error
	h.together(func(tx *broker.Tx) error {
		for ; err == nil && done <= most; done++ {
			_, err = tx.InsertAt([]byte("l"), n/2, nil)
		}
		return nil
	})
	if done--; !errors.Is(err, broker.ErrTooManyChanged) || done != most {
		t.Errorf("%d insertions gave %v, want ErrTooManyChanged behind %d", done, err, most)
	}
	h.together(func(tx *broker.Tx) error {
		if got, err := tx.Len([]byte("l")); got != n+done || err != nil {
			t.Errorf("the list has %d elements, %v, want %d", got, err, n+done)
		}
		return nil
	})
}

// A queue that a move makes has the settings of its name, as one that is there.
func TestAMoveIntoANewQueueObeysItsEnum(t *testing.T) {
	w := newWork(t)
	w.o.Defaults = defaultsWith("jobs.", func(s *broker.Settings) { s.Orders = []broker.Order{{Tag: "tenant", Values: []string{"a", "b"}}} })
	w.setDefaults(w.o.Defaults)
	w.addTagged("src", "tenant zzz", "1")
	err := atomicCall(w.b, func(tx *broker.Tx) error {
		_, err := tx.MoveEnd([]byte("src"), broker.Oldest, []byte("jobs.x"), broker.Oldest)
		return err
	})
	if !errors.Is(err, broker.ErrNotInOrder) {
		t.Errorf("got %v, want that the value is not one of the enum", err)
	}
}
