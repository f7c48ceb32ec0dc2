package broker_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/broker"
)

// set gives a queue the default settings with a change.
func (h *harness) change(queue string, change func(s *broker.Settings)) {
	h.t.Helper()
	h.do(func(tx *broker.Tx) error { return tryChange(tx, queue, change) })
}

func tryChange(tx *broker.Tx, queue string, change func(s *broker.Settings)) error {
	s, _, err := tx.Settings([]byte(queue))
	if err != nil {
		return err
	}
	change(&s)
	return tx.SetSettings([]byte(queue), s)
}

func exclusiveProducer(s *broker.Settings) { s.ExclusiveProducer = true }
func exclusiveConsumer(s *broker.Settings) { s.ExclusiveConsumer = true }

// caller is a connection of a test.
type caller struct {
	h *harness
	c *broker.Conn
	r *inbox
}

func (h *harness) caller(address, name string) caller {
	r := &inbox{address: address}
	c := h.b.Attach(r, groups)
	h.do(func(tx *broker.Tx) error { tx.SetName(c, name); return nil })
	return caller{h, c, r}
}

// try makes a call as the connection.
func (k caller) try(fn func(tx *broker.Tx) error) error {
	return k.h.b.Do(func(tx *broker.Tx) error {
		tx.As(k.c)
		return fn(tx)
	})
}

func (k caller) push(queue string) error {
	return k.try(func(tx *broker.Tx) error {
		return pushError(tx.Push(broker.PushRequest{Queue: []byte(queue), Priority: 1, Payload: []byte("a")}))
	})
}

func (k caller) pop(queue string) error {
	return k.try(func(tx *broker.Tx) error { return reply(k.c)(tx.Pop([]byte(queue), broker.Selection{})) })
}

func (k caller) subscribe(queue string) error {
	return k.try(func(tx *broker.Tx) error {
		return errors.Join(tx.Subscribe(k.c, []byte(queue)), tx.Ready(k.c, 1))
	})
}

func (k caller) detach() {
	k.h.do(func(tx *broker.Tx) error { tx.Detach(k.c); return nil })
}

func (k caller) rename(name string) {
	k.h.do(func(tx *broker.Tx) error { tx.SetName(k.c, name); return nil })
}

func wantInUse(t *testing.T, what string, err error, holder string) {
	t.Helper()
	if !errors.Is(err, broker.ErrInUse) || !strings.Contains(err.Error(), holder) {
		t.Errorf("%s: %v, want that %s uses the queue", what, err, holder)
	}
}

func wantDone(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

func TestOnlyTheFirstClientPushesToAQueueWithAnExclusiveProducer(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	h.change("q", exclusiveProducer)
	first, other := h.caller("1.1.1.1:1", "maker"), h.caller("1.1.1.1:2", "")
	wantDone(t, "the first push", first.push("q"))
	wantInUse(t, "a push of another", other.push("q"), `"maker" is its only producer`)
	wantInUse(t, "a list's push of another", other.try(func(tx *broker.Tx) error {
		return tx.Atomic(func() error {
			_, err := tx.PushEnd([]byte("q"), broker.Newest, [][]byte{[]byte("x")})
			return err
		})
	}), `"maker"`)
	wantDone(t, "the second push", first.push("q"))
	wantDone(t, "a pop of another", other.pop("q"))
	wantDone(t, "a push of another to another queue", other.push("p"))
}

func TestWhoRedrivesDoesNotBecomeTheOnlyProducer(t *testing.T) {
	w := newWork(t)
	w.change("q", func(s *broker.Settings) { s.MaxAttempts, s.ExclusiveProducer = 1, true })
	w.add(broker.PushRequest{})
	w.nacked(w.claimOne(), broker.Nack{}, broker.Dead)
	operator, maker := w.caller("1.1.1.1:1", ""), w.caller("1.1.1.1:2", "maker")
	wantDone(t, "a redrive", operator.try(func(tx *broker.Tx) error {
		_, err := broker.Redrive([]byte("q"), 0, nil).Slice(tx)
		return err
	}))
	wantDone(t, "a push of another", maker.push("q"))
}

func TestEveryTakeOfAnotherIsRefusedWhereAConsumerIsExclusive(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	h.change("q", exclusiveConsumer)
	first, other := h.caller("1.1.1.1:1", ""), h.caller("1.1.1.1:2", "taker")
	wantDone(t, "a push", other.push("q"))
	wantDone(t, "the first pop", first.pop("q"))
	takes := map[string]func(tx *broker.Tx) error{
		"pop":       func(tx *broker.Tx) error { return reply(other.c)(tx.Pop([]byte("q"), broker.Selection{})) },
		"claim":     func(tx *broker.Tx) error { return reply(other.c)(tx.Claim([]byte("q"), broker.ClaimRequest{})) },
		"subscribe": func(tx *broker.Tx) error { return tx.Subscribe(other.c, []byte("q")) },
		"wait": func(tx *broker.Tx) error {
			return wait(tx, other.c, &blocked{c: other.c, t: t}, broker.Selection{}, 0, []byte("p"), []byte("q"))
		},
		"move": func(tx *broker.Tx) error {
			return tx.Atomic(func() error {
				_, err := replyMoved(other.c)(tx.MoveEnd([]byte("q"), broker.Oldest, []byte("p"), broker.Newest))
				return err
			})
		},
		"pop of a key": func(tx *broker.Tx) error {
			_, _, err := tx.PopKey([]byte("q"), broker.Oldest, nil, nil)
			return err
		},
		"look for something to take": func(tx *broker.Tx) error {
			_, err := tx.Takeable([]byte("q"), broker.Selection{})
			return err
		},
	}
	for name, take := range takes {
		wantInUse(t, name, other.try(take), `"1.1.1.1:1" is its only consumer`)
	}
	wantDone(t, "a push of another", other.push("q"))
	h.barrier()
	wantGot(t, "the other", other.r, "[]")
}

func TestAWaitThatOneQueueRefusesTakesNoRole(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	h.change("free", exclusiveConsumer)
	h.change("taken", exclusiveConsumer)
	one, two := h.caller("1", ""), h.caller("2", "")
	wantDone(t, "a push", one.push("taken"))
	wantDone(t, "a pop", one.pop("taken"))
	wantInUse(t, "a wait for both queues", two.try(func(tx *broker.Tx) error {
		return wait(tx, two.c, &blocked{c: two.c, t: t}, broker.Selection{}, 0, []byte("free"), []byte("taken"))
	}), `"1"`)
	wantDone(t, "a push", one.push("free"))
	wantDone(t, "a pop of the queue that did not refuse", one.pop("free"))
}

func TestARoleEndsWithTheLastConnectionOfItsName(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	h.change("q", exclusiveProducer)
	one, two, other := h.caller("1", "maker"), h.caller("2", "maker"), h.caller("3", "")
	wantDone(t, "one", one.push("q"))
	wantDone(t, "two, of the same name", two.push("q"))
	one.detach()
	wantInUse(t, "other, while two is there", other.push("q"), `"maker"`)
	two.rename("maker") // it is called so already
	wantInUse(t, "other, while two is there", other.push("q"), `"maker"`)
	two.rename("else")
	wantDone(t, "other", other.push("q"))
	wantInUse(t, "two, which left its name", two.push("q"), `"3"`)
	other.rename("somebody")
	wantDone(t, "two, as other is called differently", two.push("q"))
	two.detach()
	wantDone(t, "other, after two has gone", other.push("q"))
}

func TestARoleEndsWhenTheSettingOrTheQueueEnds(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	h.change("q", exclusiveProducer)
	one, two := h.caller("1", ""), h.caller("2", "")
	wantDone(t, "one", one.push("q"))
	h.change("q", func(s *broker.Settings) { s.ExclusiveProducer = false })
	wantDone(t, "two, as anybody may", two.push("q"))
	h.change("q", exclusiveProducer)
	wantDone(t, "two, as the first one", two.push("q"))
	zero := h.caller("0", "")
	one.detach()
	wantInUse(t, "another, as one no longer had the role", zero.push("q"), `"2"`)
	h.do(func(tx *broker.Tx) error { _, err := tx.Delete([]byte("q")); return err })
	h.change("q", exclusiveProducer)
	wantDone(t, "the first one of a new queue", zero.push("q"))
	two.detach()
	wantInUse(t, "another, as the queue of two was not this one", h.caller("3", "").push("q"), `"0"`)
	h.restart()
	wantDone(t, "the first one after a restart", h.caller("4", "").push("q"))
}

func TestARoleStaysWhereAListIsTrimmed(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	h.change("q", exclusiveProducer)
	one := h.caller("1", "")
	wantDone(t, "one", one.push("q"))
	h.do(func(tx *broker.Tx) error {
		return tx.Atomic(func() error { return tx.Trim([]byte("q"), 0, 0) })
	})
	wantInUse(t, "another", h.caller("2", "").push("q"), `"1"`)
	one.detach()
	wantDone(t, "another, after one has gone", h.caller("3", "").push("q"))
}

func TestWhoWaitsAloneBecomesTheOnlyConsumer(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	one, two := h.caller("1", ""), h.caller("2", "")
	wantDone(t, "one subscribes", one.subscribe("q"))
	h.change("q", exclusiveConsumer)
	wantInUse(t, "two", two.pop("q"), `"1"`)
	wantDone(t, "two", two.subscribe("p"))
	wantInUse(t, "a rename to what two subscribes to", h.b.Do(func(tx *broker.Tx) error {
		_, err := tx.Rename([]byte("q"), []byte("p"))
		return err
	}), `"1" and "2"`)
	h.do(func(tx *broker.Tx) error { _, err := tx.Delete([]byte("q")); return err })
	h.change("r", exclusiveConsumer)
	h.do(func(tx *broker.Tx) error { _, err := tx.Rename([]byte("r"), []byte("q")); return err })
	wantInUse(t, "a pop of what was renamed to what one subscribes to", two.pop("q"), `"1"`)
	wantDone(t, "one", one.subscribe("p"))
	wantInUse(t, "the setting, where two subscribe", h.b.Do(func(tx *broker.Tx) error {
		return tryChange(tx, "p", exclusiveConsumer)
	}), "wait for packets")
	two.detach()
	h.change("p", exclusiveConsumer)
	wantDone(t, "a push", one.push("p"))
	h.barrier()
	wantGot(t, "one", one.r, "[[a]]")
}

func TestAWaiterTakesAsItsOwnClient(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	taker, r := h.wait("made", 0, "q")
	h.change("made", exclusiveProducer)
	maker := h.caller("maker", "")
	wantDone(t, "the push that the waiter is served by", maker.try(func(tx *broker.Tx) error {
		h.pushIn(tx, "q")
		return pushError(tx.Push(broker.PushRequest{Queue: []byte("mine"), Priority: 1}))
	}))
	h.barrier()
	wantGot(t, "the waiter", r, "[[from q] [a]]")
	wantInUse(t, "a push where the waiter pushed", maker.push("made"), "only producer")
	h.do(func(tx *broker.Tx) error { tx.Detach(taker); return nil })
	wantDone(t, "a push where the waiter pushed, after it has gone", maker.push("made"))
}

func (h *harness) pushIn(tx *broker.Tx, queue string) {
	if err := pushError(tx.Push(broker.PushRequest{Queue: []byte(queue), Priority: 1, Payload: []byte("a")})); err != nil {
		h.t.Fatalf("push: %v", err)
	}
}

func TestTheFiguresOfAQueueNameWhoHasItsRoles(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	figures := func() (producer, consumer string) {
		h.do(func(tx *broker.Tx) error {
			s, _, err := tx.QueueStats([]byte("q"))
			for _, of := range []struct{ to, from *string }{{&producer, s.Producer}, {&consumer, s.Consumer}} {
				if *of.to = "no such role"; of.from != nil {
					*of.to = *of.from
				}
			}
			return err
		})
		return producer, consumer
	}
	h.change("q", exclusiveProducer)
	if p, c := figures(); p != "" || c != "no such role" {
		t.Errorf("before a push the producer is %q and the consumer %q", p, c)
	}
	h.change("q", exclusiveConsumer)
	one := h.caller("1.1.1.1:1", "")
	wantDone(t, "one", one.push("q"))
	wantDone(t, "two", h.caller("1.1.1.1:2", "taker").pop("q"))
	if p, c := figures(); p != "1.1.1.1:1" || c != "taker" {
		t.Errorf("the producer is %q and the consumer %q", p, c)
	}
	one.detach()
	if p, c := figures(); p != "" || c != "taker" {
		t.Errorf("after the producer has gone it is %q and the consumer %q", p, c)
	}
}
