package broker_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
)

func pauseIn(s *broker.Settings)  { s.PauseIn = true }
func pauseOut(s *broker.Settings) { s.PauseOut = true }
func noPause(s *broker.Settings)  { s.PauseIn, s.PauseOut = false, false }

// holds is how many packets queues have by their state.
func (w *work) holds(queues ...string) (text string) {
	w.do(func(tx *broker.Tx) error {
		text = ""
		for _, q := range queues {
			s, _, err := tx.QueueStats([]byte(q))
			if err != nil {
				return err
			}
			text += fmt.Sprintf("%s: %d %d %d %d %d; ", q, s.Ready, s.Delayed, s.Claimed, s.Dead, s.Done)
		}
		return nil
	})
	return text
}

// comings are the ways in which packets come to q: a push, or a move from the queues "dead" and
// "from".
func (w *work) comings() map[string]func(tx *broker.Tx) error {
	w.change("dead", func(s *broker.Settings) { s.MaxAttempts = 1 })
	died := w.add(broker.PushRequest{Queue: []byte("dead")})
	w.nacked(w.claim("dead", broker.ClaimRequest{})[0], broker.Nack{}, broker.Dead)
	moved := w.add(broker.PushRequest{Queue: []byte("from")})
	q := []byte("q")
	return map[string]func(tx *broker.Tx) error{
		"a push":        func(tx *broker.Tx) error { return pushError(tx.Push(broker.PushRequest{Queue: q, Priority: 1})) },
		"a list's push": func(tx *broker.Tx) error { return pushEnd(tx, "q", broker.Newest, "a") },
		"a list's insertion": func(tx *broker.Tx) error {
			_, err := tx.InsertAt(q, 0, []byte("a"))
			return err
		},
		"a list's move": func(tx *broker.Tx) error {
			_, err := replyMoved(w.c)(tx.MoveEnd([]byte("from"), broker.Oldest, q, broker.Newest))
			return err
		},
		"a new key": func(tx *broker.Tx) error {
			return tx.UpdatePriority(broker.UpdatePriorityRequest{
				Queue: q, Key: []byte("new"), To: func(uint32, bool) uint32 { return 1 },
			})
		},
		"a move by id": func(tx *broker.Tx) error {
			_, err := tx.MovePackets([]byte("from"), []broker.ID{moved}, q)
			return err
		},
		"a move of a dead packet": func(tx *broker.Tx) error {
			_, err := tx.MovePackets([]byte("dead"), []broker.ID{died}, q)
			return err
		},
		"a redrive": func(tx *broker.Tx) error {
			_, err := broker.Redrive([]byte("dead"), 0, q).Slice(tx)
			return err
		},
	}
}

// refuses makes sure that q refuses all that comes, and that nothing changes.
func (w *work) refuses(want error) {
	w.t.Helper()
	comings := w.comings()
	before := w.holds("q", "from", "dead")
	for name, come := range comings {
		var err error
		if name == "a redrive" {
			err = w.b.Do(come)
		} else {
			w.together(func(tx *broker.Tx) error { err = come(tx); return nil })
		}
		if !errors.Is(err, want) {
			w.t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
	if after := w.holds("q", "from", "dead"); after != before {
		w.t.Errorf("refused calls left %s, want %s", after, before)
	}
}

func TestAQueueThatIsPausedInRefusesWhatComes(t *testing.T) {
	w := newWork(t)
	w.add(broker.PushRequest{Payload: []byte("x"), Key: []byte("k")})
	w.change("q", pauseIn)
	w.refuses(broker.ErrPaused)
	w.restart()
	w.refuses(broker.ErrPaused)
	w.nacked(w.claimOne(), broker.Nack{}, broker.Ready) // that one was in
	w.together(func(tx *broker.Tx) error {
		_, err := replyMoved(w.c)(tx.MoveEnd([]byte("q"), broker.Oldest, []byte("q"), broker.Newest))
		return err
	})
	if err := w.updatePriority("q", "k", 7); err != nil {
		t.Errorf("a packet that is in cannot change its priority: %v", err)
	}
	w.change("q", noPause)
	w.add(broker.PushRequest{})
	if got := w.holds("q"); got != "q: 2 0 0 0 0; " {
		t.Errorf("after the pause there are %s", got)
	}
}

// takes are the ways in which packets are taken from q.
func (w *work) takes() map[string]func(tx *broker.Tx) error {
	q := []byte("q")
	return map[string]func(tx *broker.Tx) error{
		"a pop":            func(tx *broker.Tx) error { return reply(w.c)(tx.Pop(q, broker.Selection{})) },
		"a pop of a group": func(tx *broker.Tx) error { return reply(w.c)(tx.Pop(q, groups)) },
		"a claim":          func(tx *broker.Tx) error { return reply(w.c)(tx.Claim(q, broker.ClaimRequest{})) },
		"a list's move": func(tx *broker.Tx) error {
			_, err := replyMoved(w.c)(tx.MoveEnd(q, broker.Oldest, []byte("to"), broker.Newest))
			return err
		},
		"a pop of a key": func(tx *broker.Tx) error {
			_, _, err := tx.PopKey(q, broker.Oldest, nil, nil)
			return err
		},
	}
}

func TestAQueueThatIsPausedOutGivesNothing(t *testing.T) {
	w := newWork(t)
	for range 20 {
		w.add(broker.PushRequest{Key: []byte("k"), Payload: []byte("x")})
	}
	w.change("q", pauseOut)
	w.restart()
	for name, take := range w.takes() {
		for _, together := range []func(fn func(tx *broker.Tx) error){w.do, w.together} {
			together(take)
			if got := w.holds("q", "to"); got != "q: 20 0 0 0 0; to: 0 0 0 0 0; " {
				t.Fatalf("%s left %s", name, got)
			}
		}
	}
	w.do(func(tx *broker.Tx) error {
		if n, err := tx.Takeable([]byte("q"), broker.Selection{}); n != 0 || err != nil {
			t.Errorf("a take may have %d elements (%v)", n, err)
		}
		return nil
	})
	w.change("q", noPause)
	for name, take := range w.takes() {
		before := w.holds("q")
		if w.together(take); w.holds("q") == before {
			t.Errorf("%s took nothing after the pause", name)
		}
		w.add(broker.PushRequest{Key: []byte("k")})
	}
}

func TestReadsSeeWhatAPausedQueueHas(t *testing.T) {
	w := newWork(t)
	id := w.add(broker.PushRequest{Key: []byte("k"), Payload: []byte("x")})
	w.change("q", pauseOut)
	if got := w.replied(func(tx *broker.Tx) error { return reply(w.c)(tx.Peek([]byte("q"), 10)) }); len(got) != 1 {
		t.Errorf("a peek saw %d packets, want 1", len(got))
	}
	if got := w.list("q", broker.Ready, 10); len(got) != 1 {
		t.Errorf("%d packets are listed, want 1", len(got))
	}
	if got, _ := w.show("q", id); !got.Paused {
		t.Error("the packet does not say that its queue is paused")
	}
	w.wantList("q", "x")
	w.do(func(tx *broker.Tx) error {
		if key, ok, err := tx.PeekKey([]byte("q"), broker.Oldest, nil); string(key) != "k" || !ok || err != nil {
			t.Errorf("the next key is %q (%v, %v), want k", key, ok, err)
		}
		return nil
	})
}

func TestWhoWaitsForAPausedQueueIsServedOnceThePauseEnds(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	h.change("q", pauseOut)
	_, waiter := h.wait("", 0, "q")
	subscriber := &inbox{}
	c := h.b.Attach(subscriber, groups)
	h.subscribe(c, 1, "q", "other")
	for _, p := range []string{"1", "2", "3"} {
		h.push("q", 1, 0, p, p)
	}
	h.push("other", 100, 0, "x", "x")
	h.do(func(tx *broker.Tx) error { return tx.Ready(c, 1) })
	h.barrier()
	wantGot(t, "the waiter", waiter, "[]")
	wantGot(t, "the subscriber", subscriber, "[[x]]")
	h.together(func(tx *broker.Tx) error { return tryChange(tx, "q", noPause) })
	h.barrier()
	wantGot(t, "the waiter", waiter, "[[from q] [1]]")
	wantGot(t, "the subscriber", subscriber, "[[x] [3]]")
}

// closeQueue closes a queue, and says whether it was open.
func (h *harness) closeQueue(queue string) (closed bool) {
	h.t.Helper()
	h.do(func(tx *broker.Tx) (err error) {
		return tx.Atomic(func() error {
			closed, err = tx.Close([]byte(queue))
			return err
		})
	})
	return closed
}

func TestAClosedQueueRefusesWhatComesForEver(t *testing.T) {
	w := newWork(t)
	if !w.closeQueue("q") || w.closeQueue("q") {
		t.Error("a queue is not closed by the first call, or by the second one too")
	}
	w.refuses(broker.ErrQueueClosed)
	w.restart()
	w.refuses(broker.ErrQueueClosed)
	if w.closeQueue("q") {
		t.Error("a queue that was closed before the restart was closed once more")
	}
	w.do(func(tx *broker.Tx) error { _, err := tx.Delete([]byte("q")); return err })
	w.add(broker.PushRequest{})
}

func TestWhatDiesStaysWhereTheDeadLetterQueueTakesNothingIn(t *testing.T) {
	w := newWork(t)
	w.change("q", func(s *broker.Settings) { s.MaxAttempts, s.DeadLetter = 1, []byte("grave") })
	w.change("grave", pauseIn)
	w.add(broker.PushRequest{})
	w.nacked(w.claimOne(), broker.Nack{}, broker.Dead)
	w.change("grave", noPause)
	w.closeQueue("grave")
	w.add(broker.PushRequest{})
	w.nacked(w.claimOne(), broker.Nack{}, broker.Dead)
	if got := w.holds("q", "grave"); got != "q: 0 0 0 2 0; grave: 0 0 0 0 0; " {
		t.Errorf("there are %s", got)
	}
}

func TestWaitsForAClosedQueueEndWithItsLastPacket(t *testing.T) {
	q, later := []byte("q"), broker.PushRequest{Delay: 1 << 30}
	for name, packet := range map[string]struct {
		push broker.PushRequest
		end  func(w *work, j job) // of the packet, which is claimed if it is not delayed
	}{
		"acknowledged": {broker.PushRequest{}, func(w *work, j job) { wantDone(t, "ack", w.ack(j)) }},
		"acknowledged and retained": {broker.PushRequest{}, func(w *work, j job) {
			w.change("q", func(s *broker.Settings) { s.Retain = 1000 })
			wantDone(t, "ack", w.ack(j))
		}},
		"dead": {broker.PushRequest{}, func(w *work, j job) { w.nacked(j, broker.Nack{Dead: true}, broker.Dead) }},
		"dead as its lease ended": {broker.PushRequest{}, func(w *work, _ job) {
			w.change("q", func(s *broker.Settings) { s.MaxAttempts = 1 })
			w.pass(time.Hour)
		}},
		"moved as it died": {broker.PushRequest{}, func(w *work, j job) {
			w.change("q", func(s *broker.Settings) { s.DeadLetter = []byte("grave") })
			w.nacked(j, broker.Nack{Dead: true}, broker.Dead)
		}},
		"expired": {broker.PushRequest{Delay: 1 << 30, TTL: time.Second}, func(w *work, _ job) { w.pass(time.Second) }},
		"deleted": {later, func(w *work, j job) {
			w.do(func(tx *broker.Tx) error { _, err := tx.DeletePackets(q, []broker.ID{j.ID}); return err })
		}},
		"moved": {later, func(w *work, j job) {
			w.do(func(tx *broker.Tx) error { _, err := tx.MovePackets(q, []broker.ID{j.ID}, []byte("other")); return err })
		}},
		"purged": {later, func(w *work, _ job) { w.bulk(broker.Purge(q, 0)) }},
	} {
		w := newWork(t)
		j := job{Detail: broker.Detail{ID: w.add(packet.push)}}
		w.closeQueue("q")
		if packet.push.Delay == 0 {
			j = w.claimOne()
		}
		_, r := w.wait("", 0, "q")
		w.barrier()
		wantGot(t, name+": before that a waiter", r, "[]")
		packet.end(w, j)
		w.barrier()
		wantGot(t, name+": a waiter", r, "[[nothing will come]]")
		if err := w.b.Do(func(tx *broker.Tx) error {
			return wait(tx, w.c, &blocked{c: w.c, t: t}, broker.Selection{}, 0, q)
		}); !errors.Is(err, broker.ErrQueueClosed) {
			t.Errorf("%s: a wait after that: %v, want ErrQueueClosed", name, err)
		}
	}
}

func TestWaitsEndWhereAnEmptyQueueIsClosedOrTrimmed(t *testing.T) {
	w := newWork(t)
	_, closed := w.wait("", 0, "empty")
	w.closeQueue("empty")
	w.pushEnd("trimmed", broker.Newest, "a")
	w.closeQueue("trimmed")
	w.change("trimmed", pauseOut)
	_, trimmed := w.wait("", 0, "trimmed")
	w.together(func(tx *broker.Tx) error { return tx.Trim([]byte("trimmed"), 0, 0) })
	w.barrier()
	wantGot(t, "who waits for the closed one", closed, "[[nothing will come]]")
	wantGot(t, "who waits for the trimmed one", trimmed, "[[nothing will come]]")
}

func TestAWaitForSeveralQueuesEndsWhenAllAreDrained(t *testing.T) {
	w := newWork(t)
	_, several := w.wait("", 0, "q", "other")
	_, first := w.wait("", 0, "q")
	w.closeQueue("q")
	w.barrier()
	wantGot(t, "who waits for q", first, "[[nothing will come]]")
	w.add(broker.PushRequest{Queue: []byte("other"), Delay: 1 << 30})
	w.closeQueue("other")
	w.barrier()
	wantGot(t, "who waits for both", several, "[]")
	w.bulk(broker.Purge([]byte("other"), 0))
	w.barrier()
	wantGot(t, "who waits for both", several, "[[nothing will come]]")
}

func TestAPacketThatComesBackToAClosedQueueIsDelivered(t *testing.T) {
	w := newWork(t)
	w.add(broker.PushRequest{Payload: []byte("x")})
	j := w.claimOne()
	w.closeQueue("q")
	_, first := w.wait("", 0, "q")
	_, second := w.wait("", 0, "q")
	subscriber := &inbox{}
	w.subscribe(w.b.Attach(subscriber, groups), 1, "q")
	w.nacked(j, broker.Nack{}, broker.Ready)
	w.barrier()
	wantGot(t, "the first", first, "[[from q] [x]]")
	wantGot(t, "the second", second, "[[nothing will come]]")
	wantGot(t, "the subscriber", subscriber, "[]")
}

// pusher is a push of a test that waits, and what it gave.
type pusher struct {
	c   *broker.Conn
	err error
}

// waitPush makes a new consumer wait with a push.
func (h *harness) waitPush(queue string) (*pusher, *inbox) {
	h.t.Helper()
	r := &inbox{}
	w := &pusher{c: h.b.Attach(r, broker.Selection{})}
	h.do(func(tx *broker.Tx) error {
		return w.wait(tx, broker.PushRequest{Queue: []byte(queue), Priority: 1, Payload: []byte("late")})
	})
	return w, r
}

func (w *pusher) wait(tx *broker.Tx, r broker.PushRequest) error {
	return waitPush(tx, w.c, r.Queue, 0, func(tx *broker.Tx) error { return pushError(tx.Push(r)) }, func(err error, _ bool) {
		w.err = err
		boxOf(w.c).say("ready")
	})
}

func TestAPushThatWaitsIsMadeOnceThePauseEnds(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	h.change("q", pauseIn)
	w, r := h.waitPush("q")
	second, _ := h.waitPush("q")
	h.change("q", exclusiveProducer)
	h.barrier()
	wantGot(t, "who waits", r, "[]")
	h.change("q", noPause)
	h.barrier()
	wantGot(t, "who waits", r, "[[ready]]")
	wantDone(t, "the push", w.err)
	wantInUse(t, "the push of the second, which is another client", second.err, "only producer")
	wantInUse(t, "a push of another", h.caller("3", "").push("q"), "only producer")
	h.wantList("q", "late")
}

func TestAPushThatWaitsEndsWhenItsQueueIsClosed(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	h.change("q", func(s *broker.Settings) { s.Bound = 1 })
	h.push("q", 1, 0, "a", "a")
	full, r := h.waitPush("q")
	h.closeQueue("q")
	h.barrier()
	wantGot(t, "who waits", r, "[[ready]]")
	if !errors.Is(full.err, broker.ErrQueueClosed) {
		t.Errorf("the push: %v, want ErrQueueClosed", full.err)
	}
	h.wantList("q", "a")
}

func TestAPushFitsOnceTheOneBeforeItGivesUp(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	h.change("q", func(s *broker.Settings) { s.Bound, s.BoundBytes = 0, 5 })
	h.push("q", 1, 0, "", "a")
	large, small := &pusher{c: h.b.Attach(&inbox{}, groups)}, &inbox{}
	h.do(func(tx *broker.Tx) error {
		return large.wait(tx, broker.PushRequest{Queue: []byte("q"), Priority: 1, Payload: []byte("large")})
	})
	second := &pusher{c: h.b.Attach(small, groups)}
	h.do(func(tx *broker.Tx) error {
		return second.wait(tx, broker.PushRequest{Queue: []byte("q"), Priority: 1, Payload: []byte("b")})
	})
	wantGot(t, "the second", small, "[]")
	h.do(func(tx *broker.Tx) error { tx.Detach(large.c); return nil })
	wantGot(t, "the second", small, "[[ready]]")
	wantDone(t, "its push", second.err)
}
