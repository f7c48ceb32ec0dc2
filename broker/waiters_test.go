package broker_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/holdfast-queue/holdfast/broker"
)

func TestWhoWaitsForANameMakesNoQueue(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	takes, pushes, subscribes := h.b.Attach(&inbox{}, groups), h.b.Attach(&inbox{}, groups), h.b.Attach(&inbox{}, groups)
	h.do(func(tx *broker.Tx) error {
		defer tx.FillNames()()
		next := tx.NextQueue()
		p := broker.Parking{Queues: [][]byte{[]byte("a"), []byte("b")}, Filter: filtered("class eq high")}
		if err := tx.Park(takes, p); err != nil {
			t.Errorf("a take: %v", err)
		}
		if err := tx.Park(pushes, broker.Parking{Queues: [][]byte{[]byte("c")}, Push: true}); err != nil {
			t.Errorf("a push: %v", err)
		}
		if err := tx.Subscribe(subscribes, []byte("d")); err != nil {
			t.Errorf("a subscription: %v", err)
		}
		if n := takes.Awaits() + pushes.Awaits() + subscribes.Awaits(); n != 4 || tx.Awaited() != 4 {
			t.Errorf("%d and %d names are awaited, want 4", n, tx.Awaited())
		}
		if got := tx.NextQueue(); got != next {
			t.Errorf("%d queues got a number", got-next)
		}
		return tx.CheckNames()
	})
	for _, c := range []*broker.Conn{takes, pushes, subscribes} {
		h.do(func(tx *broker.Tx) error { tx.Detach(c); return tx.CheckNames() })
	}
	if n := h.b.Stats().Known; n != 0 {
		t.Errorf("%d queues are known when nobody waits", n)
	}
}

// endings are the ways in which a name loses its queue, or gets another one.
var endings = map[string]func(h *harness, tx *broker.Tx) error{
	"delete": func(_ *harness, tx *broker.Tx) error { _, err := tx.Delete([]byte("q")); return err },
	"rename": func(_ *harness, tx *broker.Tx) error {
		_, err := tx.Rename([]byte("q"), []byte("away"))
		return err
	},
	"rename of another": func(_ *harness, tx *broker.Tx) error {
		if err := tx.SetSettings([]byte("other"), broker.DefaultSettings()); err != nil {
			return err
		}
		_, err := tx.Rename([]byte("other"), []byte("q"))
		return err
	},
	"flush":     func(_ *harness, tx *broker.Tx) error { return tx.Flush(false) },
	"flush all": func(_ *harness, tx *broker.Tx) error { return tx.Flush(true) },
	"string": func(_ *harness, tx *broker.Tx) error {
		if err := tx.SetString([]byte("q"), []byte("value"), 0); err != nil {
			return err
		}
		_, err := tx.Delete([]byte("q"))
		return err
	},
	"expiry": func(h *harness, tx *broker.Tx) error {
		_, err := tx.SetExpiry([]byte("q"), tx.Now()+1)
		h.now.Add(1)
		return err
	},
	"trim": func(_ *harness, tx *broker.Tx) error {
		s, _, err := tx.Settings([]byte("q"))
		if s.PauseOut, s.PauseIn = false, false; err == nil {
			err = tx.Trim([]byte("q"), 0, 0)
		}
		if err == nil {
			err = tx.SetSettings([]byte("q"), s)
		}
		return err
	},
}

func TestANameThatLosesItsQueueServesWhoWaitsInOrder(t *testing.T) {
	for name, end := range endings {
		for _, late := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", with a push in line: ", late), func(t *testing.T) { losesItsQueue(t, end, late) })
		}
	}
}

func losesItsQueue(t *testing.T, end func(h *harness, tx *broker.Tx) error, late bool) {
	h := newHarness(t)
	defer h.close()
	push := func(payload, tags string) {
		p := broker.PushRequest{Queue: []byte("q"), Priority: 1, Payload: []byte(payload), Tags: tagged(tags)}
		h.do(func(tx *broker.Tx) error { return pushError(tx.Push(p)) })
	}
	third := &classWaiter{box: &workbox{}, s: broker.Selection{Filter: filtered("class eq high"), WithDetails: true}}
	third.c = h.b.Attach(third.box, broker.Selection{})
	h.do(func(tx *broker.Tx) error { return wait(tx, third.c, third, third.s, 0, []byte("q")) })
	for i := range 1000 {
		push("old", fmt.Sprint("class ", i))
	}
	h.change("q", func(s *broker.Settings) { s.PauseIn, s.PauseOut = true, true })
	_, first := h.wait("", 0, "elsewhere", "q")
	second, lateOne := &inbox{}, &inbox{}
	h.subscribe(h.b.Attach(second, broker.Selection{End: broker.Oldest}), 1, "q")
	want := []string{"[[from q] [1]]", "[[2]]", "[]"}
	if late {
		_, lateOne = h.waitPush("q")
		want = []string{"[[from q] [late]]", "[[1]]", "[[ready]]"}
	}
	h.b.hold(func() { // Work comes later
		h.together(func(tx *broker.Tx) error { return end(h, tx) })
		push("1", "")
		push("2", "")
		push("3", "class high")
	})
	h.b.release()
	h.b.round()
	h.barrier()
	wantGot(t, "the first", first, want[0])
	wantGot(t, "the second", second, want[1])
	wantGot(t, "who pushes", lateOne, want[2])
	if len(third.box.replies) != 1 || third.box.replies[0][0].payload != "3" {
		t.Errorf("who waits with a filter got %+v", third.box.replies)
	}
	h.do(func(tx *broker.Tx) error { return tx.CheckNames() })
}

func TestWhatWasMarkedForThoseWhoLeftIsNotForOthers(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	h.push("q", 1, 0, "", "of q")
	h.change("q", pauseIn)
	h.wait("", 0, "third")
	gone, _ := h.waitPush("q")
	r := &inbox{}
	c := h.b.Attach(r, broker.Selection{})
	h.together(func(tx *broker.Tx) error {
		if err := tryChange(tx, "q", noPause); err != nil {
			return err
		}
		tx.Detach(gone.c)
		p := broker.Parking{Queues: [][]byte{[]byte("other")}}
		r.waits(func(tx *broker.Tx, _ bool) {
			r.say("made again")
			_ = tx.Park(c, p)
		})
		return tx.Park(c, p)
	})
	h.barrier()
	wantGot(t, "who waits for another name", r, "[]")
	h.push("other", 1, 0, "", "of other")
	h.barrier()
	wantGot(t, "who waits for another name", r, "[[made again]]")
}

func TestWhoWaitsForANameWithoutAQueueIsItsOnlyConsumer(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	h.do(func(tx *broker.Tx) error { tx.SetDefaults(defaultsWith("", exclusiveConsumer)); return nil })
	one, two := h.caller("1", ""), h.caller("2", "")
	wantDone(t, "one subscribes", one.subscribe("q"))
	wantInUse(t, "two", two.subscribe("q"), `"2" and "1" wait for packets`)
	wantDone(t, "a push", two.push("q"))
	h.barrier()
	wantGot(t, "one", one.r, "[[a]]")
	wantDone(t, "a push", two.push("q"))
	wantInUse(t, "two", two.pop("q"), `"1" is its only consumer`)
	h.together(func(tx *broker.Tx) error { return tx.Flush(false) })
	wantDone(t, "a push after a flush", two.push("q"))
	wantInUse(t, "two", two.pop("q"), `"1" is its only consumer`)
	one.detach()
	wantDone(t, "two, after one has gone", two.pop("q"))
}

func TestSystemWhatWaitsForNamesTakesIsWhatItCounts(t *testing.T) {
	const conns, names = 200, 1000
	waits := map[string]func(tx *broker.Tx, c *broker.Conn, names [][]byte) error{
		"take": func(tx *broker.Tx, c *broker.Conn, names [][]byte) error {
			return tx.Park(c, broker.Parking{Queues: names})
		},
		"subscription": func(tx *broker.Tx, c *broker.Conn, names [][]byte) (err error) {
			for _, name := range names {
				if err = tx.Subscribe(c, name); err != nil {
					break
				}
			}
			return err
		},
	}
	for what, wait := range waits {
		h := newHarness(t)
		all := make([]*broker.Conn, conns)
		before := heapInUse()
		for i := range all {
			all[i] = h.b.Attach(&inbox{}, groups)
			some := make([][]byte, names)
			for n := range some {
				some[n] = fmt.Appendf(nil, "name:%07d", i*names+n)
			}
			h.do(func(tx *broker.Tx) error { return wait(tx, all[i], some) })
		}
		per := (heapInUse() - before) / (conns * names)
		t.Logf("%s: %d bytes for each name, %d are counted", what, per, broker.AwaitedMemory)
		if per > broker.AwaitedMemory {
			t.Errorf("%s: %d bytes for each name, %d are counted", what, per, broker.AwaitedMemory)
		}
		h.do(func(tx *broker.Tx) error {
			for _, c := range all {
				tx.Detach(c)
			}
			return nil
		})
		left := heapInUse() - before
		t.Logf("%s: %d bytes are left when all are gone", what, left)
		if left > 4<<20 {
			t.Errorf("%s: %d bytes are left when all are gone", what, left)
		}
		runtime.KeepAlive(all)
		h.close()
	}
}

// heapInUse is how many bytes live.
func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}
