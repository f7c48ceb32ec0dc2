package broker_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// fill pushes n elements, 1000 in a call.
func (h *harness) fill(name string, n int) {
	h.t.Helper()
	for at := 0; at < n; at += 1000 {
		values := []string{}
		for i := at; i < min(n, at+1000); i++ {
			values = append(values, fmt.Sprint(i))
		}
		h.pushEnd(name, broker.Oldest, values...)
	}
}

// swept waits until the sweeper has nothing to do.
func (h *harness) swept() {
	h.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; {
		left := 0
		h.do(func(tx *broker.Tx) error { left = tx.Dropped(); return nil })
		if h.barrier(); left == 0 {
			return
		}
		if time.Now().After(deadline) {
			h.t.Fatalf("%d dropped queues and keys are not swept", left)
		}
	}
}

func (h *harness) drop(name string) {
	h.t.Helper()
	h.together(func(tx *broker.Tx) error { tx.DropQueue([]byte(name)); return nil })
}

func TestADroppedQueueIsGoneAtOnceAndItsPacketsAreSwept(t *testing.T) {
	for _, n := range []int{1, 128, 129, 5000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			h := newHarness(t)
			defer h.close()
			h.store.limits = smallBatches
			h.restart()
			h.fill("q", n)
			h.push("other", 1, 0, "k", "stays")
			h.together(func(tx *broker.Tx) error {
				tx.DropQueue([]byte("q"))
				if n, err := tx.Len([]byte("q")); n != 0 || err != nil {
					t.Errorf("the dropped list has %d elements (%v)", n, err)
				}
				return pushEnd(tx, "q", broker.Newest, "new")
			})
			if s := h.b.Stats(); s.Packets != 2 || s.Queues != 2 {
				t.Errorf("%d packets in %d queues are counted, want the new one and the other", s.Packets, s.Queues)
			}
			h.wantList("q", "new")
			h.swept()
			if packets, queues := h.stored(); packets != 2 || queues != 2 {
				t.Errorf("%d packets and %d queues are stored, want 2 and 2", packets, queues)
			}
			h.restart()
			h.wantList("q", "new")
		})
	}
}

// crash restarts the machine on what is on disk after the batch that brings the drop, and before
// the sweeper has gone on. It returns how many packets are on disk then.
func (h *harness) crash(drop func()) (packets int) {
	h.t.Helper()
	h.barrier()
	h.b.hold(drop)
	h.b.release()
	h.b.apply()
	h.store.before = func() error { return errors.New("the process is killed") }
	for h.b.err == nil {
		h.b.round()
	}
	_ = h.b.Close()
	h.store.before = nil
	packets = len(h.store.packets)
	h.start()
	return packets
}

// Each of many short lists may go at once, but not all of them.
func TestManyShortListsAreDroppedInPart(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	const lists, each, atOnce = 200, 128, 4096
	for i := range lists {
		h.fill(fmt.Sprint(i), each)
	}
	h.barrier()
	h.together(func(tx *broker.Tx) error {
		for i := range lists {
			if ok, err := tx.Delete(fmt.Append(nil, i)); !ok || err != nil {
				t.Fatalf("list %d: %v, %v", i, ok, err)
			}
		}
		if got, want := tx.Dropped(), lists-atOnce/each; got != want {
			t.Errorf("%d lists are left to the sweeper, want %d", got, want)
		}
		if names, _ := tx.NameCount(0); names != 0 {
			t.Errorf("%d names are left", names)
		}
		return nil
	})
	h.swept()
	h.restart()
	if packets, _ := h.stored(); packets != 0 {
		t.Errorf("%d packets are left", packets)
	}
}

func TestADropThatWasNotSweptIsSweptAfterAStart(t *testing.T) {
	h := newHarness(t)
	defer func() { h.b.Close() }()
	h.store.limits = smallBatches
	h.restart()
	h.fill("q", 5000)
	h.push("q", 0, 0, "not selectable", "x")
	if packets := h.crash(func() { h.drop("q") }); packets < 2000 {
		t.Fatalf("%d packets are left after the crash: the test does not see what it is about", packets)
	}
	if n := h.b.Stats().Packets; n != 0 {
		t.Errorf("%d packets are counted after the start, want none", n)
	}
	h.pushEnd("q", broker.Newest, "new")
	h.wantList("q", "new")
	h.swept()
	if packets, queues := h.stored(); packets != 1 || queues != 1 {
		t.Errorf("%d packets and %d queues are stored, want the new one", packets, queues)
	}
	h.restart()
	h.wantList("q", "new")
}

func TestPacketsThatNoPopTakesAreDroppedWithTheirQueue(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	for i := range 10 {
		h.push("q", 0, 0, fmt.Sprint(i), "x")
	}
	h.push("q", 1, 0, "k", "x")
	h.push("other", 0, 0, "k", "stays")
	h.drop("q")
	h.swept()
	if packets, queues := h.stored(); packets != 1 || queues != 1 {
		t.Errorf("%d packets and %d queues are stored, want the other", packets, queues)
	}
}

func TestSubscribersOfADroppedQueueWaitForItsName(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	h.fill("q", 1000)
	r := &inbox{}
	c := h.b.Attach(r, groups)
	h.subscribe(c, 0, "q")
	h.drop("q")
	h.do(func(tx *broker.Tx) error { return tx.Ready(c, 2) })
	h.pushEnd("q", broker.Newest, "new")
	h.wantReplies(r, "new")
	h.do(func(tx *broker.Tx) error { return tx.Unsubscribe(c, []byte("q")) })
	h.pushEnd("q", broker.Newest, "later")
	h.wantReplies(r, "new")
}

func TestPacketsOfADroppedQueueExpireWithoutHarm(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	h.store.limits = smallBatches
	h.restart()
	r := &inbox{}
	c := h.b.Attach(r, groups)
	for i := range 3000 {
		h.push("q", 1, time.Duration(1+i%7)*time.Millisecond, fmt.Sprint(i), "x")
	}
	h.subscribe(c, 0, "q")
	h.b.hold(func() { h.drop("q") })
	h.now.Add(4)
	h.b.release()
	h.do(func(tx *broker.Tx) error { return tx.Ready(c, 5) })
	h.swept()
	h.wantReplies(r)
	if packets, _ := h.stored(); packets != 0 {
		t.Errorf("%d packets are left", packets)
	}
}

func TestATrimKeepsWhatItShallOverARestart(t *testing.T) {
	for _, row := range []struct {
		name          string
		n, from, keep int
	}{
		{"nothing to delete", 10, 0, 10},
		{"few deletes", 10, 2, 3},
		{"to nothing, small", 100, 0, 0},
		{"to nothing, large", 5000, 0, 0},
		{"most are deleted", 4500, 4000, 10},
		{"most are kept", 5000, 100, 4800},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := newHarness(t)
			defer func() { h.b.Close() }()
			h.fill("q", row.n)
			want := h.list("q")[row.from : row.from+row.keep]
			h.restart()
			h.do(func(tx *broker.Tx) error {
				return tx.Atomic(func() error { return tx.Trim([]byte("q"), row.from, row.keep) })
			})
			h.wantList("q", want...)
			h.pushEnd("q", broker.Newest, "new")
			want = append([]string{"new"}, want...)
			h.wantList("q", want...)
			h.restart()
			h.wantList("q", want...)
			h.swept()
			if packets, queues := h.stored(); packets != len(want) || queues != 1 {
				t.Errorf("%d packets and %d queues are stored, want %d and 1", packets, queues, len(want))
			}
			h.restart()
			h.wantList("q", want...)
		})
	}
}

func TestATrimLeavesWhatIsNotPartOfTheList(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	h.fill("q", 300)
	h.push("q", 0, 0, "k", "not selectable")
	h.together(func(tx *broker.Tx) error { return tx.Trim([]byte("q"), 0, 0) })
	h.wantList("q")
	h.push("q", 1, 0, "k", "selectable")
	r := &inbox{}
	h.pop(h.b.Attach(r, groups), "q")
	h.wantReplies(r, "selectable not selectable")
}

func TestARenamedQueueTakesItsPacketsAndNotItsSubscribers(t *testing.T) {
	h := newHarness(t)
	defer func() { h.b.Close() }()
	h.pushEnd("from", broker.Oldest, "a", "b")
	h.pushEnd("to", broker.Oldest, "gone")
	old, wide := &inbox{}, &inbox{}
	co, cw := h.b.Attach(old, groups), h.b.Attach(wide, groups)
	h.subscribe(co, 0, "from")
	h.subscribe(cw, 0, "to")
	h.together(func(tx *broker.Tx) error {
		tx.RenameQueue([]byte("from"), []byte("to"))
		return errors.Join(tx.Ready(co, 1), tx.Ready(cw, 1))
	})
	h.pushEnd("from", broker.Newest, "new")
	h.wantReplies(wide, "a")
	h.wantReplies(old, "new")
	h.wantList("to", "b")
	h.restart()
	h.wantList("to", "b")
	h.wantList("from")
}

func TestWhatTakesTheNameOfAnEmptyQueueIsNotEvictedWithIt(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	h.pushEnd("to", broker.Newest, "x")
	h.pop(h.b.Attach(&inbox{}, groups), "to")
	h.pushEnd("from", broker.Newest, "stays")
	h.together(func(tx *broker.Tx) error { tx.RenameQueue([]byte("from"), []byte("to")); return nil })
	h.barrier()
	h.now.Add(20_000) // empty queues are evicted
	h.pushEnd("to", broker.Oldest, "comes")
	h.barrier()
	h.wantList("to", "stays", "comes")
}

func TestASweepLeavesHalfOfABatchToOthers(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	h.store.limits = smallBatches
	h.restart()
	h.fill("q", 6000)
	h.barrier()
	largest := 0
	h.store.after = func(b *content.Batch) {
		deletes := 0
		b.Each(func(op content.Op) {
			if op.Kind == content.OpDelete {
				deletes++
			}
		})
		largest = max(largest, deletes)
	}
	h.drop("q")
	h.swept()
	if limit := smallBatches.MaxOps / 2; largest == 0 || largest > limit {
		t.Errorf("a batch has %d deletes, want at most %d", largest, limit)
	}
}

// Whatever keeps takes from packets, a queue that ends ends with all of them: none comes back, and
// none keeps what comes in its place from being found.
func TestAQueueEndsWithAllThatItHolds(t *testing.T) {
	name, ends := []byte("jobs.q"), map[string]func(w *work, tx *broker.Tx) error{
		"DEL":         func(_ *work, tx *broker.Tx) error { _, err := tx.Delete([]byte("jobs.q")); return err },
		"RENAME onto": func(_ *work, tx *broker.Tx) error { _, err := tx.Rename([]byte("new"), []byte("jobs.q")); return err },
		"SET":         func(_ *work, tx *broker.Tx) error { return tx.SetString([]byte("jobs.q"), []byte("v"), 0) },
		"LTRIM":       func(_ *work, tx *broker.Tx) error { return tx.Trim([]byte("jobs.q"), 0, 0) },
		"its time": func(w *work, tx *broker.Tx) error {
			_, err := tx.SetExpiry([]byte("jobs.q"), w.now.Load()+1)
			return err
		},
	}
	kinds := map[string]func(s *broker.Settings){
		"strict and shared out": func(s *broker.Settings) { s.Strict, s.ShareBy = true, []byte("key") },
		"strict":                func(s *broker.Settings) { s.Strict = true },
		"shared out by tag":     func(s *broker.Settings) { s.ShareBy = []byte("tag:tenant") },
		"with limits": func(s *broker.Settings) {
			s.ShareBy, s.MaxClaimed, s.ShareMaxClaimed, s.Rate, s.ShareRate = []byte("key"), 1, 1, []byte("1/1d"), []byte("1/1d")
		},
		"paused": func(s *broker.Settings) { s.PauseOut = true },
	}
	for kind, change := range kinds {
		for end, fn := range ends {
			t.Run(kind+", "+end, func(t *testing.T) {
				w := newWork(t)
				w.o.Defaults = defaultsWith("jobs.", change)
				w.setDefaults(w.o.Defaults)
				for i := range 5 {
					r := ofTenantNamed([]string{"a", "b"}[i/3])
					r.Queue = name
					w.add(r)
				}
				w.add(broker.PushRequest{Queue: []byte("new"), Payload: []byte("new")})
				w.do(func(tx *broker.Tx) error {
					err := tx.Atomic(func() error { return fn(w, tx) })
					if errors.Is(err, broker.ErrByShares) {
						t.Skip("it has no places")
					}
					return err
				})
				w.pass(time.Second)
				w.barrier()
				check := func() {
					t.Helper()
					at := "new"
					if end == "RENAME onto" {
						at = "jobs.q"
					}
					w.swept()
					if s := w.b.Stats(); len(w.store.packets) != 1 || s.Packets != 1 || len(w.list(at, broker.Ready, 9)) != 1 {
						t.Errorf("%d packets are stored and %d known, want the one of %s", len(w.store.packets), s.Packets, at)
					}
				}
				check()
				w.restart()
				check()
			})
		}
	}
}

// A queue that gives its dead to another one is known for as long as one of them may return.
func TestAQueueOfTheDeadIsForgottenWithTheLastOfThem(t *testing.T) {
	for name, end := range map[string]func(w *work, id broker.ID){
		"purged": func(w *work, _ broker.ID) { w.bulk(broker.Purge([]byte("graves"), 0)) },
		"redriven and popped": func(w *work, id broker.ID) {
			w.together(func(tx *broker.Tx) error {
				if ok, err := tx.RedrivePacket([]byte("graves"), id); !ok || err != nil {
					return fmt.Errorf("redriven: %t, %w", ok, err)
				}
				_, err := tx.Pop([]byte("jobs.a"), broker.Selection{})
				return err
			})
		},
	} {
		w := newWork(t)
		w.o.Defaults = defaultsWith("jobs.", func(s *broker.Settings) { s.DeadLetter = []byte("graves") })
		w.setDefaults(w.o.Defaults)
		id := w.add(broker.PushRequest{Queue: []byte("jobs.a")})
		j := w.claim("jobs.a", broker.ClaimRequest{})[0]
		w.do(func(tx *broker.Tx) error {
			_, err := tx.Nack([]byte("jobs.a"), broker.Receipt{ID: j.ID, Token: j.Token}, broker.Nack{Dead: true})
			return err
		})
		for _, want := range []int{2, 0} {
			w.restart()
			for range 2 {
				w.pass(time.Hour)
				w.barrier()
			}
			if known := w.b.Stats().Known; known != want {
				t.Errorf("%s: %d queues are known, want %d", name, known, want)
			}
			if want > 0 {
				end(w, id)
			}
		}
	}
}
