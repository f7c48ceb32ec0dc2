package broker_test

import (
	"bytes"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// work is a harness with one consumer, and a steady clock of its own.
type work struct {
	*harness
	box    *workbox
	c      *broker.Conn
	steady atomic.Int64
}

// workbox is an inbox that keeps details.
type workbox struct {
	inbox
	replies  [][]job
	payloads []string // of the last one, also of one without details
}

// job is a packet of a reply, with its details.
type job struct {
	broker.Detail
	payload string
	cost    int64 // of its answer
}

func (r *workbox) keep(f broker.Found) {
	reply := make([]job, len(f.Packets))
	for i, d := range f.Details {
		d.Reason, d.Progress, d.Unique = bytes.Clone(d.Reason), bytes.Clone(d.Progress), bytes.Clone(d.Unique)
		reply[i] = job{Detail: d, payload: string(f.Packets[i].Payload)}
	}
	r.payloads = r.payloads[:0]
	for i := range f.Packets {
		r.payloads = append(r.payloads, string(f.Packets[i].Payload))
	}
	r.replies = append(r.replies, reply)
}

func (r *workbox) Deliver(packets []broker.Packet) { r.keep(broker.Found{Packets: packets}) }

func newWork(t tester) *work {
	w := &work{harness: newHarness(t)}
	w.steadyClock = w.steady.Load
	w.restart()
	return w
}

// restart starts the broker anew on what the store has.
func (w *work) restart() {
	w.t.Helper()
	w.store.control.Time = max(w.store.control.Time, w.now.Load())
	if err := w.b.Close(); err != nil {
		w.t.Fatalf("close: %v", err)
	}
	w.restarted()
}

// killed ends the broker. The store has nothing of what lost calls.
func (w *work) killed(lost func(tx *broker.Tx)) {
	w.barrier()
	w.store.before = func() error { return errors.New("killed") }
	_ = w.b.Do(func(tx *broker.Tx) error {
		lost(tx)
		return nil
	})
	_ = w.b.Close()
	w.store.before = nil
}

// restarted starts the broker that follows one which ended.
func (w *work) restarted() {
	w.t.Helper()
	w.steady.Store(w.now.Load()) // a start has no older clock
	w.start()
	w.box = &workbox{}
	w.c = w.b.Attach(w.box, broker.Selection{})
}

// pass lets time pass on both clocks.
func (w *work) pass(d time.Duration) {
	w.now.Add(d.Milliseconds())
	w.steady.Add(d.Milliseconds())
}

func (w *work) add(r broker.PushRequest) (id broker.ID) {
	w.t.Helper()
	if r.Queue == nil {
		r.Queue = []byte("q")
	}
	if r.Priority == 0 {
		r.Priority = 100
	}
	w.do(func(tx *broker.Tx) (err error) {
		id, err = tx.Push(r)
		return err
	})
	return id
}

// replied returns what the last call of fn replied.
func (w *work) replied(fn func(tx *broker.Tx) error) []job {
	w.t.Helper()
	w.do(fn)
	w.barrier()
	return w.box.replies[len(w.box.replies)-1]
}

func (w *work) claim(queue string, r broker.ClaimRequest) []job {
	w.t.Helper()
	if r.Consumer == nil {
		r.Consumer = []byte("w1")
	}
	return w.replied(func(tx *broker.Tx) error { return reply(w.c)(tx.Claim([]byte(queue), r)) })
}

// claimOne claims the oldest packet of q.
func (w *work) claimOne() job {
	w.t.Helper()
	got := w.claim("q", broker.ClaimRequest{Selection: broker.Selection{End: broker.Oldest}})
	if len(got) != 1 {
		w.t.Fatalf("claimed %d packets, want 1", len(got))
	}
	return got[0]
}

func (w *work) ack(j job) (err error) {
	return w.b.Do(func(tx *broker.Tx) error {
		_, err := tx.Ack([]byte("q"), []broker.Receipt{{ID: j.ID, Token: j.Token, Cost: j.cost}})
		return err
	})
}

func (w *work) nack(j job, n broker.Nack) (s broker.State, err error) {
	err = w.b.Do(func(tx *broker.Tx) (err error) {
		s, err = tx.Nack([]byte("q"), broker.Receipt{ID: j.ID, Token: j.Token, Cost: j.cost}, n)
		return err
	})
	return s, err
}

// nacked returns a packet to the queue where it is, and wants a state of it.
func (w *work) nacked(j job, n broker.Nack, want broker.State) {
	w.t.Helper()
	w.do(func(tx *broker.Tx) error {
		got, err := tx.Nack([]byte(j.Queue), broker.Receipt{ID: j.ID, Token: j.Token}, n)
		if got != want {
			w.t.Errorf("the packet is %v, want %v", got, want)
		}
		return err
	})
}

func (w *work) set(s broker.Settings) {
	w.t.Helper()
	w.do(func(tx *broker.Tx) error { return tx.SetSettings([]byte("q"), s) })
}

// stored returns how many packets and delivery states the store holds.
func (w *work) stored() string {
	w.barrier()
	return fmt.Sprintf("%d packets, %d delivery states", len(w.store.packets), len(w.store.states))
}

func TestAClaimEndsWithItsLease(t *testing.T) {
	w := newWork(t)
	id := w.add(broker.PushRequest{Payload: []byte("job")})
	first := w.claimOne()
	if first.ID != id || first.payload != "job" || first.Attempts != 1 || first.Token == 0 || first.Consumer != "w1" ||
		first.State != broker.Claimed || first.LeaseEnd != startTime+30_000 {
		t.Fatalf("claimed %+v", first)
	}
	w.restart()
	w.pass(29_999 * time.Millisecond)
	if got := w.claim("q", broker.ClaimRequest{}); len(got) != 0 {
		t.Fatalf("claimed %+v before the lease ended", got)
	}
	w.pass(time.Millisecond)
	second := w.claimOne()
	if second.ID != id || second.Attempts != 2 || second.Token <= first.Token || string(second.Reason) != "lease ended: w1" {
		t.Fatalf("claimed %+v after the lease ended", second)
	}
	if err := w.ack(first); !errors.Is(err, broker.ErrStale) {
		t.Fatalf("the first claim's ack gave %v", err)
	}
	if err := w.ack(second); err != nil {
		t.Fatal(err)
	}
	if err := w.ack(second); !errors.Is(err, broker.ErrUnknownQueue) { // it is empty, and has no settings
		t.Fatalf("a second ack gave %v", err)
	}
	w.restart()
	if got := w.stored(); got != "0 packets, 0 delivery states" {
		t.Fatalf("the store holds %s", got)
	}
}

func TestALeaseThatEndedWhileTheServerWasDownEndsAtStart(t *testing.T) {
	w := newWork(t)
	w.add(broker.PushRequest{Payload: []byte("job")})
	first := w.claimOne()
	w.now.Add(30_000)
	w.restart()
	if err := w.ack(first); !errors.Is(err, broker.ErrStale) {
		t.Fatalf("ack gave %v", err)
	}
	again := w.claimOne()
	if again.Attempts != 2 || again.Token <= first.Token || string(again.Reason) != "lease ended: w1" {
		t.Fatalf("claimed %+v", again)
	}
	s := broker.DefaultSettings()
	s.MaxAttempts = 2
	w.set(s)
	w.now.Add(30_000)
	w.restart()
	if got := w.claim("q", broker.ClaimRequest{}); len(got) != 0 {
		t.Fatalf("claimed %+v, which was tried too often", got)
	}
}

func TestAJumpOfTheWallClockEndsNoLease(t *testing.T) {
	w := newWork(t)
	w.add(broker.PushRequest{Payload: []byte("job")})
	j := w.claimOne()
	w.now.Add(3_600_000)
	if got := w.claim("q", broker.ClaimRequest{}); len(got) != 0 {
		t.Fatalf("claimed %+v", got)
	}
	var end int64
	w.do(func(tx *broker.Tx) (err error) {
		end, err = tx.Extend([]byte("q"), broker.Receipt{ID: j.ID, Token: j.Token}, 60_000)
		return err
	})
	if end != w.now.Load()+60_000 {
		t.Fatalf("the lease ends at %d", end)
	}
	w.now.Add(-7_200_000)
	w.steady.Add(60_000)
	if got := w.claimOne(); got.Attempts != 2 {
		t.Fatalf("claimed %+v when the lease had ended on the steady clock", got)
	}
}

func TestAPacketThatFailsTooOftenDies(t *testing.T) {
	w := newWork(t)
	s := broker.DefaultSettings()
	s.MaxAttempts, s.BackoffMin, s.BackoffMax = 3, 1000, 1500
	w.set(s)
	w.add(broker.PushRequest{Payload: []byte("poison")})
	for attempt, wait := range []time.Duration{1100, 1650, 0} {
		j := w.claimOne()
		if j.Attempts != attempt+1 {
			t.Fatalf("attempt %d is counted as %d", attempt+1, j.Attempts)
		}
		state, err := w.nack(j, broker.Nack{Delay: -1, Reason: []byte("boom")})
		if err != nil {
			t.Fatal(err)
		}
		if want := map[bool]broker.State{true: broker.Delayed, false: broker.Dead}[wait > 0]; state != want {
			t.Fatalf("after attempt %d the packet is %v", j.Attempts, state)
		}
		w.restart()
		if got := w.claim("q", broker.ClaimRequest{}); len(got) != 0 {
			t.Fatalf("claimed %+v before its time", got)
		}
		w.pass(wait * time.Millisecond)
	}
	w.pass(time.Hour)
	if got := w.claim("q", broker.ClaimRequest{}); len(got) != 0 {
		t.Fatalf("claimed a dead packet: %+v", got)
	}
}

func TestAPacketThatExpiredWhileItWasClaimedGoesWhenTheClaimEnds(t *testing.T) {
	for name, c := range map[string]struct {
		letter string
		end    func(w *work, j job)
	}{
		"returned": {"", func(w *work, j job) { w.nacked(j, broker.Nack{}, 0) }},
		"delayed":  {"", func(w *work, j job) { w.nacked(j, broker.Nack{Delay: 5000}, 0) }},
		"dead":     {"q", func(w *work, j job) { w.nacked(j, broker.Nack{Dead: true}, 0) }},
		"harvested": {"", func(w *work, _ job) {
			if n := w.bulk(broker.Harvest([]byte("work"), 0, "")); n != 1 {
				w.t.Fatalf("harvested %d", n)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWork(t)
			s := broker.DefaultSettings()
			s.DeadLetter = []byte(c.letter)
			w.do(func(tx *broker.Tx) error { return tx.SetSettings([]byte("work"), s) })
			w.add(broker.PushRequest{Queue: []byte("work"), TTL: time.Second, Payload: []byte("late")})
			j := w.claim("work", broker.ClaimRequest{})[0]
			_, waiter := w.wait("", 0, "work", "q")
			w.pass(time.Second)
			c.end(w, j)
			w.barrier()
			wantGot(t, "the waiter", waiter, "[]")
			w.do(func(tx *broker.Tx) error {
				if q, _, err := tx.QueueStats([]byte("work")); q.Expired != 1 || q.Counters.Dead != 0 || err != nil {
					t.Errorf("the counters are %+v, %v", q.Counters, err)
				}
				return nil
			})
			if got := w.stored(); got != "0 packets, 0 delivery states" {
				t.Fatalf("the store holds %s", got)
			}
		})
	}
}

func TestADeadPacketMovesToTheDeadLetterQueueAndKeepsItsIdentity(t *testing.T) {
	for name, end := range map[string]func(w *work, j job){
		"nack":  func(w *work, j job) { _, _ = w.nack(j, broker.Nack{Dead: true, Reason: []byte("bad")}) },
		"lease": func(w *work, _ job) { w.pass(time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWork(t)
			s := broker.DefaultSettings()
			s.MaxAttempts, s.DeadLetter = 1, []byte("graveyard")
			w.set(s)
			id := w.add(broker.PushRequest{Payload: bytes.Repeat([]byte("x"), 5000), Priority: 7, Key: []byte("k")})
			w.barrier()
			w.restart() // its record is on disk only
			end(w, w.claimOne())
			w.restart()
			got := w.claim("graveyard", broker.ClaimRequest{})
			if len(got) != 1 || got[0].ID != id || got[0].Priority != 7 || got[0].Attempts != 1 || got[0].Origin != "q" || len(got[0].payload) != 5000 {
				t.Fatalf("the dead-letter queue gave %+v", got)
			}
			want := map[string]string{"nack": "dead at attempt 1: bad", "lease": "dead at attempt 1: lease ended: w1"}[name]
			if string(got[0].Reason) != want {
				t.Fatalf("its reason is %q, want %q", got[0].Reason, want)
			}
			if got := w.stored(); got != "1 packets, 1 delivery states" {
				t.Fatalf("the store holds %s", got)
			}
		})
	}
}

func TestWhatAFlushHasDroppedDoesNotDieIntoADeadLetterQueue(t *testing.T) {
	w := newWork(t)
	defer w.close()
	s := broker.DefaultSettings()
	s.MaxAttempts, s.DeadLetter, s.Lease = 1, []byte("graveyard"), 1000
	w.set(s)
	w.add(broker.PushRequest{Priority: 1, Payload: []byte("x")})
	w.claimOne()
	w.barrier()
	w.b.hold(func() { w.together(func(tx *broker.Tx) error { return tx.Flush(true) }) })
	w.pass(time.Hour) // before the queue is retired
	if kind := w.typeOf("graveyard"); kind != broker.TypeNone {
		t.Errorf("the dead-letter queue is a %v", kind)
	}
	w.b.release()
	w.swept()
	if got := w.stored(); got != "0 packets, 0 delivery states" {
		t.Errorf("%s are left", got)
	}
}

func TestTheLargestPacketDiesIntoADeadLetterQueue(t *testing.T) {
	w := newWork(t)
	w.store.limits = content.Limits{MaxOps: 800, MaxBytes: 39000}
	w.restart()
	s := broker.DefaultSettings()
	s.MaxAttempts, s.DeadLetter = 1, []byte("graveyard")
	w.set(s)
	w.add(broker.PushRequest{Payload: bytes.Repeat([]byte("x"), 153_000)})
	w.claimOne()
	w.barrier()
	w.restart()
	w.pass(time.Minute)
	w.barrier()
	if got := w.list("graveyard", broker.Ready, 5); len(got) != 1 {
		t.Fatalf("%+v died", got)
	}
}

func TestAnUpdatePassesOverWhatIsDone(t *testing.T) {
	w := newWork(t)
	s := broker.DefaultSettings()
	s.Retain = 60_000
	w.set(s)
	for range 3 {
		if err := w.updatePriority("q", "7", 9); err != nil {
			t.Fatal(err)
		}
		got := w.claimOne()
		if got.Priority != 9 {
			t.Fatalf("the item has priority %d", got.Priority)
		}
		if err := w.ack(got); err != nil {
			t.Fatal(err)
		}
	}
	w.do(func(tx *broker.Tx) error {
		if priority, ok, err := tx.PriorityOf([]byte("q"), []byte("7")); ok || err != nil {
			t.Errorf("an item that is done has priority %d, %v", priority, err)
		}
		return nil
	})
}

func TestAPacketThatIsRetainedStaysUntilItsTimeHasPassed(t *testing.T) {
	w := newWork(t)
	s := broker.DefaultSettings()
	s.Retain = 60_000
	w.set(s)
	w.add(broker.PushRequest{Payload: []byte("job")})
	w.barrier()
	w.restart()
	if err := w.ack(w.claimOne()); err != nil {
		t.Fatal(err)
	}
	if got := w.stored(); got != "1 packets, 1 delivery states" {
		t.Fatalf("the store holds %s", got)
	}
	w.restart()
	if got := w.claim("q", broker.ClaimRequest{}); len(got) != 0 {
		t.Fatalf("claimed a packet that is done: %+v", got)
	}
	w.pass(time.Minute)
	w.claim("q", broker.ClaimRequest{})
	if got := w.stored(); got != "0 packets, 0 delivery states" {
		t.Fatalf("when its time has passed, the store holds %s", got)
	}
}

func TestAPacketThatExpiredWhileTheServerWasDownGoesWithItsDeliveryState(t *testing.T) {
	// If only the delivery state went, a clock that is set back would make the packet ready again.
	w := newWork(t)
	s := broker.DefaultSettings()
	s.Retain = 60_000
	w.set(s)
	w.add(broker.PushRequest{Payload: bytes.Repeat([]byte("job"), 1000)})
	if err := w.ack(w.claimOne()); err != nil {
		t.Fatal(err)
	}
	w.close()
	w.now.Add(time.Minute.Milliseconds())
	w.restarted()
	w.add(broker.PushRequest{Queue: []byte("other")})
	if got := w.stored(); got != "1 packets, 0 delivery states" {
		t.Fatalf("the store holds %s", got)
	}
}

func TestAClaimThatIsAcknowledgedInTheSameBatchTouchesNoDisk(t *testing.T) {
	w := newWork(t)
	w.add(broker.PushRequest{Queue: []byte("other")})
	w.barrier()
	applied, written := w.store.applied, w.store.written
	w.do(func(tx *broker.Tx) error {
		id, err := tx.Push(broker.PushRequest{Queue: []byte("q"), Priority: 1, Payload: []byte("job")})
		if err != nil {
			return err
		}
		if err := reply(w.c)(tx.Claim([]byte("q"), broker.ClaimRequest{Consumer: []byte("w")})); err != nil {
			return err
		}
		_, err = tx.Ack([]byte("q"), []broker.Receipt{{ID: id, Token: int64(id) + 1}}) // the next number of all
		return err
	})
	w.barrier()
	if w.store.written != written || len(w.store.states) > 0 {
		t.Fatalf("%d batches and %d packets were written, %d delivery states are stored",
			w.store.applied-applied, w.store.written-written, len(w.store.states))
	}
}

func TestNoTokenIsGivenTwiceWhenAServerIsKilled(t *testing.T) {
	w := newWork(t)
	w.add(broker.PushRequest{}) // so that the queue is there
	w.barrier()
	first := int64(0)
	w.do(func(tx *broker.Tx) error {
		id, err := tx.Push(broker.PushRequest{Queue: []byte("q"), Priority: 1})
		if err != nil {
			return err
		}
		if err := reply(w.c)(tx.Claim([]byte("q"), broker.ClaimRequest{})); err != nil {
			return err
		}
		first = int64(id) + 1
		_, err = tx.Ack([]byte("q"), []broker.Receipt{{ID: id, Token: first}})
		return err
	})
	w.barrier() // the client has its token, and nothing of the packet is left to write
	w.killed(func(*broker.Tx) {})
	w.restarted()
	w.add(broker.PushRequest{})
	if got := w.claimOne().Token; got <= first {
		t.Fatalf("after token %d a claim got %d", first, got)
	}
}

func TestAPacketThatMovesAsAListElementKeepsItsIdentity(t *testing.T) {
	for name, payload := range map[string]string{"small": "job", "large": string(bytes.Repeat([]byte("x"), 5000))} {
		t.Run(name, func(t *testing.T) {
			w := newWork(t)
			id := w.add(broker.PushRequest{Payload: []byte(payload)})
			w.barrier()
			for _, to := range []string{"b", "q"} {
				w.restart()
				from := map[string]string{"b": "q", "q": "b"}[to]
				w.do(func(tx *broker.Tx) error {
					return tx.Atomic(func() error {
						_, err := replyMoved(w.c)(tx.MoveEnd([]byte(from), broker.Oldest, []byte(to), broker.Newest))
						return err
					})
				})
				w.barrier()
			}
			w.restart()
			if j := w.claimOne(); j.ID != id || j.payload != payload {
				t.Fatalf("claimed %v, want %v", j.ID, id)
			}
		})
	}
}

func TestARedriveReachesEveryPacketThatDied(t *testing.T) {
	w := newWork(t)
	s := broker.DefaultSettings()
	s.DeadLetter = []byte("graveyard")
	w.set(s)
	for range 2 {
		w.add(broker.PushRequest{})
		_, _ = w.nack(w.claimOne(), broker.Nack{Dead: true})
	}
	w.add(broker.PushRequest{Queue: []byte("graveyard"), Priority: 1})
	own := w.claim("graveyard", broker.ClaimRequest{})[0]
	w.do(func(tx *broker.Tx) error {
		_, err := tx.Nack([]byte("graveyard"), broker.Receipt{ID: own.ID, Token: own.Token}, broker.Nack{Dead: true})
		return err
	})
	redrive, more := broker.Redrive([]byte("graveyard"), 0, nil), true
	for more {
		w.do(func(tx *broker.Tx) (err error) {
			more, err = redrive.Slice(tx)
			return err
		})
	}
	if redrive.Done != 3 {
		t.Fatalf("redrove %d packets, want 3", redrive.Done)
	}
}

func TestCountersAreExactAfterACleanStopAndSavedEverySecond(t *testing.T) {
	w := newWork(t)
	for range 3 {
		w.add(broker.PushRequest{Payload: []byte("job")})
	}
	if err := w.ack(w.claimOne()); err != nil {
		t.Fatal(err)
	}
	w.restart()
	w.barrier()
	saved := func() broker.Counters {
		for _, q := range w.store.queues {
			return q.Counters
		}
		return broker.Counters{}
	}
	if got := saved(); got.Pushed != 3 || got.Acked != 1 {
		t.Fatalf("after a stop the counters are %+v", got)
	}
	w.pop(w.c, "q")
	w.pass(time.Second)
	w.pop(w.c, "nothing")
	w.comesTrue(func() bool { return saved().Popped == 1 })
}

func TestAStartWithAClockThatIsBehindMakesNoLeaseLonger(t *testing.T) {
	w := newWork(t)
	w.add(broker.PushRequest{})
	w.claimOne()
	w.barrier()
	w.now.Add(-1_000_000)
	w.restart()
	w.pass(29_999 * time.Millisecond)
	if got := w.claim("q", broker.ClaimRequest{}); len(got) != 0 {
		t.Fatalf("claimed %+v before the lease ended", got)
	}
	w.pass(time.Millisecond)
	if got := w.claimOne(); got.Attempts != 2 {
		t.Fatalf("claimed %+v", got)
	}
}

func TestAWaiterGetsAPacketHoweverItBecomesReady(t *testing.T) {
	q, other := []byte("q"), []byte("other")
	bury := func(w *work, j job) { _, _ = w.nack(j, broker.Nack{Dead: true}) }
	for name, c := range map[string]struct {
		before, then func(w *work, j job)
		queue        string
	}{
		"nack":      {then: func(w *work, j job) { _, _ = w.nack(j, broker.Nack{}) }},
		"lease end": {then: func(w *work, _ job) { w.pass(time.Minute) }},
		"delay": {
			before: func(w *work, j job) { _, _ = w.nack(j, broker.Nack{Delay: 1000}) },
			then:   func(w *work, _ job) { w.pass(time.Minute) },
		},
		"harvest": {then: func(w *work, _ job) { w.bulk(broker.Harvest(q, 0, "")) }},
		"redrive": {before: bury, then: func(w *work, _ job) { w.bulk(broker.Redrive(q, 0, nil)) }},
		"move": {queue: "other", then: func(w *work, j job) {
			_, _ = w.nack(j, broker.Nack{})
			w.do(func(tx *broker.Tx) error {
				_, err := tx.MovePackets(q, []broker.ID{j.ID}, other)
				return err
			})
		}},
		"priority": {
			before: func(w *work, j job) {
				w.do(func(tx *broker.Tx) error {
					_, err := tx.SetPriority(q, j.ID, 0)
					return err
				})
				_, _ = w.nack(j, broker.Nack{})
			},
			then: func(w *work, j job) {
				w.do(func(tx *broker.Tx) error {
					_, err := tx.SetPriority(q, j.ID, 1)
					return err
				})
			},
		},
		"death": {queue: "other", then: bury, before: func(w *work, _ job) {
			s := broker.DefaultSettings()
			s.DeadLetter = other
			w.set(s)
		}},
		"rename": {queue: "other", then: func(w *work, j job) {
			_, _ = w.nack(j, broker.Nack{})
			w.do(func(tx *broker.Tx) error {
				tx.RenameQueue(q, other)
				return nil
			})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWork(t)
			w.add(broker.PushRequest{Payload: []byte("job"), Key: []byte("k")})
			j := w.claimOne()
			if c.before != nil {
				c.before(w, j)
			}
			if c.queue == "" {
				c.queue = "q"
			}
			_, got := w.wait("", 0, "nothing", c.queue)
			c.then(w, j)
			w.barrier()
			wantGot(t, "the waiter", got, fmt.Sprintf("[[from %s] [job]]", c.queue))
		})
	}
}

func TestCallsGoOnWhileManyLeasesEnd(t *testing.T) {
	w := newWork(t)
	w.store.limits = content.Limits{MaxOps: 400, MaxBytes: 262144}
	w.restart()
	const n = 1000 // far more than end in one batch
	for range n {
		w.add(broker.PushRequest{})
	}
	for range n / 100 {
		w.claim("q", broker.ClaimRequest{Selection: broker.Selection{Count: 100}})
	}
	w.barrier()
	w.b.hold(func() { w.add(broker.PushRequest{Queue: []byte("other")}) })
	w.pass(time.Hour)
	err := w.b.Do(func(tx *broker.Tx) error {
		return pushError(tx.Push(broker.PushRequest{Queue: []byte("other"), Priority: 1}))
	})
	if err != nil {
		t.Errorf("a push while leases end: %v", err)
	}
	w.b.release()
	w.comesTrue(func() bool {
		var s broker.QueueStats
		w.do(func(tx *broker.Tx) (err error) {
			s, _, err = tx.QueueStats([]byte("q"))
			return err
		})
		return s.Ready == n
	})
}

func TestAReasonOnItsWayToTheDiskIsRead(t *testing.T) {
	w := newWork(t)
	defer w.close()
	w.add(broker.PushRequest{})
	j := w.claimOne()
	w.b.hold(func() { w.nacked(j, broker.Nack{Reason: []byte("bad")}, broker.Ready) })
	if got, ok := w.show("q", j.ID); !ok || string(got.Reason) != "bad" {
		t.Errorf("it is shown as %+v", got)
	}
}
