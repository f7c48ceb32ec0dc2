package broker_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// events returns what was told since the last call, for operators or for those who tail.
func (h *harness) events(tail bool) (all []broker.Event) {
	h.t.Helper()
	if h.b.err == nil {
		h.barrier()
	}
	h.b.turn()
	for _, e := range h.b.told {
		if e.Tail == tail {
			all = append(all, e)
		}
	}
	h.b.told = nil
	return all
}

// kinds are those of events, with who gets the packet, and who got it.
func kinds(events []broker.Event) string {
	var all []string
	for _, e := range events {
		text := string(e.Kind)
		for _, more := range []string{e.To, e.Consumer, e.Reason, e.State} {
			if more != "" {
				text += ":" + more
			}
		}
		if e.Messages > 0 {
			text += fmt.Sprint(":", e.Messages)
		}
		all = append(all, text)
	}
	return strings.Join(all, " ")
}

func (h *harness) wantEvents(tail bool, want string) {
	h.t.Helper()
	if got := kinds(h.events(tail)); got != want {
		h.t.Errorf("told %q, want %q", got, want)
	}
}

func (h *harness) tail(queue string) {
	h.do(func(tx *broker.Tx) error { tx.Tail(0, queue, true); return nil })
}

func TestADeathIsToldOnceAndWhenItIsOnDisk(t *testing.T) {
	w := newWork(t)
	defer w.close()
	id := w.add(broker.PushRequest{Payload: []byte("job"), Priority: 7})
	j := w.claimOne()
	w.events(false)
	w.b.hold(func() { w.nacked(j, broker.Nack{Dead: true, Reason: []byte("broken")}, broker.Dead) })
	w.b.turn()
	if w.b.turn(); len(w.b.told) > 0 {
		t.Errorf("told %+v before it was on disk", w.b.told)
	}
	w.b.release()
	got := w.events(false)
	want := broker.Event{
		Kind: broker.EventDead, At: startTime, Queue: "q", Packet: true, ID: id, Priority: 7, Bytes: 3, Attempts: 1, Reason: "broken",
	}
	if len(got) != 1 || got[0] != want {
		t.Errorf("told %+v, want %+v", got, want)
	}
	w.restart()
	if more := w.events(false); len(more) > 0 {
		t.Errorf("told %+v again", more)
	}
}

func TestADeathWhoseCommitFailsIsNotTold(t *testing.T) {
	w := newWork(t)
	w.add(broker.PushRequest{})
	j := w.claimOne()
	w.events(false)
	w.store.before = func() error { return errors.New("broken") }
	w.nacked(j, broker.Nack{Dead: true}, broker.Dead)
	w.b.commit()
	if got := w.events(false); len(got) > 0 || w.b.err == nil {
		t.Errorf("told %+v, %v", got, w.b.err)
	}
}

func TestADeathTellsWhereThePacketIsNow(t *testing.T) {
	w := newWork(t)
	defer w.close()
	w.change("q", func(s *broker.Settings) { s.DeadLetter, s.MaxAttempts = []byte("graves"), 1 })
	w.tail("graves")
	w.add(broker.PushRequest{})
	w.claimOne()
	w.pass(31 * time.Second)
	w.wantEvents(false, "dead:graves:lease ended: w1")
	w.add(broker.PushRequest{Queue: []byte("other")})
	w.wantEvents(true, "")
}

func TestOfVeryManyDeathsSomeAreToldAndTheOthersCounted(t *testing.T) {
	w := newWork(t)
	defer w.close()
	w.store.limits = content.Limits{MaxOps: 1 << 20, MaxBytes: 1 << 30}
	w.restart()
	w.change("q", func(s *broker.Settings) { s.MaxAttempts = 1 })
	w.do(func(tx *broker.Tx) error {
		_, err := tx.PushAll(broker.PushRequest{Queue: []byte("q"), Priority: 1}, make([][]byte, 1000))
		return err
	})
	if n := len(w.claim("q", broker.ClaimRequest{Selection: broker.Selection{Count: 1000}})); n != 1000 {
		t.Fatalf("claimed %d", n)
	}
	w.add(broker.PushRequest{Queue: []byte("other")})
	w.claim("other", broker.ClaimRequest{})
	w.tail("q")
	w.events(false)
	w.pass(31 * time.Second)
	got := w.events(false)
	left := got[len(got)-1]
	if len(got) != 257 || left.Kind != broker.EventMissed || left.Messages != 744 || left.Queue != "q" || left.At != w.now.Load() {
		t.Errorf("%d events, the last %+v", len(got), left)
	}
}

func TestATailTellsWhatHappensInAQueue(t *testing.T) {
	w := newWork(t)
	defer w.close()
	q, other := []byte("q"), []byte("other")
	w.tail("q") // which does not exist yet
	w.add(broker.PushRequest{Queue: other})
	w.in(3, func(tx *broker.Tx) error { return pushError(tx.Push(broker.PushRequest{Queue: q})) })
	atomic := func(fn func(tx *broker.Tx) error) func() {
		return func() { w.do(func(tx *broker.Tx) error { return tx.Atomic(func() error { return fn(tx) }) }) }
	}
	bulk := func(bk *broker.Bulk) func() {
		return func() {
			for more := true; more; {
				w.do(func(tx *broker.Tx) (err error) { more, err = bk.Slice(tx); return err })
			}
		}
	}
	var id broker.ID
	add := func() { id = w.add(broker.PushRequest{Payload: []byte("x"), Key: []byte("k"), Priority: 5}) }
	run := func(at int64) func() {
		return func() { w.do(func(tx *broker.Tx) error { _, err := tx.Reschedule(q, id, at); return err }) }
	}
	nack := func(n broker.Nack, want broker.State) func() {
		return func() { w.nacked(w.claimOne(), n, want) }
	}
	for _, step := range []struct {
		want string
		do   func()
	}{
		{"pushed", add},
		{"claimed:w1 nacked:no", nack(broker.Nack{Reason: []byte("no")}, broker.Ready)},
		{"claimed:w1 nacked", nack(broker.Nack{Delay: 1000}, broker.Delayed)},
		{"ready", func() { w.pass(time.Second) }},
		{"claimed:w1 returned:lease ended: w1", func() { w.claimOne(); w.pass(31 * time.Second) }},
		{"claimed:w1 returned:harvested", func() { w.claimOne(); bulk(broker.Harvest(q, 0, ""))() }},
		{"claimed:w1 dead:bad", nack(broker.Nack{Dead: true, Reason: []byte("bad")}, broker.Dead)},
		{"returned:redriven", bulk(broker.Redrive(q, 0, nil))},
		{"delayed", run(w.now.Load() + 60_000)},
		{"ready", run(0)},
		{"moved", func() { w.do(func(tx *broker.Tx) error { _, err := tx.SetPriority(q, id, 9); return err }) }},
		{"claimed:w1 acked", func() { _ = w.ack(w.claimOne()) }},
		{"pushed popped", func() { add(); w.do(func(tx *broker.Tx) error { return reply(w.c)(tx.Pop(q, broker.Selection{})) }) }},
		{"pushed popped", func() { add(); _, _ = w.popKey("q", broker.Oldest) }},
		{"pushed cancelled", func() { add(); w.cancelled(id, broker.Ready) }},
		{"pushed claimed:w1 cancelled", func() { add(); r := w.claimOne(); w.cancelled(id, broker.Claimed); _ = w.ack(r) }},
		{"pushed deleted", func() { add(); bulk(broker.Purge(q, 0))() }},
		{"pushed expired", func() { w.add(broker.PushRequest{TTL: time.Second}); w.pass(2 * time.Second) }},
		{"arrived", bulk(broker.Move(other, 0, 0, q))},
		{"moved:other", bulk(broker.Move(q, 0, 0, other))},
		{"pushed replaced", func() {
			add()
			atomic(func(tx *broker.Tx) error { _, err := tx.SetAt(q, 0, []byte("y")); return err })()
		}},
		{"moved:else", atomic(func(tx *broker.Tx) error { _, err := tx.Rename(q, []byte("else")); return err })},
		{"arrived", atomic(func(tx *broker.Tx) error { _, err := tx.Rename([]byte("else"), q); return err })},
		{"deleted", atomic(func(tx *broker.Tx) error { _, err := tx.Drop(q); return err })},
		{"pushed dropped pushed", func() { w.bound(1, 0, content.FullDrop); _ = w.pushed(2, "x"); _ = w.pushed(1, "x") }},
		{"purged", atomic(func(tx *broker.Tx) error { _, err := tx.Drop(q); return err })},
		{"pushed", add},
		{"purged", func() { w.do(func(tx *broker.Tx) error { return tx.Flush(false) }) }},
		{"pushed", add},
	} {
		step.do()
		w.wantEvents(true, step.want)
	}
	w.do(func(tx *broker.Tx) error { tx.Tail(0, "q", false); return nil })
	add()
	w.wantEvents(true, "")
}

func TestAnOldPacketIsToldOnceUntilNoneIsOld(t *testing.T) {
	w := newWork(t)
	defer w.close()
	w.change("q", func(s *broker.Settings) { s.AlertAge = 10_000 })
	pass := func(seconds int) {
		for range seconds {
			w.pass(time.Second)
			w.barrier()
		}
	}
	w.add(broker.PushRequest{})
	pass(8)
	w.wantEvents(false, "")
	if next := w.b.Next(); next > 1000 {
		t.Errorf("the next turn is due in %d ms", next)
	}
	pass(10)
	w.add(broker.PushRequest{})
	pass(1)
	if got := w.events(false); len(got) != 1 || got[0].Kind != broker.EventOld || got[0].Age < 10_000 || got[0].Age > 12_000 || got[0].Queue != "q" {
		t.Errorf("told %+v", got)
	}
	w.do(func(tx *broker.Tx) error {
		return reply(w.c)(tx.Pop([]byte("q"), broker.Selection{End: broker.Oldest}))
	})
	pass(2)
	w.wantEvents(false, "young")
	pass(12)
	w.wantEvents(false, "old")
	w.change("q", func(s *broker.Settings) { s.AlertAge = 0 })
	pass(2)
	w.wantEvents(false, "young")
	pass(12)
	w.wantEvents(false, "")
}

func TestAnOldQueueThatGoesIsYoung(t *testing.T) {
	w := newWork(t)
	defer w.close()
	w.change("q", func(s *broker.Settings) { s.AlertAge = 1 })
	w.add(broker.PushRequest{})
	w.pass(5 * time.Second)
	w.wantEvents(false, "old")
	w.do(func(tx *broker.Tx) error {
		return tx.Atomic(func() error { _, err := tx.Drop([]byte("q")); return err })
	})
	w.pass(2 * time.Second)
	w.wantEvents(false, "young")
	if w.barrier(); w.b.Next() < 2000 {
		t.Errorf("a turn is due in %d ms, though no queue has an alert-age", w.b.Next())
	}
}

func TestVeryManyQueuesWithAnAlertAgeAreLookedAtInSlices(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	h.o.Defaults = defaultsWith("", func(s *broker.Settings) { s.AlertAge = 1000 })
	h.restart()
	for i := range 3000 {
		h.push(fmt.Sprint("q", i), 1, 0, "", "x")
	}
	h.barrier()
	h.events(false)
	h.now.Add(10_000)
	h.b.told = nil
	if h.b.round(); len(h.b.Events()) > 1100 {
		t.Errorf("%d events at once", len(h.b.Events()))
	}
	told := 0
	h.comesTrue(func() bool {
		h.now.Add(50)
		for _, e := range h.events(false) {
			told += max(1, e.Messages)
		}
		return told >= 3000
	})
	if told != 3000 {
		t.Errorf("%d queues are old, want each once", told)
	}
}

func TestAQueueAtItsBoundIsToldOnceUntilItHadRoom(t *testing.T) {
	for full := content.FullReject; full <= content.FullDrop; full++ {
		t.Run(fmt.Sprint(full), func(t *testing.T) {
			w := newWork(t)
			defer w.close()
			w.bound(10, 0, full)
			pop := func() { w.do(func(tx *broker.Tx) error { return reply(w.c)(tx.Pop([]byte("q"), broker.Selection{})) }) }
			push := func(n int) {
				for range n {
					_ = w.pushed(1, "x")
				}
			}
			push(10)
			w.wantEvents(false, "")
			push(5)
			w.wantEvents(false, "bound")
			push(5)
			w.pass(2 * time.Second)
			w.barrier()
			push(5)
			w.wantEvents(false, "")
			pop()
			w.pass(2 * time.Second)
			w.barrier()
			push(5)
			w.wantEvents(false, "bound")
		})
	}
}

func TestWhatTheDiskRefusesIsToldWithoutABatch(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	set := func(level storage.Level, want string) {
		t.Helper()
		h.store.level = level
		h.wantEvents(false, want)
	}
	set(storage.Normal, "")
	set(storage.NoPush, "disk:refuses pushes")
	set(storage.NoPush, "")
	set(storage.Stop, "disk:refuses all")
	set(storage.NoPush, "") // it may come back
	h.now.Add(4000)
	set(storage.Stop, "")
	h.now.Add(4000)
	set(storage.Normal, "")
	if next := h.b.Next(); next > 100 {
		t.Errorf("the next turn is due in %d ms", next)
	}
	h.now.Add(5000)
	set(storage.Normal, "disk:fine")
	h.store.repeats++
	h.wantEvents(false, "background:cannot merge")
	h.wantEvents(false, "")
}

func TestWhatTheMemoryRefusesIsToldByItself(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	h.store.memoryLevel = storage.NoPush
	h.wantEvents(false, "memory:refuses pushes")
	h.store.memoryLevel = storage.Stop
	h.wantEvents(false, "memory:refuses pushes and claims")
	h.store.level = storage.NoPush
	h.wantEvents(false, "disk:refuses pushes")
	h.store.memoryLevel = storage.Normal
	h.wantEvents(false, "")
	h.now.Add(5000)
	h.wantEvents(false, "memory:fine")
}

func TestABatchThatFindsNoRoomIsToldAndWhatItTellsWaits(t *testing.T) {
	w := newWork(t)
	defer w.close()
	w.add(broker.PushRequest{})
	j := w.claimOne()
	full := true
	w.store.before = func() error {
		if full {
			return fmt.Errorf("no room: %w", storage.ErrFull)
		}
		return nil
	}
	w.nacked(j, broker.Nack{Dead: true}, broker.Dead)
	w.wantEvents(false, "disk:refuses all")
	full = false
	w.wantEvents(false, "dead")
}

func TestALongNameIsToldAsItIs(t *testing.T) {
	w := newWork(t)
	defer w.close()
	name := string(bytes.Repeat([]byte{0xff}, 65_535))
	w.tail(name)
	w.add(broker.PushRequest{Queue: []byte(name)})
	if got := w.events(true); len(got) != 1 || got[0].Queue != name {
		t.Errorf("told %d events", len(got))
	}
}

func TestWhereManyListenFewerEventsAreTold(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	const listeners, pushes, most = 1000, 4000, 40_000
	long := strings.Repeat("q", 60_000)
	h.do(func(tx *broker.Tx) error {
		for i := range listeners { // a channel is of all databases
			tx.Tail(uint8(i%16), "q", true)
			tx.Tail(uint8(i%16), long, true)
			tx.Operator(true)
		}
		return nil
	})
	for queue, messages := range map[string]int{"q": 1, long: 50} {
		h.together(func(tx *broker.Tx) error {
			for range pushes {
				if _, err := tx.Push(broker.PushRequest{Queue: []byte(queue), Priority: 1}); err != nil {
					return err
				}
			}
			return nil
		})
		told, missed := 0, 0
		h.comesTrue(func() bool {
			for _, e := range h.events(true) {
				if told++; e.Kind == broker.EventMissed {
					told, missed = told-1, missed+e.Messages
				}
			}
			return told+missed >= pushes
		})
		if told+missed != pushes || told == 0 || (told-1)*listeners*messages > most {
			t.Errorf("%d events were told and %d missed of %d", told, missed, pushes)
		}
	}
}

func TestWhatManyQueuesMissIsToldInSeveralTurns(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	const listeners, queues = 100, 3000
	h.do(func(tx *broker.Tx) error {
		for i := range queues {
			for range listeners {
				tx.Tail(0, fmt.Sprint(i), true)
			}
		}
		return nil
	})
	h.together(func(tx *broker.Tx) error {
		for i := range queues {
			if _, err := tx.Push(broker.PushRequest{Queue: fmt.Append(nil, i), Priority: 1}); err != nil {
				return err
			}
		}
		return nil
	})
	told := map[string]bool{}
	for turns := 0; len(told) < queues; turns++ {
		events := h.b.Events()
		if len(events) > queues/2 || turns > 100 {
			t.Fatalf("%d events in turn %d, %d queues were told of", len(events), turns, len(told))
		}
		for _, e := range events {
			told[e.Queue] = true
		}
		if h.b.round(); len(told) < queues && turns > 0 && h.b.Next() > 0 && len(h.b.Events()) == 0 {
			t.Fatalf("nobody wants a turn, though only %d queues were told of", len(told))
		}
	}
}
