package broker_test

import (
	"errors"
	"testing"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// uniquely pushes with an id and a window.
func (w *work) uniquely(queue, unique string, window int64) (id broker.ID, err error) {
	w.t.Helper()
	err = w.b.Do(func(tx *broker.Tx) (err error) {
		id, err = tx.Push(broker.PushRequest{Queue: []byte(queue), Priority: 1, Unique: []byte(unique), Window: window})
		return err
	})
	return id, err
}

func TestAUniquePushNeedsNoRoomOnDiskIfThePacketIsThere(t *testing.T) {
	w := newWork(t)
	defer w.close()
	first := w.add(broker.PushRequest{Unique: []byte("u")})
	windowed := w.add(broker.PushRequest{Unique: []byte("w"), Window: 1 << 40})
	w.store.level = storage.NoPush
	w.pass(1e9)
	w.barrier()
	for unique, want := range map[string]broker.ID{"u": first, "w": windowed} {
		if id, err := w.uniquely("q", unique, 5); err != nil || id != want {
			t.Errorf("%s: the answer is %d, %v, want %d", unique, id, err, want)
		}
	}
	if _, err := w.uniquely("q", "other", 5); !errors.Is(err, broker.ErrNoSpace) {
		t.Errorf("a push of another packet gives %v", err)
	}
}

func TestARefusedPushBeginsNoWindow(t *testing.T) {
	w := newWork(t)
	defer w.close()
	w.harness.set("taken", "v")
	if _, err := w.uniquely("taken", "u", 1000); err != broker.ErrWrongType {
		t.Errorf("a push to a string gives %v", err)
	}
	for full, want := range map[content.Full]error{content.FullReject: broker.ErrFull, content.FullDrop: broker.ErrDropped} {
		w.set(broker.Settings{Bound: 1, Full: full})
		first := w.add(broker.PushRequest{Priority: 1, Unique: []byte("first")})
		if _, err := w.uniquely("q", "u", 1000); !errors.Is(err, want) {
			t.Errorf("a push to a full queue gives %v, want %v", err, want)
		}
		if id, err := w.uniquely("q", "first", 0); err != nil || id != first {
			t.Errorf("a push of what the full queue has gives %d, %v, want %d", id, err, first)
		}
	}
	w.barrier()
	if n := len(w.store.uniques()); n != 1 {
		t.Errorf("the store has %d ids, want that of the packet", n)
	}
}

func TestAUniquePushInLineNeedsNoRoomOnceAPacketHasItsID(t *testing.T) {
	for _, window := range []int64{0, 1000} {
		w := newWork(t)
		w.bound(1, 0, content.FullReject)
		w.add(broker.PushRequest{Payload: []byte("full")})
		wait := func() *linedUp {
			p := &linedUp{c: w.b.Attach(&inbox{}, groups), r: broker.PushRequest{Queue: []byte("q"), Priority: 1, Unique: []byte("u"), Window: window}}
			w.do(func(tx *broker.Tx) error {
				return waitPush(tx, p.c, p.r.Queue, 0,
					func(tx *broker.Tx) (err error) { p.id, err = tx.Push(p.r); return err },
					func(err error, _ bool) { p.done, p.err = true, err })
			})
			return p
		}
		first, second := wait(), wait()
		if w.do(func(tx *broker.Tx) error { _, err := tx.Delete([]byte("other")); return err }); first.done || second.done {
			t.Fatal("a push has its turn in a full queue")
		}
		w.replied(func(tx *broker.Tx) error { return reply(w.c)(tx.Pop([]byte("q"), broker.Selection{WithDetails: true})) })
		w.barrier()
		if !first.done || !second.done || first.err != nil || second.err != nil || first.id != second.id {
			t.Errorf("with a window of %d the pushes are %+v and %+v, want one packet", window, *first, *second)
		}
		w.close()
	}
}

// linedUp is a push that waits, and what it got.
type linedUp struct {
	c    *broker.Conn
	r    broker.PushRequest
	done bool
	id   broker.ID
	err  error
}

func TestAnIDIsOneWithAndWithoutAWindow(t *testing.T) {
	for _, first := range []int64{0, 1000} {
		w := newWork(t)
		id, err := w.uniquely("q", "u", first)
		if err != nil {
			t.Fatal(err)
		}
		for _, window := range []int64{0, 1000} {
			if again, err := w.uniquely("q", "u", window); err != nil || again != id {
				t.Errorf("after one with %d a push with a window of %d gives %d, %v: want %d", first, window, again, err, id)
			}
		}
		w.close()
	}
}

func TestAPacketThatMovesFreesItsIDWhenItIsClaimedAlsoAfterARestart(t *testing.T) {
	w := newWork(t)
	defer w.close()
	r := broker.PushRequest{Payload: []byte("a"), Unique: []byte("u"), UntilClaim: true}
	id := w.add(r)
	for _, to := range []string{"r", "q"} {
		w.do(func(tx *broker.Tx) error {
			_, err := tx.MovePackets([]byte(map[string]string{"r": "q", "q": "r"}[to]), []broker.ID{id}, []byte(to))
			return err
		})
		w.restart()
	}
	if got := w.claimOne(); got.ID != id {
		t.Errorf("claimed %+v, want packet %d", got, id)
	}
	if w.add(r) == id {
		t.Error("a packet that is claimed has its id still")
	}
}
