package broker_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
)

// cancelled cancels a packet of q that is in a state; 0: there is nothing to cancel.
func (w *work) cancelled(id broker.ID, want broker.State) {
	w.t.Helper()
	w.do(func(tx *broker.Tx) error {
		were, err := tx.Cancel([]byte("q"), []broker.ID{id})
		if err == nil && (len(were) != 1 || were[0] != want) {
			err = fmt.Errorf("packet %d was cancelled in %v, want %v", id, were, want)
		}
		return err
	})
}

func (w *work) extend(j job) (err error) {
	return w.b.Do(func(tx *broker.Tx) error {
		_, err := tx.Extend([]byte("q"), broker.Receipt{ID: j.ID, Token: j.Token}, 60_000)
		return err
	})
}

func TestACancelledClaimEndsAsNothingElse(t *testing.T) {
	for name, end := range map[string]func(w *work, j job){
		"ack": func(w *work, j job) {
			if err := w.ack(j); err != nil {
				w.t.Fatalf("ack: %v", err)
			}
		},
		"nack":      func(w *work, j job) { w.nacked(j, broker.Nack{}, broker.Cancelled) },
		"dead":      func(w *work, j job) { w.nacked(j, broker.Nack{Dead: true}, broker.Cancelled) },
		"uncounted": func(w *work, j job) { w.nacked(j, broker.Nack{Uncounted: true}, broker.Cancelled) },
		"lease":     func(w *work, _ job) { w.pass(31 * time.Second) },
		"harvest":   func(w *work, _ job) { w.bulk(broker.Harvest([]byte("q"), 0, "")) },
		"delete": func(w *work, j job) {
			w.do(func(tx *broker.Tx) error { _, err := tx.DeletePackets([]byte("q"), []broker.ID{j.ID}); return err })
		},
	} {
		for _, killed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s killed %v", name, killed), func(t *testing.T) {
				w := newWork(t)
				w.set(broker.Settings{MaxAttempts: 1, Lease: 30_000, DeadLetter: []byte("dead"), Retain: 60_000})
				id := w.add(broker.PushRequest{Payload: []byte("x")})
				j := w.claimOne()
				w.cancelled(id, broker.Claimed)
				w.cancelled(id, broker.Claimed)
				if killed {
					w.killed(func(*broker.Tx) {})
					w.restarted()
				}
				if got, _ := w.show("q", id); !got.Cancelled || got.Token != j.Token {
					t.Errorf("shown as %+v, want a cancelled claim", got)
				}
				if err := w.extend(j); !errors.Is(err, broker.ErrCancelled) {
					t.Errorf("extended: %v, want ErrCancelled", err)
				}
				end(w, j)
				if left := w.stored(); left != "0 packets, 0 delivery states" {
					t.Errorf("after the end of a cancelled claim the store has %s", left)
				}
				w.restart()
				if got, ok := w.show("q", id); ok {
					t.Errorf("a start brings %+v back", got)
				}
			})
		}
	}
}

func TestWhatHasEndedIsNotCancelled(t *testing.T) {
	w := newWork(t)
	dead := w.dead("x")
	w.cancelled(dead, 0)
	w.wantDead(dead)
	w.cancelled(dead+77, 0)
	delayed := w.add(broker.PushRequest{Delay: 1000})
	w.cancelled(delayed, broker.Delayed)
	w.cancelled(delayed, 0)
	if got, ok := w.show("q", delayed); ok {
		t.Errorf("%+v was cancelled, and is there", got)
	}
}
