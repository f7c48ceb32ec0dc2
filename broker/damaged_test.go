package broker_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// damage makes a packet unreadable whose payload has a text, and takes everything out of the cache.
func (w *work) damage(text string) {
	w.t.Helper()
	w.restart()
	for id, record := range w.store.packets {
		if strings.Contains(string(record), text) {
			w.store.packets[id] = []byte("no packet")
		}
	}
}

// states counts the packets of q that are ready and damaged.
func (w *work) states() (ready, damaged int) {
	w.t.Helper()
	w.do(func(tx *broker.Tx) error {
		s, _, err := tx.QueueStats([]byte("q"))
		ready, damaged = s.Ready, s.Damaged
		return err
	})
	return ready, damaged
}

func TestADamagedPacketIsSetAside(t *testing.T) {
	q, oldest := []byte("q"), broker.Selection{End: broker.Oldest}
	two := broker.Selection{End: broker.Oldest, Count: 2}
	for name, row := range map[string]struct {
		call  func(w *work, ids []broker.ID) error
		reply []string // its payloads
		ready int      // afterwards
	}{
		"pop": {func(w *work, _ []broker.ID) error {
			return w.b.Do(func(tx *broker.Tx) error { return reply(w.c)(tx.Pop(q, oldest)) })
		}, []string{"second"}, 1},
		"pop many": {func(w *work, _ []broker.ID) error {
			return w.b.Do(func(tx *broker.Tx) error { return reply(w.c)(tx.Pop(q, two)) })
		}, []string{"second", "third"}, 0},
		"claim": {func(w *work, _ []broker.ID) error { w.claim("q", broker.ClaimRequest{Selection: two}); return nil }, []string{"second", "third"}, 0},
		"peek": {func(w *work, _ []broker.ID) error {
			return w.b.Do(func(tx *broker.Tx) error { return reply(w.c)(tx.Peek(q, 2)) })
		}, []string{"second", "third"}, 2},
		"list":      {func(w *work, _ []broker.ID) error { w.list("q", broker.Ready, 9); return nil }, []string{"", "second", "third"}, 2},
		"show":      {func(w *work, ids []broker.ID) error { w.show("q", ids[0]); return nil }, []string{""}, 2},
		"subscribe": {func(w *work, _ []broker.ID) error { w.subscribe(w.c, 3, "q"); return nil }, []string{"second"}, 0},
		"move an end": {func(w *work, _ []broker.ID) error {
			return atomicCall(w.b, func(tx *broker.Tx) error {
				_, err := replyMoved(w.c)(tx.MoveEnd(q, broker.Oldest, []byte("to"), broker.Newest))
				return err
			})
		}, []string{"second"}, 1},
		"range": {func(w *work, _ []broker.ID) error {
			return atomicCall(w.b, func(tx *broker.Tx) error {
				if _, err := tx.Range(q, 0, 3); err != broker.ErrChanged {
					return fmt.Errorf("the first range gave %v", err)
				}
				return reply(w.c)(tx.Range(q, 0, 2))
			})
		}, []string{"third", "second"}, 2},
		"move": {func(w *work, ids []broker.ID) error {
			return w.b.Do(func(tx *broker.Tx) error {
				if n, err := tx.MovePackets(q, ids, []byte("to")); n != 2 || err != nil {
					return fmt.Errorf("%d packets have moved, %w", n, err)
				}
				return reply(w.c)(tx.Peek([]byte("to"), 9))
			})
		}, []string{"second", "third"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWork(t)
			defer w.close()
			var ids []broker.ID
			for _, payload := range []string{"damaged", "second", "third"} {
				ids = append(ids, w.add(broker.PushRequest{Payload: []byte(payload)}))
			}
			w.damage("damaged")
			if err := row.call(w, ids); err != nil {
				t.Fatal(err)
			}
			w.barrier()
			if got := w.box.payloads; !slices.Equal(got, row.reply) {
				t.Errorf("the reply has %q, want %q", got, row.reply)
			}
			if ready, damaged := w.states(); ready != row.ready || damaged != 1 {
				t.Errorf("%d packets are ready and %d damaged, want %d and 1", ready, damaged, row.ready)
			}
			if j, ok := w.show("q", ids[0]); !ok || j.State != broker.Damaged || j.payload != "" {
				t.Errorf("it is shown as %+v", j)
			}
			w.do(func(tx *broker.Tx) error {
				n, err := tx.DeletePackets(q, ids[:1])
				if n != 1 {
					t.Errorf("%d packets were deleted", n)
				}
				return err
			})
			if _, damaged := w.states(); damaged != 0 {
				t.Errorf("%d packets are damaged", damaged)
			}
		})
	}
}

func TestADamagedPacketIsReadyAgainAfterAStart(t *testing.T) {
	w := newWork(t)
	defer w.close()
	id := w.add(broker.PushRequest{Payload: []byte("sound"), Unique: []byte("u")})
	w.restart()
	whole := map[content.PacketID][]byte{}
	for id, record := range w.store.packets {
		whole[id], w.store.packets[id] = record, nil
	}
	if got := w.claim("q", broker.ClaimRequest{}); len(got) != 0 {
		t.Errorf("claimed %+v", got)
	}
	if again := w.add(broker.PushRequest{Unique: []byte("u")}); again != id {
		t.Error("its id is free")
	}
	w.barrier()
	w.store.packets = whole
	w.restart()
	if got := w.claimOne(); got.payload != "sound" {
		t.Errorf("claimed %+v", got)
	}
}

func TestAnAcknowledgedPacketThatCannotBeReadIsNotRetained(t *testing.T) {
	w := newWork(t)
	defer w.close()
	s := broker.DefaultSettings()
	s.Retain, s.MaxAttempts, s.DeadLetter = 60_000, 1, []byte("dead")
	w.set(s)
	for range 2 {
		w.add(broker.PushRequest{Payload: []byte("damaged")})
	}
	jobs := w.claim("q", broker.ClaimRequest{Selection: broker.Selection{Count: 2}})
	w.damage("damaged")
	if err := w.ack(jobs[0]); err != nil {
		t.Errorf("the ack gave %v", err)
	}
	w.nacked(jobs[1], broker.Nack{}, broker.Dead) // it cannot move
	if got := w.list("q", broker.Dead, 9); len(got) != 1 || got[0].ID != jobs[1].ID {
		t.Errorf("dead are %+v", got)
	}
	if got := w.stored(); got != "1 packets, 1 delivery states" {
		t.Errorf("the store holds %s", got)
	}
}

func TestAnAcknowledgedPacketThatExpiredIsMissedByNobody(t *testing.T) {
	w := newWork(t)
	var log bytes.Buffer
	w.o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	w.restart()
	w.harness.change("q", func(s *broker.Settings) { s.Retain = 60_000 })
	w.add(broker.PushRequest{Payload: []byte("job"), TTL: time.Minute})
	got := w.claim("q", broker.ClaimRequest{Lease: time.Hour.Milliseconds()})
	w.damage("job") // a store drops what has expired
	w.pass(2 * time.Minute)
	if err := w.ack(got[0]); err != nil {
		t.Error(err)
	}
	w.close()
	if log.Len() > 0 {
		t.Errorf("the log says\n%s", log.String())
	}
}

func TestASubscriberStaysReadyForWhatFollowsADamagedPacket(t *testing.T) {
	w := newWork(t)
	defer w.close()
	w.add(broker.PushRequest{Payload: []byte("damaged")})
	w.damage("damaged")
	w.subscribe(w.c, 1, "q")
	w.add(broker.PushRequest{Payload: []byte("sound")})
	w.barrier()
	if got := w.box.payloads; !slices.Equal(got, []string{"sound"}) {
		t.Errorf("it got %q", got)
	}
}

func TestManyDamagedPacketsAreSetAsideTogether(t *testing.T) {
	w := newWork(t)
	defer w.close()
	const n = 400
	for range n {
		w.add(broker.PushRequest{Payload: []byte("damaged")})
	}
	w.damage("damaged")
	reads := 0
	w.store.reads = func(int) { reads++ }
	if got := w.claim("q", broker.ClaimRequest{}); len(got) != 0 {
		t.Errorf("claimed %+v", got)
	}
	if _, damaged := w.states(); damaged != n || reads != 1 {
		t.Errorf("%d packets are damaged after %d reads, want %d after one", damaged, reads, n)
	}
}

func TestATakeThatMustFindIsToldOfNoDamagedPacket(t *testing.T) {
	w := newWork(t)
	defer w.close()
	for _, payload := range []string{"damaged", "sound"} {
		w.add(broker.PushRequest{Payload: []byte(payload)})
	}
	w.damage("damaged")
	takeable := func(want int) {
		t.Helper()
		w.do(func(tx *broker.Tx) error {
			if n, err := tx.Takeable([]byte("q"), broker.Selection{End: broker.Oldest, MustFind: true}); n != want || err != nil {
				t.Errorf("%d packets can be taken, %v, want %d", n, err, want)
			}
			return nil
		})
	}
	takeable(1)
	w.claimOne()
	takeable(0)
}

func TestADamagedPacketKeepsNobodyFromOthers(t *testing.T) {
	w := newWork(t)
	defer w.close()
	w.addTagged("q", "class high", "damaged")
	w.addTagged("q", "class low", "sound")
	s := broker.DefaultSettings()
	s.PauseOut = true
	w.set(s)
	w.damage("damaged")
	var boxes [2]inbox
	for i, filter := range []string{"class eq high", "class eq low"} {
		c := w.b.Attach(&boxes[i], broker.Selection{})
		w.do(func(tx *broker.Tx) error {
			return wait(tx, c, &blocked{c: c, t: t}, broker.Selection{End: broker.Oldest, Filter: filtered(filter)}, 0, []byte("q"))
		})
	}
	s.PauseOut = false
	w.set(s)
	w.barrier()
	wantGot(t, "the one for the damaged packet", &boxes[0], "[]")
	wantGot(t, "the one for the sound packet", &boxes[1], "[[from q] [sound]]")
}

// twinned starts anew on a folder in which the second of two packets, "two", has the sequence of
// the first.
func (w *work) twinned() {
	for id, record := range maps.Clone(w.store.packets) {
		if bytes.Contains(record, []byte("two")) {
			delete(w.store.packets, id)
			id.Seq--
			w.store.packets[id] = record
		}
	}
	w.findings = 1
	w.restart()
}

// A start of a folder in which two queues have a packet of one sequence serves the first.
func TestOfTwoPacketsWithOneSequenceOneIsDamaged(t *testing.T) {
	for _, verb := range []string{"move", "dead letter"} {
		w := newWork(t)
		s := broker.DefaultSettings()
		s.DeadLetter = []byte("to")
		w.set(s)
		w.add(broker.PushRequest{Payload: []byte("one")})
		w.add(broker.PushRequest{Queue: []byte("to"), Payload: []byte("two")})
		w.barrier()
		w.twinned()
		if verb == "move" {
			w.bulk(broker.Move([]byte("q"), 0, 0, []byte("to")))
		} else {
			w.nacked(w.claimOne(), broker.Nack{Dead: true}, broker.Dead)
		}
		w.barrier()
		got := w.claim("to", broker.ClaimRequest{Selection: broker.Selection{Count: 9}})
		if len(got) != 1 || got[0].payload != "one" || len(w.store.packets) != 2 {
			t.Errorf("%s: then claims gave %+v, and the store has %d packets, want one of two", verb, got, len(w.store.packets))
		}
	}
}

func TestAPacketDoesNotTakeThePlaceOfItsTwinInOneQueue(t *testing.T) {
	w := newWork(t)
	id := w.add(broker.PushRequest{Payload: []byte("one"), Priority: 5})
	w.add(broker.PushRequest{Payload: []byte("two"), Priority: 9})
	w.barrier()
	w.twinned()
	w.do(func(tx *broker.Tx) error { _, err := tx.SetPriority([]byte("q"), id, 9); return err })
	w.barrier()
	w.bulk(broker.Purge([]byte("q"), broker.Damaged))
	w.barrier()
	got := w.claim("q", broker.ClaimRequest{Selection: broker.Selection{Count: 9}})
	if len(got) != 1 || got[0].payload != "one" || len(w.store.packets) != 1 {
		t.Errorf("claims gave %+v, and the store has %d packets, want the sound one", got, len(w.store.packets))
	}
}

// A claim outlasts the record of its packet, which compact drops some minutes after its TTL.
func TestAClaimedPacketWithoutItsRecordIsShownAsDamaged(t *testing.T) {
	w := newWork(t)
	id := w.add(broker.PushRequest{Payload: []byte("gone")})
	j := w.claimOne()
	w.damage("gone")
	if got, _ := w.show("q", id); got.State != broker.Damaged || got.Token != j.Token {
		t.Errorf("it is shown as %+v, want damaged with the token of its claim", got.Detail)
	}
	if err := w.ack(j); err != nil {
		t.Error(err)
	}
}
