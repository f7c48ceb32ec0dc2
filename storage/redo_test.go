package storage

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"
)

func TestRedoRecordKeepsItsList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfDistinct(rapid.Custom(func(t *rapid.T) removal {
			r := removal{
				id: PacketID{
					Queue:    rapid.Uint32Range(0, 3).Draw(t, "queue"),
					Priority: rapid.Uint32().Draw(t, "priority"),
					Seq:      rapid.Uint64().Draw(t, "seq"),
				},
				large:  rapid.Bool().Draw(t, "large"),
				stored: Stored(rapid.IntRange(0, int(storedAll)).Draw(t, "stored")),
			}
			if r.stored != 0 {
				r.identity = rapid.OneOf(rapid.Just(r.id.Seq), rapid.Uint64()).Draw(t, "identity")
			}
			return r
		}), func(r removal) PacketID { return r.id }).Draw(t, "list")
		rec := appendRedo(nil, slices.Clone(want))
		got, err := decodeRedo(rec)
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(want, func(a, b removal) int { return a.id.Compare(b.id) })
		if !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
		if len(rec) > 0 && len(want) > 0 {
			if cut := rec[:rapid.IntRange(0, len(rec)-1).Draw(t, "cut")]; len(cut) < len(rec) {
				if _, err := decodeRedo(cut); !errors.Is(err, ErrDamaged) {
					t.Fatalf("a cut record gave %v, want ErrDamaged", err)
				}
			}
		}
	})
}

// fillStore applies n packets in batches; every seventh is large.
func fillStore(t *testing.T, s *Store, n int) []PacketID {
	t.Helper()
	var b Batch
	large := make([]byte, 1100)
	ids := make([]PacketID, n)
	for i := range ids {
		ids[i] = PacketID{Queue: 1, Priority: uint32(i % 3), Seq: 1<<63 + uint64(i)}
		p := Packet{Key: []byte("k"), Payload: []byte("x")}
		if i%7 == 0 {
			p.Payload = large
		}
		b.Put(ids[i], &p)
		if i%500 == 499 || i == n-1 {
			if err := s.Apply(&b); err != nil {
				t.Fatal(err)
			}
			b.Reset()
		}
	}
	return ids
}

func deleteAll(b *Batch, ids []PacketID) {
	for i, id := range ids {
		b.Delete(id, Removed{Large: i%7 == 0})
	}
}

// powerCut lets syncs fail. The store's housekeeping syncs, too.
type powerCut struct {
	left atomic.Int64 // the sync of this number fails, and all after it; 0: none does
}

func (c *powerCut) at(n int) { c.left.Store(int64(n)) }
func (c *powerCut) over()    { c.left.Store(0) }

func (c *powerCut) sync(f *os.File) error {
	for n := c.left.Load(); n > 0; n = c.left.Load() {
		if n == 1 {
			return errors.New("power is gone")
		}
		if c.left.CompareAndSwap(n, n-1) {
			break
		}
	}
	return fdatasync(f)
}

func TestDeletesBeyondOneTransactionHappenAsAWhole(t *testing.T) {
	const n = 15_000
	for failAt := 2; failAt < 6; failAt++ {
		dir := t.TempDir()
		var cut powerCut
		o := Options{MemTable: 2 << 20}
		o.tune.sync = cut.sync
		s, err := Open(dir, o)
		if err != nil {
			t.Fatal(err)
		}
		ids := fillStore(t, s, n)
		if s.limits.MaxOps > n || s.limits.MaxDeletes < n {
			t.Fatalf("limits %+v: the test wants more deletes than a transaction holds", s.limits)
		}
		var b Batch
		deleteAll(&b, ids[:n-1])
		b.Put(PacketID{Queue: 1, Priority: 1, Seq: 1<<63 + n}, &Packet{Payload: []byte("new")})
		cut.at(failAt)
		if err := s.Apply(&b); !errors.Is(err, ErrUnknown) {
			t.Fatalf("sync %d failed and Apply gave %v, want ErrUnknown", failAt, err)
		}
		cut.over()
		_ = s.Close()

		v := openView(t, dir, ViewOptions{})
		if got := viewed(t, v); len(got) != 2 {
			t.Fatalf("sync %d failed: a view shows %d packets, want the one not deleted and the new one", failAt, len(got))
		}
		large := 0
		if err := v.Payloads(func(uint32, uint64, int64) error { large++; return nil }); err != nil || large != 0 {
			t.Fatalf("sync %d failed: a view shows %d payloads of packets that are gone, %v", failAt, large, err)
		}
		if err := v.Close(); err != nil {
			t.Fatal(err)
		}

		s, err = Open(dir, Options{MemTable: 2 << 20})
		if err != nil {
			t.Fatal(err)
		}
		got, tally := scanned(t, s)
		if len(got) != 2 {
			t.Fatalf("sync %d failed: %d packets are left, want the one not deleted and the new one", failAt, len(got))
		}
		if err := errors.Join(s.Verify(tally), s.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRedoRecordOfVersion2ReadsTheSame(t *testing.T) {
	rec := []byte{0x81, 1, formBin8, 7, 1, 2, 2, 9, 0, 5, 1}
	want := []removal{{id: PacketID{1, 2, 9}}, {id: PacketID{1, 2, 14}, large: true}}
	if got, err := decodeRedo(rec); err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	if got := appendRedo(nil, want); !bytes.Equal(got, rec) {
		t.Errorf("written as %x", got)
	}
}

// fillStates gives packets of fillStore delivery states, and an identity of their own to every
// third.
func fillStates(t *testing.T, s *Store, ids []PacketID) (identity func(i int) uint64) {
	t.Helper()
	identity = func(i int) uint64 {
		if i%3 == 0 {
			return ids[i].Seq - 1<<40
		}
		return ids[i].Seq
	}
	var b Batch
	for i := range ids {
		b.PutDelivery(&Delivery{Identity: identity(i), State: Claimed, Consumer: "me"}, 0)
		b.PutNote(NoteID{identity(i), NoteReason}, []byte("reason"), StoredDelivery)
		if b.Len() > 1000 || i == len(ids)-1 {
			if err := s.Apply(&b); err != nil {
				t.Fatal(err)
			}
			b.Reset()
		}
	}
	return identity
}

// viewedStates returns the identities of the delivery states that a view shows.
func viewedStates(t *testing.T, v *View) (ids []uint64) {
	t.Helper()
	err := v.Deliveries(func(d *Delivery, damage error) error {
		ids = append(ids, d.Identity)
		if damage != nil || d.Reason != "reason" {
			t.Errorf("%+v, %v", d, damage)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return ids
}

func TestDeliveryStatesGoWithTheirPacketsBeyondOneTransaction(t *testing.T) {
	const n = 3000
	const all = StoredDelivery | StoredReason
	for failAt := 2; failAt < 6; failAt++ {
		dir := t.TempDir()
		var cut powerCut
		o := Options{MemTable: minMemTable}
		o.tune.sync = cut.sync
		s, err := Open(dir, o)
		if err != nil {
			t.Fatal(err)
		}
		ids := fillStore(t, s, n)
		identity := fillStates(t, s, ids)
		// All go, but: the last packet stays, the one before it begins anew, and every second was moved
		// in this batch, so that its delivery state is deleted by itself.
		var b Batch
		for i, id := range ids[:n-1] {
			r := Removed{Large: i%7 == 0, Stored: all, Identity: identity(i)}
			if i%2 == 1 {
				b.Delete(id, Removed{Large: r.Large})
				id.Priority += 10
				b.Cancel(b.Put(id, &Packet{Identity: identity(i)}))
				b.DeleteDelivery(identity(i), all)
				continue
			}
			b.Delete(id, r)
		}
		b.Put(ids[n-2], &Packet{})
		b.PutDelivery(&Delivery{Identity: identity(n - 2)}, 0)
		b.PutNote(NoteID{identity(n - 2), NoteReason}, []byte("reason"), StoredDelivery)
		want := []uint64{identity(n - 2), identity(n - 1)}
		cut.at(failAt)
		if err := s.Apply(&b); !errors.Is(err, ErrUnknown) {
			t.Fatalf("sync %d failed and Apply gave %v, want ErrUnknown", failAt, err)
		}
		cut.over()
		_ = s.Close()

		v := openView(t, dir, ViewOptions{})
		if got := viewedStates(t, v); !slices.Equal(got, want) {
			t.Errorf("sync %d failed: a view shows %d delivery states: %.5v", failAt, len(got), got)
		}
		if err := v.Close(); err != nil {
			t.Fatal(err)
		}
		s = openTest(t, dir, Options{MemTable: minMemTable})
		got, tally := scanned(t, s)
		if len(got) != 2 || tally.Deliveries != 2 {
			t.Errorf("sync %d failed: %d packets and %d delivery states are left", failAt, len(got), tally.Deliveries)
		}
		if err := s.Verify(tally); err != nil {
			t.Error(err)
		}
		records := 0
		if err := s.scan(statePrefix, func(_, _ []byte) error { records++; return nil }); err != nil || records != 4 {
			t.Errorf("%d records of them are left, %v", records, err)
		}
	}
}

func TestDeletesBeyondOneTransactionLeaveNothingBehind(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{MemTable: 2 << 20})
	ids := fillStore(t, s, 15_000)
	var b Batch
	deleteAll(&b, ids)
	if err := s.Apply(&b); err != nil {
		t.Fatal(err)
	}
	for _, prefix := range []string{packetPrefix, payloadPrefix, redoKey} {
		err := s.scan(prefix, func(key, _ []byte) error {
			return errors.New("something is left")
		})
		if err != nil {
			t.Errorf("under %q: %v", prefix, err)
		}
	}
	b.Reset()
	deleteAll(&b, make([]PacketID, s.limits.MaxDeletes+1))
	if err := s.Apply(&b); !errors.Is(err, ErrTooLarge) {
		t.Fatalf("a batch over the limit of deletes gave %v, want ErrTooLarge", err)
	}
}

func TestLargePacketThatMovesInABatchOfManyDeletesKeepsItsPayload(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{MemTable: 2 << 20})
	ids := fillStore(t, s, 15_000)
	var b Batch
	deleteAll(&b, ids)
	moved := ids[7]
	moved.Priority++
	want := Packet{Key: []byte("k"), Payload: make([]byte, 1100)}
	b.Put(moved, &want)
	if err := s.Apply(&b); err != nil {
		t.Fatal(err)
	}
	err := s.Read([]PacketID{moved}, func(_ int, rec []byte) error {
		var p Packet
		if err := DecodeRecord(rec, &p); err != nil || !same(p, want) {
			t.Errorf("it reads as %+v, %v", p, err)
		}
		return nil
	})
	if err := errors.Join(err, s.Damage(moved)); err != nil {
		t.Error(err)
	}
	payloads := 0
	if err := s.scan(payloadPrefix, func(_, _ []byte) error { payloads++; return nil }); err != nil || payloads != 1 {
		t.Errorf("%d payloads are left, %v", payloads, err)
	}
}

func TestPacketDeletedAndPutAgainInABatchOfManyDeletesIsThere(t *testing.T) {
	small, large := []byte("new"), make([]byte, 1100)
	for name, row := range map[string]struct {
		was     int // of the packets that fillStore puts
		payload []byte
	}{
		"small, small": {1, small},
		"small, large": {1, large},
		"large, small": {7, small},
		"large, large": {7, large},
	} {
		t.Run(name, func(t *testing.T) {
			s := openTest(t, t.TempDir(), Options{MemTable: minMemTable})
			ids := fillStore(t, s, 3000)
			var b Batch
			deleteAll(&b, ids)
			b.Put(ids[row.was], &Packet{Payload: row.payload})
			if err := s.Apply(&b); err != nil {
				t.Fatal(err)
			}
			got, sum := scanned(t, s)
			if !slices.Equal(got, ids[row.was:row.was+1]) {
				t.Errorf("%d packets are there, want the one that was put", len(got))
			}
			if err := s.Verify(sum); err != nil {
				t.Error(err)
			}
			payloads := 0
			if err := s.scan(payloadPrefix, func(_, _ []byte) error { payloads++; return nil }); err != nil || payloads != len(row.payload)/1100 {
				t.Errorf("%d payload records are there, %v", payloads, err)
			}
		})
	}
}
