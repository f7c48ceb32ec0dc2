package contents

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/holdfast-queue/holdfast/storage"
)

// now is so far off that no database drops what expires around it.
const now = 4_000_000_000_000

// mixed is a store with something of each kind that lives, and of each way to be dead.
func mixed(t *testing.T) *storage.Store {
	t.Helper()
	s, err := storage.Open(t.TempDir(), storage.Options{Sync: storage.SyncNever()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	var b storage.Batch
	b.SetFlush(storage.Flush{{Keys: 2, Queues: 2}})
	b.PutQueue(storage.Queue{ID: 1, Name: []byte("flushed")})
	b.PutQueue(storage.Queue{ID: 2, Name: []byte("dropped"), Dropped: true})
	b.PutQueue(storage.Queue{ID: 3, Name: []byte("expired"), Expiry: now})
	b.PutQueue(storage.Queue{ID: 4, Name: []byte("lives"), Expiry: now + 1})
	for q := range uint32(4) {
		b.Put(storage.PacketID{Queue: q + 1, Priority: 1, Seq: 1}, &storage.Packet{Payload: make([]byte, 2000)})
	}
	b.Put(storage.PacketID{Queue: 4, Priority: 1, Seq: 2}, &storage.Packet{Expiry: now})
	b.Put(storage.PacketID{Queue: 4, Priority: 1, Seq: 3}, &storage.Packet{Expiry: now, Identity: 33})
	for id, d := range map[uint64]storage.Delivery{
		2:  {State: storage.Claimed, Until: now}, // its lease has ended
		5:  {},                                   // of no packet
		33: {State: storage.Claimed, Until: now + 1},
	} {
		d.Identity = id
		b.PutDelivery(&d, 0)
		b.PutNote(storage.NoteID{Identity: id, Kind: storage.NoteReason}, []byte("why"), 0)
	}

	head := func(id uint64, kind storage.Kind, expiry int64) {
		b.PutHead(&storage.Head{ID: id, Kind: kind, Name: fmt.Append(nil, id), Version: id, Expiry: expiry, Value: []byte{}}, storage.Mark{})
	}
	head(1, storage.String, 0) // flushed
	head(2, storage.Hash, now)
	head(3, storage.Hash, now+1)
	head(4, storage.String, 0)
	for hash := range uint64(5) { // of 0, 1 and 4 there is no hash
		b.PutField(&storage.Field{Hash: hash, ID: 1, Name: []byte("f"), Version: 9, Value: make([]byte, 2000)}, storage.Mark{})
	}
	if err := s.Apply(&b); err != nil {
		t.Fatal(err)
	}
	return s
}

// listed names what a walk shows, with a word for what is dead.
func listed(t *testing.T, s *storage.Store) (all []string) {
	t.Helper()
	add := func(what any, dead bool) error {
		text := fmt.Sprint(what)
		if dead {
			text += " dead"
		}
		all = append(all, text)
		return nil
	}
	tally, err := Walk(t.Context(), s, now, Visitor{
		Queue: func(q *storage.Queue, dead bool) error { return add(string(q.Name), dead) },
		Head:  func(h *storage.Head, dead bool) error { return add(storage.ValueID{ID: h.ID}, dead) },
		Field: func(f *storage.Field, dead bool) error {
			return add(storage.ValueID{ID: f.Hash, Field: f.ID, IsField: true}, dead)
		},
		Packet: func(id storage.PacketID, _ *storage.Meta, t *Delivery, dead bool) error {
			if t != nil && t.Stored != storage.StoredDelivery|storage.StoredReason {
				return fmt.Errorf("packet %v has the records %b", id, t.Stored)
			}
			return add(id, dead)
		},
		Orphan: func(t *Delivery) error { return add(t.Identity, false) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Verify(tally); err != nil {
		t.Error(err)
	}
	return all
}

func TestAWalkTellsWhatNobodyCanReach(t *testing.T) {
	want := []string{
		"flushed dead", "dropped dead", "expired dead", "lives",
		"head 1 dead", "head 2 dead", "head 3", "head 4",
		"field 1 of hash 0 dead", "field 1 of hash 1 dead", "field 1 of hash 2 dead", "field 1 of hash 3", "field 1 of hash 4 dead",
		"1/1/1 dead", "2/1/1 dead", "3/1/1 dead", "4/1/1", "4/1/2 dead", "4/1/3", "5",
	}
	if got := listed(t, mixed(t)); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestWhatIsDeadIsDeletedWithItsLargeValuesAndTheFlushRecord(t *testing.T) {
	s := mixed(t)
	deleted := int64(0)
	if err := DeleteDead(t.Context(), s, now, func(n int64) { deleted = n }); err != nil {
		t.Fatal(err)
	}
	want := []string{"lives", "head 3", "head 4", "field 1 of hash 3", "4/1/1", "4/1/3"}
	if got := listed(t, s); !slices.Equal(got, want) || s.Flush() != (storage.Flush{}) || deleted != 14 {
		t.Errorf("%q are left, want %q; %d deleted, flush record %+v", got, want, deleted, s.Flush())
	}
	n, err := s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	tried := 0
	err = n.Deliveries(func(d *storage.Delivery, _ error) error {
		if tried++; d.Identity != 33 || d.Reason == "" {
			return fmt.Errorf("the delivery state of %d is left, with the reason %q", d.Identity, d.Reason)
		}
		return nil
	})
	if err != nil || tried != 1 {
		t.Errorf("%d delivery states, %v", tried, err)
	}
	payloads := 0
	if err := n.Payloads(func(uint32, uint64, int64) error { payloads++; return nil }); err != nil || payloads != 1 {
		t.Errorf("%d large payloads, %v", payloads, err)
	}
	gone := []storage.ValueID{{ID: 0, Field: 1, IsField: true}, {ID: 2, Field: 1, IsField: true}}
	err = s.ReadValues(gone, func(i int, value []byte) error {
		if value != nil {
			return fmt.Errorf("the value of %v is left", gone[i])
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestAWalkEndsWithTheErrorOfAVisitorOrTheContext(t *testing.T) {
	s, stop := mixed(t), errors.New("stop")
	for name, v := range map[string]Visitor{
		"queue":  {Queue: func(*storage.Queue, bool) error { return stop }},
		"head":   {Head: func(*storage.Head, bool) error { return stop }},
		"field":  {Field: func(*storage.Field, bool) error { return stop }},
		"orphan": {Orphan: func(*Delivery) error { return stop }},
		"packet": {Packet: func(storage.PacketID, *storage.Meta, *Delivery, bool) error { return stop }},
	} {
		if _, err := Walk(t.Context(), s, now, v); !errors.Is(err, stop) {
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := DeleteDead(ctx, s, now, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended gives %v", err)
	}
}
