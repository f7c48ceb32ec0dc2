package storage

import (
	"errors"
	"fmt"
	"testing"
)

func openTest(t *testing.T, dir string, o Options) *Store {
	t.Helper()
	s, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// scanned returns the packets of a store, and the totals of all that is in it.
func scanned(t *testing.T, s *Store) (ids []PacketID, tally Tally) {
	t.Helper()
	err := s.Packets(func(id PacketID, m *Meta) error {
		ids = append(ids, id)
		tally.Add(id, m.Expiry)
		return nil
	})
	err = errors.Join(err, eachItem(s, func(v ValueID, i item) error {
		tally.AddItem(v, i.version)
		return nil
	}), s.Deliveries(func(d *Delivery, _ Stored) error {
		tally.AddDelivery(d.Identity)
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	return ids, tally
}

// eachItem calls fn with every head and field of a store; large values are nil.
func eachItem(s *Store, fn func(v ValueID, i item) error) error {
	return errors.Join(
		s.Heads(func(h *Head) error {
			return fn(ValueID{ID: h.ID}, item{name: h.Name, version: h.Version, value: h.Value})
		}),
		s.Fields(func(f *Field) error {
			return fn(ValueID{f.Hash, f.ID, true}, item{name: f.Name, version: f.Version, value: f.Value})
		}))
}

func TestAppliedBatchIsThereAfterReopening(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir, Options{})
	var b Batch
	large := make([]byte, 5000)
	large[4999] = 7
	for i := range 10 {
		p := Packet{Key: fmt.Append(nil, "key", i), Payload: fmt.Append(nil, "payload", i)}
		if i == 5 {
			p.Payload = large
		}
		b.Put(PacketID{Queue: 1, Priority: uint32(i), Seq: 1<<63 + uint64(i)}, &p)
	}
	b.PutQueue(Queue{ID: 1, Name: []byte("jobs"), New: true})
	marks := Marks{NextSeq: 1<<63 + 10, LowSeq: 1<<63 - 1, NextQueue: 2}
	b.SetMarks(marks)
	if err := s.Apply(&b); err != nil {
		t.Fatal(err)
	}
	b.Reset()
	b.Delete(PacketID{Queue: 1, Priority: 3, Seq: 1<<63 + 3}, Removed{})
	if err := s.Apply(&b); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	s = openTest(t, dir, Options{})
	if got := s.Control(); got.Marks != marks || got.Batch != 2 || got.Epoch != 1 || got.Live != 9 {
		t.Errorf("control record is %+v", got)
	}
	ids, tally := scanned(t, s)
	if len(ids) != 9 {
		t.Errorf("%d packets, want 9", len(ids))
	}
	if err := s.Verify(tally); err != nil {
		t.Error(err)
	}
	var mismatch *MismatchError
	if err := s.Verify(Tally{Live: tally.Live - 1, Hash: tally.Hash}); !errors.As(err, &mismatch) {
		t.Errorf("a missing packet gives %v", err)
	}
	var p Packet
	err := s.Read([]PacketID{{1, 5, 1<<63 + 5}, {1, 3, 1<<63 + 3}}, func(i int, rec []byte) error {
		if i == 1 {
			if rec != nil {
				t.Error("the deleted packet is there")
			}
			return nil
		}
		if err := DecodeRecord(rec, &p); err != nil {
			return err
		}
		if len(p.Payload) != 5000 || p.Payload[4999] != 7 || string(p.Key) != "key5" {
			t.Errorf("packet 5 came back as %d bytes, key %q", len(p.Payload), p.Key)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestFolderInUseIsRefusedWithTheHolder(t *testing.T) {
	dir := t.TempDir()
	openTest(t, dir, Options{})
	_, err := Open(dir, Options{})
	if !errors.Is(err, ErrInUse) {
		t.Fatal(err)
	}
	t.Log(err)
}
