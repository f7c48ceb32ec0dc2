package broker_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/storage"
)

// uniquely pushes with an id and a window.
func (w *work) uniquely(queue, unique string, window int64) (id broker.ID, err error) {
	w.t.Helper()
	err = call(w.b, func(tx *broker.Tx) (err error) {
		id, err = tx.Push(broker.PushRequest{Queue: []byte(queue), Priority: 1, Unique: []byte(unique), Window: window})
		return err
	})
	return id, err
}

func TestAUniquePushNeedsNoRoomOnDiskIfThePacketIsThere(t *testing.T) {
	w := newWork(t)
	defer w.close()
	first := w.add(broker.PushRequest{Unique: []byte("u")})
	windowed := w.add(broker.PushRequest{Unique: []byte("u"), Window: 1 << 40})
	w.store.mu.Lock()
	w.store.level = storage.NoPush
	w.store.mu.Unlock()
	w.pass(1e9)
	w.barrier()
	for window, want := range map[int64]broker.ID{0: first, 5: windowed} {
		if id, err := w.uniquely("q", "u", window); err != nil || id != want {
			t.Errorf("with a window of %d the answer is %d, %v, want %d", window, id, err, want)
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
	if got := w.get("unique:5:taken:u"); got != "" {
		t.Errorf("the window holds %q", got)
	}
	for full, want := range map[storage.Full]error{storage.FullReject: broker.ErrFull, storage.FullDrop: broker.ErrDropped} {
		w.set(broker.Settings{Bound: 1, Full: full})
		first := w.add(broker.PushRequest{Priority: 1, Unique: []byte("first")})
		if _, err := w.uniquely("q", "u", 1000); !errors.Is(err, want) {
			t.Errorf("a push to a full queue gives %v, want %v", err, want)
		}
		if got := w.get("unique:1:q:u"); got != "" {
			t.Errorf("the window holds %q", got)
		}
		if id, err := w.uniquely("q", "first", 0); err != nil || id != first {
			t.Errorf("a push of what the full queue has gives %d, %v, want %d", id, err, first)
		}
	}
	if _, err := w.uniquely(string(make([]byte, storage.MaxName-10)), "u", 1000); !errors.Is(err, broker.ErrTooLarge) {
		t.Errorf("a push whose window has too long a name gives %v", err)
	}
}

func TestAWindowThatIsSomethingElseRefusesThePush(t *testing.T) {
	w := newWork(t)
	defer w.close()
	w.harness.set("unique:1:q:text", "no id")
	w.harness.set("unique:1:q:long", string(bytes.Repeat([]byte("1"), 2000)))
	w.pushEnd("unique:1:q:list", broker.Newest, "1")
	for _, unique := range []string{"text", "long", "list"} {
		if _, err := w.uniquely("q", unique, 1000); err != broker.ErrWrongType {
			t.Errorf("%s: the push gives %v", unique, err)
		}
		if _, err := w.uniquely("q", unique, 0); err != nil {
			t.Errorf("%s: a push without a window gives %v", unique, err)
		}
	}
	w.wantList("q", "", "", "")
}

func TestAUniquePushInLineNeedsNoRoomOnceAPacketHasItsID(t *testing.T) {
	for _, window := range []int64{0, 1000} {
		w := newWork(t)
		w.bound(1, 0, storage.FullReject)
		w.add(broker.PushRequest{Payload: []byte("full")})
		wait := func() *linedUp {
			p := &linedUp{c: w.b.Attach(&inbox{}, groups), r: broker.PushRequest{Queue: []byte("q"), Priority: 1, Unique: []byte("u"), Window: window}}
			w.do(func(tx *broker.Tx) error {
				room := broker.Room{Records: 2, Bytes: 100}.Plus(broker.WindowRoom(p.r.Queue))
				return tx.WaitPush(p.c, p, broker.PushWait{Push: p.r, Payloads: [][]byte{nil}, Room: room})
			})
			return p
		}
		first, second := wait(), wait()
		if w.do(func(tx *broker.Tx) error { _, err := tx.Delete([]byte("other")); return err }); first.done || second.done {
			t.Fatal("a push has its turn in a full queue")
		}
		w.replied(func(tx *broker.Tx) error { return tx.Pop(w.c, []byte("q"), broker.Selection{WithDetails: true}, 0) })
		w.barrier()
		if !first.done || !second.done || first.err != nil || second.err != nil || first.id != second.id {
			t.Errorf("with a window of %d the pushes are %+v and %+v, want one packet", window, *first, *second)
		}
		w.close()
	}
}

// linedUp is a push that waits, and what it got.
type linedUp struct {
	c    *broker.Consumer
	r    broker.PushRequest
	done bool
	id   broker.ID
	err  error
}

func (p *linedUp) Ready(tx *broker.Tx, _ []byte) {
	p.id, p.err = tx.Push(p.r)
	p.done = true
}

func (p *linedUp) Expired(*broker.Tx) {}

func (p *linedUp) Closed(*broker.Tx) {}

func TestUniquePushesFindOnlyTheirOwnKind(t *testing.T) {
	w := newWork(t)
	defer w.close()
	seen := map[broker.ID]bool{}
	for _, window := range []int64{0, 1000} {
		id, err := w.uniquely("q", "u", window)
		if err != nil || seen[id] {
			t.Errorf("with a window of %d the push gives %d, %v", window, id, err)
		}
		seen[id] = true
	}
}

func TestACopyHasTheIDsOfItsPackets(t *testing.T) {
	w := newWork(t)
	defer w.close()
	first := w.add(broker.PushRequest{Unique: []byte("u")})
	w.together(func(tx *broker.Tx) error {
		_, err := tx.Copy([]byte("q"), []byte("copy"), 0, true)
		return err
	})
	for range 2 {
		id, err := w.uniquely("copy", "u", 0)
		if err != nil || id == first {
			t.Errorf("the push gives %d, %v", id, err)
		}
		w.wantList("copy", "")
		w.restart()
	}
}
