package broker_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/storage"
)

func TestWhatIsDueGoesOnAtOnceWhereTheDiskIsNearlyFull(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	h.do(func(tx *broker.Tx) error {
		for range 5000 {
			if _, err := tx.Push(broker.PushRequest{Queue: []byte("q"), Priority: 1, Delay: 1000}); err != nil {
				return err
			}
		}
		return nil
	})
	h.store.level = storage.NoPush
	h.now.Add(1000)
	h.b.round()
	if next := h.b.Next(); next != 0 {
		t.Fatalf("the next slice is due in %d ms, want 0", next)
	}
}

func TestNoTakeFindsWhatHasExpired(t *testing.T) {
	payloads := func(f broker.Found, err error) (found []string, _ error) {
		for _, p := range f.Packets {
			found = append(found, string(p.Key))
		}
		return found, err
	}
	q, ten := []byte("q"), broker.Selection{End: broker.Oldest, Count: 10}
	takes := map[string]func(tx *broker.Tx) ([]string, error){
		"pop":   func(tx *broker.Tx) ([]string, error) { return payloads(tx.Pop(q, ten)) },
		"group": func(tx *broker.Tx) ([]string, error) { return payloads(tx.Pop(q, broker.Selection{Group: true})) },
		"claim": func(tx *broker.Tx) ([]string, error) {
			return payloads(tx.Claim(q, broker.ClaimRequest{Selection: ten}))
		},
		"move": func(tx *broker.Tx) ([]string, error) {
			return payloads(tx.MoveEnd(q, broker.Oldest, []byte("to"), broker.Oldest))
		},
		"key": func(tx *broker.Tx) ([]string, error) {
			key, ok, err := tx.PopKey(q, broker.Oldest, nil, nil)
			if !ok {
				return nil, err
			}
			return []string{string(key)}, err
		},
		"delivery": func(tx *broker.Tx) ([]string, error) {
			r := &inbox{}
			c := tx.Attach(r, groups)
			err := tx.Atomic(func() error { return errors.Join(tx.Subscribe(c, q), tx.Ready(c, 3)) })
			if len(r.got) == 0 {
				return nil, err
			}
			return r.got[0], err
		},
	}
	for name, take := range takes {
		for _, alive := range []string{"", "alive"} {
			h := newHarness(t)
			due := 20_000 // more than a batch has
			if name == "delivery" {
				due = 4000 // far more than go in a turn by themselves
			}
			for i := range due {
				h.push("q", 1, time.Second, fmt.Sprint(i), "expired")
			}
			if alive != "" {
				h.push("q", 2, 0, alive, alive)
			}
			h.now.Add(1000)
			var found []string
			h.do(func(tx *broker.Tx) (err error) {
				for err = broker.ErrSweeping; err == broker.ErrSweeping; {
					before := tx.Figures().Totals.Expired
					found, err = take(tx)
					if n := tx.Figures().Totals.Expired - before; n > 4096 {
						t.Errorf("%s has deleted %d packets in one go", name, n)
					}
				}
				return err
			})
			if want := strings.Fields(alive); !slices.Equal(found, want) {
				t.Errorf("%s found %v, want %v", name, found, want)
			}
			h.do(func(tx *broker.Tx) error {
				if all := tx.Figures().Totals; all.Expired != uint64(due) || all.Popped > 1 {
					t.Errorf("%s: %d are counted as expired, %d as popped", name, all.Expired, all.Popped)
				}
				return nil
			})
			h.close()
		}
	}
}

func TestWhoWaitsLeavesATurnToOthersWhileWhatHasExpiredIsDeleted(t *testing.T) {
	const due = 50_000
	h := newHarness(t)
	defer h.close()
	var got inbox
	c := h.b.Attach(&got, groups)
	for i := range due {
		h.push("q", 1, time.Second, fmt.Sprint(i), "expired")
	}
	h.push("q", 2, 0, "alive", "alive")
	h.now.Add(1000)
	h.subscribe(c, 1, "q")
	h.b.commit()
	for turns := 0; len(got.got) == 0; turns++ {
		if turns == due {
			t.Fatal("what is alive is never delivered")
		}
		if h.b.turn().Full() {
			t.Error("a turn fills the batch before anybody is served")
		}
		h.b.commit()
	}
	if got := fmt.Sprint(got.got); got != "[[alive]]" {
		t.Errorf("delivered %s", got)
	}
}

func TestATakeOfManyPassesOverWhatHasExpiredInFewRounds(t *testing.T) {
	const n = 5000
	for _, s := range []broker.Selection{{Count: n + 1}, {Group: true}} {
		h := newHarness(t)
		for i := range 2 * n {
			expiry := time.Duration(i/n) * time.Second
			h.push("q", uint32(1+i/n), expiry, "key", fmt.Sprint(i))
		}
		h.now.Add(1000)
		h.do(func(tx *broker.Tx) error {
			passed := tx.Passed()
			f, err := tx.Pop([]byte("q"), s)
			if err == broker.ErrSweeping {
				f, err = tx.Pop([]byte("q"), s)
			}
			if passed = tx.Passed() - passed; len(f.Packets) != n || passed > 100*n {
				t.Errorf("%d packets are popped after %d steps", len(f.Packets), passed)
			}
			return err
		})
		h.close()
	}
}

func TestTheWallClockIsLookedAtWhileSomethingIsDueByIt(t *testing.T) {
	for name, bring := range map[string]func(h *harness){
		"delayed packet": func(h *harness) {
			h.do(func(tx *broker.Tx) error {
				return pushError(tx.Push(broker.PushRequest{Queue: []byte("q"), Delay: 3_600_000}))
			})
		},
		"name that expires": func(h *harness) { h.set("n", "v"); h.expireAt("n", h.now.Load()+3_600_000) },
	} {
		h := newHarness(t)
		bring(h)
		h.barrier()
		h.comesTrue(func() bool { return h.b.Next() > 0 })
		if next := h.b.Next(); next > 1000 {
			t.Errorf("%s: the next turn comes in %d ms, want a second or less", name, next)
		}
		h.close()
	}
}

func TestWhatIsDueWaitsForABatchThatFindsNoRoom(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	h.push("q", 1, time.Second, "", "x")
	_, _ = h.wait("", startTime+5000, "other")
	h.now.Add(2000)
	h.b.Stuck()
	h.b.turn()
	if next := h.b.Next(); next != 3000 {
		t.Errorf("the next turn comes in %d ms, want the 3000 until a wait ends", next)
	}
	h.now.Add(3000)
	h.b.turn()
	if next := h.b.Next(); next != math.MaxInt64 {
		t.Errorf("the next turn comes in %d ms, want none", next)
	}
}

func TestADelayedPacketThatBecomesReadyBreaksAWatch(t *testing.T) {
	w := newWork(t)
	w.add(broker.PushRequest{Queue: []byte("n"), Delay: 500})
	if !w.watched(func() { w.pass(time.Second); w.barrier() }) {
		t.Error("the list has an element more, and WATCH does not know")
	}
}
