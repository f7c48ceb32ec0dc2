package broker_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// replacing is a push to q that replaces what has the id u.
func replacing(payload string) broker.PushRequest {
	return broker.PushRequest{Queue: []byte("q"), Priority: 7, Payload: []byte(payload), Unique: []byte("u"), Replace: true, Delay: -1, At: -1}
}

func (w *work) replace(r broker.PushRequest) error {
	return w.b.Do(func(tx *broker.Tx) error { return pushError(tx.Push(r)) })
}

// first is the packet of q that has been there longest, with the times that are no details.
func (w *work) first(id broker.ID) (d broker.Detail, p broker.Packet) {
	w.t.Helper()
	w.do(func(tx *broker.Tx) error {
		f, err := tx.Show([]byte("q"), id)
		if err == nil {
			d, p = f.Details[0], f.Packets[0]
			p.Payload, p.Key = []byte(string(p.Payload)), []byte(string(p.Key))
		}
		return err
	})
	return d, p
}

func TestAReplacedPacketKeepsItsPlaceAndGetsTheRest(t *testing.T) {
	large := strings.Repeat("L", 5000)
	for _, payload := range []string{"new", large} {
		for _, first := range []string{"old", large + "old"} {
			for _, restart := range []bool{false, true} {
				w := newWork(t)
				pushed := w.now.Load()
				id := w.add(broker.PushRequest{Priority: 3, Key: []byte("k"), Payload: []byte(first), Unique: []byte("u"), UntilClaim: true, Producer: "me", TTL: time.Hour, Tags: []broker.PacketTag{{Name: "a", Value: "b"}}})
				w.add(broker.PushRequest{Priority: 3, Payload: []byte("behind")})
				if restart {
					w.restart()
				}
				w.pass(time.Second)
				r := replacing(payload)
				r.Tags, r.Key = []broker.PacketTag{{Name: "c", Value: "d"}}, []byte("no")
				for range 2 { // the second one replaces in the open batch
					w.do(func(tx *broker.Tx) error {
						_, err := tx.Push(replacing("between"))
						return errors.Join(err, pushError(tx.Push(r)))
					})
				}
				for range 2 {
					d, p := w.first(id)
					if d.ID != id || d.Priority != 3 || d.Behind != 0 || string(d.Unique) != "u" || d.State != broker.Ready {
						t.Errorf("it is %+v", d)
					}
					if string(p.Key) != "k" || string(p.Payload) != payload || p.EnqueuedAt != pushed || p.Expiry != 0 || p.Producer != "" || len(p.Tags) != 1 || p.Tags[0] != r.Tags[0] {
						t.Errorf("the packet is %+v", p)
					}
					if restart {
						w.restart()
					}
				}
				if got := w.claimOne(); got.ID != id || got.payload != payload {
					t.Errorf("claimed %+v", got)
				}
				if again := w.add(replacing("during the run")); again == id {
					t.Error("it has lost its UNTIL claim")
				}
				w.close()
			}
		}
	}
}

func TestAReplacedPacketKeepsWhatWasTried(t *testing.T) {
	w := newWork(t)
	defer w.close()
	id := w.add(broker.PushRequest{Payload: []byte("old"), Unique: []byte("u")})
	w.nacked(w.claimOne(), broker.Nack{Delay: 5000, Reason: []byte("boom")}, broker.Delayed)
	until := w.now.Load() + 5000
	w.add(replacing("keeps its backoff"))
	for range 2 {
		if d, p := w.first(id); d.NotBefore != until || d.Attempts != 1 || string(d.Reason) != "boom" || d.Consumer != "w1" || string(p.Payload) != "keeps its backoff" {
			t.Errorf("it is %+v", d)
		}
		w.restart()
	}
	r := replacing("put off")
	r.Delay, r.TTL = 9000, time.Hour
	w.add(r)
	w.restart()
	if d, p := w.first(id); d.NotBefore != w.now.Load()+9000 || d.Attempts != 1 || p.Expiry != w.now.Load()+3600_000 {
		t.Errorf("put off it is %+v", d)
	}
	r = replacing("now")
	r.Delay = 0
	w.add(r)
	w.restart()
	if got := w.claimOne(); got.payload != "now" || got.Attempts != 2 {
		t.Errorf("claimed %+v", got)
	}
	if again := w.add(replacing("of a claimed one")); again != id {
		t.Error("the id is free during the run")
	}
	if _, p := w.first(id); string(p.Payload) != "now" {
		t.Errorf("a claimed packet got %s", p.Payload)
	}
}

func TestAnExpiredPacketIsNotReplaced(t *testing.T) {
	w := newWork(t)
	defer w.close()
	for range 2000 { // more than a turn ends
		w.add(broker.PushRequest{TTL: time.Second})
	}
	id := w.add(broker.PushRequest{Unique: []byte("u"), TTL: 1001 * time.Millisecond})
	w.pass(time.Hour)
	if again := w.add(replacing("new")); again == id {
		t.Error("an expired packet was replaced")
	}
}

func TestAReplacementMustFit(t *testing.T) {
	w := newWork(t)
	defer w.close()
	w.bound(2, 20, content.FullReject)
	w.add(broker.PushRequest{Priority: 3, Payload: []byte("0123456789"), Unique: []byte("u")})
	w.add(broker.PushRequest{Priority: 5, Payload: []byte("ten bytes.")})
	for payload, want := range map[string]error{"0123456789+": broker.ErrFull, strings.Repeat("x", 21): broker.ErrTooLarge, strings.Repeat("x", broker.MaxRecord+1): broker.ErrTooLarge} {
		if err := w.replace(replacing(payload)); !errors.Is(err, want) {
			t.Errorf("%d bytes: %v, want %v", len(payload), err, want)
		}
	}
	if err := w.replace(replacing("9876543210")); err != nil { // though the queue is full
		t.Error(err)
	}
	w.bound(2, 20, content.FullDrop)
	if err := w.replace(replacing(strings.Repeat("x", 20))); err != nil { // the worse one goes
		t.Error(err)
	}
	if got := w.payloads(); got != strings.Repeat("x", 20) {
		t.Errorf("there are %s", got)
	}
	w.add(replacing("short"))
	w.add(broker.PushRequest{Priority: 2, Payload: []byte("fifteen bytes..")})
	if err := w.replace(replacing("short+")); !errors.Is(err, broker.ErrDropped) {
		t.Errorf("one that is worse than the rest: %v", err)
	}
	w.change("q", pauseIn)
	if err := w.replace(replacing("x")); !errors.Is(err, broker.ErrPaused) {
		t.Errorf("paused: %v", err)
	}
	w.change("q", noPause)
	w.store.level = storage.NoPush
	w.pass(1e9)
	w.barrier()
	if err := w.replace(replacing("x")); !errors.Is(err, broker.ErrNoSpace) {
		t.Errorf("on a full disk: %v", err)
	}
}
