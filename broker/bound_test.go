package broker_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// bound gives q a bound, beside the default settings.
func (w *work) bound(packets, bytes int64, full content.Full) {
	w.t.Helper()
	s := broker.DefaultSettings()
	s.Bound, s.BoundBytes, s.Full = packets, bytes, full
	w.set(s)
}

// pushed returns the error of a push to q.
func (w *work) pushed(priority uint32, payload string) error {
	return w.b.Do(func(tx *broker.Tx) error {
		return pushError(tx.Push(broker.PushRequest{Queue: []byte("q"), Priority: priority, Key: []byte("k"), Payload: []byte(payload)}))
	})
}

// payloads are those of the ready and delayed packets of q, the worst last.
func (w *work) payloads() string {
	var all []string
	for _, s := range []broker.State{broker.Ready, broker.Delayed} {
		for _, j := range w.list("q", s, 100) {
			all = append(all, j.payload)
		}
	}
	return strings.Join(all, " ")
}

// doors are the ways in which packets, or bytes, come to the queue q. In another queue, from, there
// are packets to move.
var doors = map[string]func(tx *broker.Tx, c *broker.Conn, from []broker.ID) error{
	"push": func(tx *broker.Tx, _ *broker.Conn, _ []broker.ID) error {
		return pushError(tx.Push(broker.PushRequest{Queue: []byte("q"), Priority: 1, Payload: []byte("new")}))
	},
	"update of a priority": func(tx *broker.Tx, _ *broker.Conn, _ []broker.ID) error {
		return tx.UpdatePriority(broker.UpdatePriorityRequest{
			Queue: []byte("q"), Key: []byte("new"), To: func(uint32, bool) uint32 { return 1 },
		})
	},
	"push of a list": func(tx *broker.Tx, _ *broker.Conn, _ []broker.ID) error {
		return tx.Atomic(func() error {
			_, err := tx.PushEnd([]byte("q"), broker.Oldest, [][]byte{[]byte("new")})
			return err
		})
	},
	"insert": func(tx *broker.Tx, _ *broker.Conn, _ []broker.ID) error {
		return tx.Atomic(func() error {
			_, err := tx.InsertAt([]byte("q"), 1, []byte("new"))
			return err
		})
	},
	"move of an end": func(tx *broker.Tx, c *broker.Conn, _ []broker.ID) error {
		return tx.Atomic(func() error {
			_, err := replyMoved(c)(tx.MoveEnd([]byte("from"), broker.Oldest, []byte("q"), broker.Newest))
			return err
		})
	},
	"move": func(tx *broker.Tx, _ *broker.Conn, from []broker.ID) error {
		_, err := tx.MovePackets([]byte("from"), from[:1], []byte("q"))
		return err
	},
	"redrive": func(tx *broker.Tx, _ *broker.Conn, _ []broker.ID) error {
		_, err := broker.Redrive([]byte("from"), 0, []byte("q")).Slice(tx)
		return err
	},
}

// A full queue is one that is full of ready packets, of claimed or of delayed ones.
func TestNoDoorFillsAQueueBeyondItsBound(t *testing.T) {
	for name, door := range doors {
		for _, state := range []broker.State{broker.Ready, broker.Delayed, broker.Claimed} {
			for _, bound := range [][2]int64{{3, 0}, {0, 11}, {3, 11}} {
				t.Run(fmt.Sprint(name, " beside ", state, " ", bound), func(t *testing.T) {
					w := newWork(t)
					from := []broker.ID{w.add(broker.PushRequest{Queue: []byte("from"), Payload: []byte("new")})}
					w.add(broker.PushRequest{Queue: []byte("from"), Payload: []byte("new")})
					died := w.claim("from", broker.ClaimRequest{Selection: broker.Selection{End: broker.Newest}})[0]
					w.nacked(died, broker.Nack{Dead: true}, broker.Dead)
					w.bound(bound[0], bound[1], content.FullReject)
					delay := map[broker.State]int64{broker.Delayed: 1000}[state]
					for _, p := range []string{"one", "two", "three"} {
						w.add(broker.PushRequest{Payload: []byte(p), Delay: delay})
					}
					if state == broker.Claimed {
						w.claim("q", broker.ClaimRequest{Selection: broker.Selection{Count: 2}})
					}
					before := w.stored()
					err := w.b.Do(func(tx *broker.Tx) error { return door(tx, w.c, from) })
					if !errors.Is(err, broker.ErrFull) || w.stored() != before {
						t.Fatalf("error %v, and the store holds %s, before it %s", err, w.stored(), before)
					}
					w.bound(bound[0]+min(bound[0], 1), bound[1]+min(bound[1], 3), content.FullReject)
					if err := w.b.Do(func(tx *broker.Tx) error { return door(tx, w.c, from) }); err != nil {
						t.Fatalf("with room for one more: %v", err)
					}
				})
			}
		}
	}
}

func TestAValueGrowsWithinTheBoundOnly(t *testing.T) {
	w := newWork(t)
	w.add(broker.PushRequest{Payload: []byte("12345")})
	w.add(broker.PushRequest{})
	w.bound(1, 10, content.FullDrop) // a packet more than that is there
	set := func(n int) error {
		return w.b.Do(func(tx *broker.Tx) error {
			return tx.Atomic(func() error {
				_, err := tx.SetAt([]byte("q"), 1, make([]byte, n))
				return err
			})
		})
	}
	if err := set(10); err != nil {
		t.Fatalf("a value that fills the bound: %v", err)
	}
	if err := set(11); !errors.Is(err, broker.ErrFull) {
		t.Fatalf("a value beyond the bound: %v", err)
	}
	w.bound(1, 5, content.FullReject)
	if err := set(9); err != nil {
		t.Fatalf("a value that shrinks: %v", err)
	}
}

func TestWhatIsDeadOrDoneTakesNoPlace(t *testing.T) {
	w := newWork(t)
	s := broker.DefaultSettings()
	s.Bound, s.BoundBytes, s.Retain = 1, 4, 60_000
	w.set(s)
	w.add(broker.PushRequest{Payload: []byte("dead")})
	w.nacked(w.claimOne(), broker.Nack{Dead: true}, broker.Dead)
	w.add(broker.PushRequest{Payload: []byte("done")})
	if err := w.ack(w.claimOne()); err != nil {
		t.Fatal(err)
	}
	w.add(broker.PushRequest{Payload: []byte("here")})
	if err := w.b.Do(func(tx *broker.Tx) error { _, err := broker.Redrive([]byte("q"), 0, nil).Slice(tx); return err }); !errors.Is(err, broker.ErrFull) {
		t.Fatalf("the dead packet came back to a full queue: %v", err)
	}
	w.nacked(w.claimOne(), broker.Nack{}, broker.Ready)
}

func TestWhatExpiresFreesItsPlaceAtOnce(t *testing.T) {
	w := newWork(t)
	w.bound(1, 0, content.FullReject)
	w.add(broker.PushRequest{Payload: []byte("a"), TTL: time.Second})
	w.pass(999 * time.Millisecond)
	if err := w.pushed(1, "b"); !errors.Is(err, broker.ErrFull) {
		t.Fatalf("a millisecond early: %v", err)
	}
	w.pass(time.Millisecond)
	if err := w.pushed(1, "b"); err != nil {
		t.Fatal(err)
	}
}

func TestAPushLargerThanTheBoundIsTooLarge(t *testing.T) {
	for _, full := range []content.Full{content.FullReject, content.FullBlock, content.FullDrop} {
		w := newWork(t)
		w.bound(1, 10, full)
		if err := w.pushed(1, "1234567890"); !errors.Is(err, broker.ErrTooLarge) || !strings.Contains(err.Error(), "the bound of the queue is 1 packet and 10 bytes") {
			t.Fatalf("a packet of 11 bytes: %v", err)
		}
		err := w.b.Do(func(tx *broker.Tx) error {
			return tx.Atomic(func() error {
				_, err := tx.PushEnd([]byte("q"), broker.Oldest, [][]byte{[]byte("a"), []byte("b")})
				return err
			})
		})
		if !errors.Is(err, broker.ErrTooLarge) {
			t.Fatalf("two packets at once: %v", err)
		}
	}
}

func TestABoundBelowWhatIsQueuedLetsItDrain(t *testing.T) {
	w := newWork(t)
	for _, p := range []string{"a", "b", "c"} {
		w.add(broker.PushRequest{Payload: []byte(p)})
	}
	w.bound(2, 0, content.FullReject)
	for n := range 3 {
		if err := w.pushed(1, "x"); (err == nil) != (n == 2) {
			t.Fatalf("with %d packets: %v", 3-n, err)
		}
		w.replied(func(tx *broker.Tx) error { return reply(w.c)(tx.Pop([]byte("q"), broker.Selection{WithDetails: true})) })
	}
}

func TestAPacketThatDiesStaysWhereTheDeadLetterQueueIsFull(t *testing.T) {
	w := newWork(t)
	s := broker.DefaultSettings()
	s.DeadLetter = []byte("graveyard")
	w.set(s)
	s.DeadLetter, s.Bound, s.Full = nil, 1, content.FullDrop
	w.do(func(tx *broker.Tx) error { return tx.SetSettings([]byte("graveyard"), s) })
	for _, p := range []string{"a", "b"} {
		w.add(broker.PushRequest{Payload: []byte(p), Priority: 9})
		w.nacked(w.claimOne(), broker.Nack{Dead: true, Reason: []byte("bad")}, broker.Dead)
	}
	if got := w.list("graveyard", broker.Ready, 5); len(got) != 1 || got[0].payload != "a" {
		t.Fatalf("the dead-letter queue has %+v", got)
	}
	if got := w.list("q", broker.Dead, 5); len(got) != 1 || got[0].payload != "b" || string(got[0].Reason) != "bad" {
		t.Fatalf("the queue has %+v", got)
	}
}

func TestADeadLetterQueueThatIsFullIsLoggedOnceAQueue(t *testing.T) {
	w := newWork(t)
	var log bytes.Buffer
	w.o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	w.restart()
	w.harness.change("q", func(s *broker.Settings) { s.DeadLetter = []byte("graveyard") })
	w.harness.change("graveyard", func(s *broker.Settings) { s.Bound = 1 })
	for _, p := range []string{"a", "b", "c", "d"} {
		w.add(broker.PushRequest{Payload: []byte(p)})
		w.nacked(w.claimOne(), broker.Nack{Dead: true}, broker.Dead)
	}
	w.close()
	if n := strings.Count(log.String(), "queue=q dead_letter=graveyard"); n != 1 {
		t.Errorf("%d lines in the log, want 1:\n%s", n, log.String())
	}
}

func TestAFullQueueDropsItsWorstPackets(t *testing.T) {
	w := newWork(t)
	w.bound(4, 0, content.FullDrop)
	w.add(broker.PushRequest{Payload: []byte("delayed"), Priority: 8, Delay: 1000})
	w.add(broker.PushRequest{Payload: []byte("old"), Priority: 7})
	w.add(broker.PushRequest{Payload: []byte("new"), Priority: 7})
	if err := w.pushed(0, "zero"); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		priority uint32
		payload  string
		want     string
	}{
		{7, "seven", "old new seven delayed"}, // priority 0 is the worst
		{5, "five", "five old new seven"},
		{7, "equal", ""},
		{0, "worse", ""},
		{6, "six", "five six old new"},
	} {
		before := w.payloads()
		err := w.pushed(step.priority, step.payload)
		if step.want == "" {
			if !errors.Is(err, broker.ErrDropped) || !errors.Is(err, broker.ErrFull) || w.payloads() != before {
				t.Fatalf("push of %s: %v, queued are %s", step.payload, err, w.payloads())
			}
		} else if got := w.payloads(); err != nil || got != step.want {
			t.Fatalf("push of %s: %v, queued are %s, want %s", step.payload, err, got, step.want)
		}
	}
	w.claim("q", broker.ClaimRequest{Selection: broker.Selection{Count: 4}})
	if err := w.pushed(1, "best"); !errors.Is(err, broker.ErrDropped) {
		t.Fatalf("beside claimed packets only: %v", err)
	}
	w.do(func(tx *broker.Tx) error {
		s, _, err := tx.QueueStats([]byte("q"))
		if s.Dropped != 3 {
			t.Errorf("%d packets were dropped, want 3", s.Dropped)
		}
		return err
	})
	w.restart()
	if got := w.stored(); got != "4 packets, 4 delivery states" {
		t.Fatalf("the store holds %s", got)
	}
}

func TestOnePushDropsABoundedNumberOfPackets(t *testing.T) {
	for worse, want := range map[int]error{broker.MaxCount: nil, broker.MaxCount + 1: broker.ErrDropped} {
		w := newWork(t)
		w.bound(0, int64(50*worse), content.FullDrop)
		for range worse {
			w.add(broker.PushRequest{Payload: make([]byte, 50), Priority: 9})
		}
		err := w.b.Do(func(tx *broker.Tx) error {
			return pushError(tx.Push(broker.PushRequest{Queue: []byte("q"), Priority: 1, Payload: make([]byte, 50*worse)}))
		})
		if !errors.Is(err, want) {
			t.Errorf("a push in place of %d packets gave %v, want %v", worse, err, want)
		}
	}
}

func TestAQueueThatDropsItsOnlyPacketKeepsItsExpiry(t *testing.T) {
	w := newWork(t)
	w.setDefaults(defaultsWith("q", func(s *broker.Settings) { s.Bound, s.Full = 1, content.FullDrop }))
	w.add(broker.PushRequest{Priority: 9})
	at := w.now.Load() + 100_000
	w.expireAt("q", at)
	w.add(broker.PushRequest{Priority: 8})
	w.restart()
	w.together(func(tx *broker.Tx) error {
		if got, ok := tx.Expiry([]byte("q")); got != at || !ok {
			t.Errorf("the queue expires at %d, want %d", got, at)
		}
		return nil
	})
}
