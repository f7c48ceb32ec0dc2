package broker_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/storage"
)

const minute = 60_000

// hold nacks a claim with a rest.
func (w *work) hold(j job, ms int64) {
	w.t.Helper()
	w.nacked(j, broker.Nack{Delay: -1, Hold: ms}, broker.Ready)
}

// holdShare lets a share of q rest; 0 ends that.
func (w *work) holdShare(name string, ms int64) {
	w.t.Helper()
	w.do(func(tx *broker.Tx) error {
		s, err := tx.Share([]byte("q"), []byte(name))
		if err != nil {
			return err
		}
		s.HeldUntil = tx.Steady() + ms
		return tx.SetShare([]byte("q"), s)
	})
}

// A share rests after HOLD, and no other; who waits for it gets its packet when that is over.
func TestAShareRestsAfterHold(t *testing.T) {
	for _, f := range []*broker.Filter{nil, filtered("tenant eq a"), {Share: []byte("a")}} {
		for what, between := range map[string]func(w *work){
			"": func(*work) {}, "a start": func(w *work) { w.restart() }, "a kill": func(w *work) { w.killed(func(*broker.Tx) {}); w.restarted() },
			"another share-by": func(w *work) { w.shareBy("tag:tenant"); w.records() },
		} {
			w := newWork(t)
			w.shareBy("key")
			id := w.tenant("a")
			w.hold(w.claimOne(), minute)
			w.tenant("a")
			w.tenant("b")
			if n := w.records(); n != 1 {
				t.Fatalf("the store has %d records of shares, want the rest", n)
			}
			between(w)
			if j, _ := w.show("q", id); j.Attempts != 0 || j.State != broker.Ready || j.HeldBack != `share a rests for 1m0s, said by "w1"` {
				t.Errorf("%s: the packet is %+v", what, j.Detail)
			}
			if got := w.claim("q", broker.ClaimRequest{Selection: broker.Selection{Count: 9}, Lease: 10 * minute}); len(got) != 1 || got[0].payload != "b" {
				t.Errorf("%s: while a rests %v was taken", what, got)
			}
			box := w.claimer(f)
			w.pass(minute*time.Millisecond - time.Millisecond)
			w.barrier()
			if len(box.replies) != 0 {
				t.Errorf("%s, filter %+v: a rested for too short", what, f)
			}
			w.pass(time.Millisecond)
			w.barrier()
			if len(box.replies) != 1 {
				t.Errorf("%s, filter %+v: after the rest who waits got %d replies", what, f, len(box.replies))
			}
			if n := w.records(); n != 0 {
				t.Errorf("%s: after the rest the store has %d records of shares", what, n)
			}
		}
	}
}

// The longer of two rests holds, HOLD 0 of a share ends it, and what else the share has stays.
func TestTheLongerRestHoldsUntilItIsEnded(t *testing.T) {
	w := newWork(t)
	w.shareBy("key")
	w.weigh("q", "a", 10)
	w.tenant("a")
	w.tenant("a")
	first, second := w.claimOne(), w.claimOne()
	w.hold(first, 2*minute)
	w.hold(second, minute)
	box := w.claimer(nil)
	w.pass(time.Minute + time.Second)
	w.barrier()
	if len(box.replies) != 0 {
		t.Errorf("the shorter rest ended the longer: %v", box.replies)
	}
	w.holdShare("a", 0)
	w.barrier()
	if len(box.replies) != 1 || w.weightOf("q", "a") != 10 {
		t.Errorf("when the rest was ended, who waits got %v, and the weight is %d", box.replies, w.weightOf("q", "a"))
	}
	w.holdShare("a", minute)
	if w.pass(time.Minute); len(w.tenants(1, nil)) != 1 || w.records() != 1 || w.weightOf("q", "a") != 10 {
		t.Error("after a rest the share gives nothing, or has lost its weight")
	}
}

// A share that has no packets rests all the same, and forgets it in time.
func TestAShareWithoutPacketsRests(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		w := newWork(t)
		w.shareBy("key")
		w.holdShare("a", minute)
		if restarts {
			w.restart()
		}
		w.tenant("a")
		if got := w.tenants(1, nil); len(got) != 0 {
			t.Errorf("%v was taken", got)
		}
		w.bulk(broker.Purge([]byte("q"), 0))
		w.tenant("a")
		if w.pass(30 * time.Second); len(w.tenants(1, nil)) != 0 {
			t.Error("the rest went with the packets")
		}
		if w.pass(30 * time.Second); len(w.tenants(1, nil)) != 1 || w.records() != 0 {
			t.Error("the rest has no end")
		}
	}
}

// Without shares the queue rests: its pause of takes ends by itself. One that lasts longer stays.
func TestAQueueWithoutSharesRests(t *testing.T) {
	w := newWork(t)
	w.tenant("a")
	w.hold(w.claimOne(), minute)
	w.restart()
	box := w.claimer(nil)
	w.pass(59 * time.Second)
	w.barrier()
	if len(box.replies) != 0 {
		t.Error("the queue rested for too short")
	}
	w.pass(time.Second)
	w.barrier()
	if len(box.replies) != 1 {
		t.Fatal("after the rest the queue gives nothing")
	}
	for _, until := range []int64{0, w.now.Load() + 2*minute} {
		s := broker.DefaultSettings()
		s.PauseOut, s.PauseOutUntil = true, until
		w.set(s)
		w.hold(box.replies[0][0], minute)
		w.do(func(tx *broker.Tx) error {
			if s, _, _ := tx.Settings([]byte("q")); !s.PauseOut || s.PauseOutUntil != until {
				t.Errorf("a pause until %d became one until %d", until, s.PauseOutUntil)
			}
			return nil
		})
		w.set(broker.DefaultSettings())
		box = &workbox{replies: [][]job{{w.claimOne()}}}
	}
}

// A clock that is behind at a start makes no rest longer, and one that was put forward ends it.
func TestAStartMakesNoRestLonger(t *testing.T) {
	for set, want := range map[time.Duration]time.Duration{-time.Hour: 50 * time.Second, -time.Second: 50 * time.Second, 20 * time.Second: 30 * time.Second} {
		w := newWork(t)
		w.shareBy("key")
		w.tenant("a")
		w.hold(w.claimOne(), minute)
		w.pass(10 * time.Second)
		w.barrier()
		w.store.control.Time = w.now.Load() // of the last batch
		w.now.Add(set.Milliseconds())
		w.restart()
		w.tenants(1, nil)
		if w.pass(want - time.Millisecond); len(w.tenants(1, nil)) != 0 {
			t.Errorf("clock %v: it rested for too short", set)
		}
		if w.pass(time.Millisecond); len(w.tenants(1, nil)) != 1 {
			t.Errorf("clock %v: it rests for too long", set)
		}
	}
}

// Rests take no place from what operators set, and have a limit of their own.
func TestRestsHaveALimitOfTheirOwn(t *testing.T) {
	w := newWork(t)
	w.shareBy("key")
	for from := 0; from < broker.MaxRests; from += 1000 {
		w.do(func(tx *broker.Tx) error {
			for i := from; i < from+1000; i++ {
				if err := tx.SetShare([]byte("q"), broker.Share{Name: fmt.Append(nil, i), HeldUntil: tx.Steady() + minute}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	w.tenant("a")
	j := w.claimOne()
	if _, err := w.nack(j, broker.Nack{Hold: minute}); err == nil || !strings.Contains(err.Error(), "250000 shares of the queue rest already") {
		t.Errorf("one more: %v", err)
	}
	w.do(func(tx *broker.Tx) error { // another queue has a limit of its own
		s := broker.DefaultSettings()
		s.ShareBy = []byte("key")
		return cmp.Or(tx.SetSettings([]byte("other"), s), tx.SetShare([]byte("other"), broker.Share{Name: []byte("a"), HeldUntil: tx.Steady() + minute}))
	})
	w.weigh("q", "a", 10)
	w.hold(j, minute) // beside a weight it counts to these
	for begun := time.Now(); time.Since(begun) < time.Minute; {
		w.pass(time.Minute)
		if w.barrier(); len(w.tenants(1, nil)) == 1 && w.records() == 1 {
			return
		}
	}
	t.Errorf("after the rests the store has %d records of shares, want the weight", w.records())
}

// A queue that is not shared out has no rests: nobody would tell their ends, and their records
// would stay for ever.
func TestRestsEndWithShareBy(t *testing.T) {
	w := newWork(t)
	w.shareBy("key")
	w.tenant("a")
	w.weigh("q", "b", 2)
	w.holdShare("a", minute)
	w.holdShare("b", minute)
	w.shareBy("")
	for w.b.round() {
	}
	if w.barrier(); w.records() != 1 || len(w.tenants(1, nil)) != 1 {
		t.Errorf("the store has %d records of shares, want the weight", w.records())
	}
	w.holdShare("c", minute)
	w.shareBy("key")
	w.tenant("b")
	if w.barrier(); w.records() != 1 || len(w.tenants(1, nil)) != 1 {
		t.Errorf("with share-by again the store has %d records of shares, want the weight", w.records())
	}
}

// However many shares rest, another share-by looks at none of them at once, and without one their
// rests end in slices: also over a start, and though share-by comes again meanwhile.
func TestManyRestsFollowShareByInSlices(t *testing.T) {
	const shares = 5000
	for what, then := range map[string]func(w *work){
		"": func(*work) {}, "share-by again": func(w *work) { w.shareBy("key") },
		"a kill": func(w *work) { w.killed(func(*broker.Tx) {}); w.restarted() },
	} {
		w := newWork(t)
		w.shareBy("key")
		w.tenant("a")
		w.weigh("q", "b", 2)
		w.holdShare("a", minute)
		w.holdShare("b", minute)
		w.do(func(tx *broker.Tx) (err error) {
			for i := 0; i < shares && err == nil; i++ {
				err = tx.SetShare([]byte("q"), broker.Share{Name: fmt.Append(nil, i), HeldUntil: tx.Steady() + minute})
			}
			return err
		})
		for w.b.round() {
		}
		if made := testing.AllocsPerRun(1, func() { w.shareBy("tag:tenant"); w.shareBy("key") }); made > shares {
			t.Errorf("another share-by made %v objects, and %d shares rest", made, shares)
		}
		w.shareBy("")
		if left := len(w.shareRecords()); left < shares/2 {
			t.Errorf("%s: %d of %d rests are left at once", what, left, shares)
		}
		if then(w); w.records() != 1 || w.weightOf("q", "b") != 2 {
			t.Errorf("%s: the store has %d records of shares, want the weight", what, w.records())
		}
		if got := w.tenants(1, nil); len(got) != 1 {
			t.Errorf("%s: the packet of a share that rested is not given", what)
		}
	}
}

// Shares at their limit, shares that rest and packets behind others of their key are counted.
func TestWhatIsHeldBackIsCounted(t *testing.T) {
	w := newWork(t)
	want := func(when string, want index.HeldCounts) {
		t.Helper()
		for w.b.round() {
		}
		w.do(func(tx *broker.Tx) error {
			if s, _, err := tx.QueueStats([]byte("q")); s.HeldCounts != want || err != nil {
				t.Errorf("%s %+v is held back, want %+v: %v", when, s.HeldCounts, want, err)
			}
			return nil
		})
	}
	w.limited("tag:tenant", 0, 1)
	for _, name := range []string{"a", "a", "b", "b", "b"} {
		w.tenant(name)
	}
	want("at first", index.HeldCounts{})
	j := w.claimOne()
	want("with a claim", index.HeldCounts{SharesAtLimit: 1})
	w.holdShare("a", 1000)
	w.holdShare("b", 1000)
	want("while shares rest", index.HeldCounts{SharesNotDue: 2})
	w.pass(time.Second)
	want("after that", index.HeldCounts{SharesAtLimit: 1})
	w.nacked(j, broker.Nack{}, broker.Ready)
	want("without a claim", index.HeldCounts{})
	w.strict(nil)
	want("in strict order", index.HeldCounts{PacketsBehind: 3})
	w.claimOne()
	want("with one out", index.HeldCounts{PacketsBehind: 3})
	w.strict(func(s *broker.Settings) { s.Strict = false })
	want("without it", index.HeldCounts{})
}

// HOLD is no push, and no setting: a queue that has its share-by of its name goes with its packets.
func TestAHoldNeedsNoRoomAndNoSettings(t *testing.T) {
	for _, by := range []string{"key", ""} {
		w := newWork(t)
		w.o.Defaults = defaultsWith("q", func(s *broker.Settings) { s.ShareBy = []byte(by) })
		w.setDefaults(w.o.Defaults)
		w.tenant("a")
		j := w.claimOne()
		w.store.level = storage.NoPush
		w.barrier()
		w.hold(j, minute)
		w.store.level = storage.Normal
		w.restart()
		if got := w.tenants(1, nil); len(got) != 0 {
			t.Errorf("share-by %q: %v was taken within the rest", by, got)
		}
		own := false
		w.do(func(tx *broker.Tx) error { own = tx.HasOwnSettings([]byte("q")); return nil })
		if by != "" && own { // without shares it is a pause, which is a setting
			t.Error("the queue has settings of its own")
		}
		w.pass(minute * time.Millisecond)
		if got := w.tenants(1, nil); len(got) != 1 {
			t.Errorf("share-by %q: behind the rest %v was taken", by, got)
		}
	}
}
