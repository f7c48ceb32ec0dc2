package storage

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// items is what a store should hold of heads and fields.
type items map[ValueID]item

func (m items) mark(v ValueID) Mark {
	i, ok := m[v]
	if !ok {
		return Mark{}
	}
	return Mark{Version: i.version, Large: IsLarge(len(i.value))}
}

// put writes an item with a batch. A nil value is large and kept.
func put(b *Batch, v ValueID, i item, size int, keep bool, old Mark) {
	if v.IsField {
		b.PutField(&Field{v.ID, v.Field, i.name, i.version, i.value, size, keep, i.rest}, old)
		return
	}
	b.PutHead(&Head{v.ID, i.kind, i.db, i.name, i.version, i.expiry, i.value, size, keep, i.rest}, old)
}

func remove(b *Batch, v ValueID, old Mark) {
	if v.IsField {
		b.DeleteField(v.ID, v.Field, old)
		return
	}
	b.DeleteHead(v.ID, old)
}

// itemDrawer draws calls for one batch and carries them out on a model.
type itemDrawer struct {
	*rapid.T
	b       *Batch
	now     items
	old     items
	called  map[ValueID]bool
	version uint64
}

func drawItemID(t *rapid.T) ValueID {
	v := ValueID{ID: rapid.Uint64Range(1, 3).Draw(t, "id")}
	if v.IsField = rapid.Bool().Draw(t, "field"); v.IsField {
		v.Field = rapid.Uint64Range(1, 2).Draw(t, "field")
	}
	return v
}

func (d *itemDrawer) call() {
	v := drawItemID(d.T)
	old := d.old.mark(v)
	if d.called[v] {
		old = Mark{Version: 9999, Large: true} // only the first call's counts
	}
	d.called[v] = true
	d.version++
	i := item{kind: String, name: fmt.Appendf(nil, "name %d", d.version%3), version: d.version}
	if v.IsField {
		i.kind = 0
	} else if rapid.Bool().Draw(d.T, "expires") {
		i.expiry = 1 + int64(d.version) // long past: the store does not look
	}
	size := rapid.SampledFrom([]int{0, 1, 1024, 1025, 5000}).Draw(d.T, "size")
	value := bytes.Repeat([]byte{byte(d.version)}, size)
	before := d.now[v].value
	switch rapid.IntRange(0, 4).Draw(d.T, "call") {
	case 0:
		remove(d.b, v, old)
		delete(d.now, v)
		return
	case 1, 2:
		if IsLarge(len(before)) {
			put(d.b, v, i, len(before), true, old)
			value = before
			break
		}
		fallthrough
	default:
		i.value = value
		put(d.b, v, i, 0, false, old)
	}
	i.value = value
	d.now[v] = i
}

// stored reads all heads and fields, and how many large values there are.
func stored(t *rapid.T, s *Store) (got items, tally Tally, large int) {
	got = items{}
	if err := s.settle(); err != nil {
		t.Fatal(err)
	}
	add := func(v ValueID, i item, size int) error {
		if i.name, i.value = bytes.Clone(i.name), bytes.Clone(i.value); size != len(i.value) && i.value != nil {
			return fmt.Errorf("%v: size %d of %d bytes", v, size, len(i.value))
		}
		tally.AddItem(v, i.version)
		if i.value != nil {
			got[v] = i
			return nil
		}
		s.ReadValues([]ValueID{v}, func(_ int, value []byte, damage error) {
			if i.value = bytes.Clone(value); len(value) != size {
				t.Fatalf("%v: a value of %d bytes, want %d, %v", v, len(value), size, damage)
			}
			got[v] = i
		})
		return nil
	}
	err := errors.Join(
		eachItem(s, func(v ValueID, i item) error {
			size := int(i.size)
			i.size = 0
			return add(v, i, size)
		}),
		each(s, valuePrefix, func() { large++ }),
	)
	if err != nil {
		t.Fatal(err)
	}
	return got, tally, large
}

func (m items) check(t *rapid.T, s *Store) {
	got, tally, large := stored(t, s)
	want := 0
	for v, i := range m {
		if IsLarge(len(i.value)) {
			want++
		}
		if !sameItem(got[v], i) {
			t.Fatalf("%v is %.200v, want %.200v", v, fmt.Sprint(got[v]), fmt.Sprint(i))
		}
	}
	if len(got) != len(m) || large != want {
		t.Fatalf("%d items and %d large values, want %d and %d", len(got), large, len(m), want)
	}
	if err := s.Verify(tally); err != nil || tally.Keys != uint64(len(m)) {
		t.Fatalf("the control record says %v", err)
	}
}

func TestTheLastCallForAnItemWinsWhateverCameBefore(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{Window: minWindow, Sync: SyncNever()})
	version := uint64(0)
	rapid.Check(t, func(t *rapid.T) {
		old := items{}
		var b Batch
		for range rapid.IntRange(1, 5).Draw(t, "batches") {
			b.Reset()
			d := itemDrawer{T: t, b: &b, now: items{}, old: old, called: map[ValueID]bool{}, version: version}
			for v, i := range old {
				d.now[v] = i
			}
			for range rapid.IntRange(0, 12).Draw(t, "calls") {
				d.call()
				checkTotals(t, &b)
			}
			if err := s.Apply(&b); err != nil {
				t.Fatal(err)
			}
			version, old = d.version, d.now
			old.check(t, s)
		}
		b.Reset()
		for v := range old {
			remove(&b, v, old.mark(v))
		}
		if err := s.Apply(&b); err != nil {
			t.Fatal(err)
		}
		items{}.check(t, s)
	})
}

func TestALostHeadOrFieldIsFoundByTheTally(t *testing.T) {
	for _, key := range [][]byte{appendItemKey(nil, ValueID{ID: 1}), appendItemKey(nil, ValueID{1, 3, true})} {
		dir := t.TempDir()
		s := smallStore(t, dir)
		var b Batch
		b.PutHead(&Head{ID: 1, Kind: Hash, Name: []byte("a"), Version: 2}, Mark{})
		b.PutField(&Field{Hash: 1, ID: 3, Name: []byte("f"), Version: 4, Value: []byte("x")}, Mark{})
		if err := s.Apply(&b); err != nil {
			t.Fatal(err)
		}
		behind(t, s, func(e *entries) { e.delete(key) })
		_, tally := scanned(t, s)
		var mismatch *MismatchError
		if err := s.Verify(tally); !errors.As(err, &mismatch) || mismatch.What() != "keys" || mismatch.CameBack() || !errors.Is(err, ErrLoss) {
			t.Errorf("without %s: %v", describeKey(key), err)
		}
	}
}

func TestTheFlushRecordIsThereUntilItIsRemoved(t *testing.T) {
	dir := t.TempDir()
	s := smallStore(t, dir)
	var b Batch
	want := Flush{{Keys: math.MaxUint64, Queues: math.MaxUint32}}
	b.SetFlush(Flush{{Keys: 1}})
	b.SetFlush(want)
	if b.Len() != 1 {
		t.Errorf("%d entries", b.Len())
	}
	if err := errors.Join(s.Apply(&b), s.Close()); err != nil {
		t.Fatal(err)
	}
	s = smallStore(t, dir)
	if s.Flush() != want {
		t.Errorf("the flush record is %+v", s.Flush())
	}
	b.Reset()
	b.SetFlush(Flush{})
	if err := errors.Join(s.Apply(&b), s.Close()); err != nil {
		t.Fatal(err)
	}
	if s := smallStore(t, dir); s.Flush() != (Flush{}) {
		t.Errorf("the flush record is still %+v", s.Flush())
	}
}

func TestCopiedRecordsAreStoredLikePutOnes(t *testing.T) {
	s := smallStore(t, t.TempDir())
	var puts, copies Batch
	for i, g := range goldenPackets() {
		p := g.packet
		if p.Key == nil {
			p.Hash = ValueHash(p.Payload)
		}
		id := PacketID{1, 1, uint64(i)}
		rec := AppendRecord(nil, &p)
		put, copied := puts.Put(id, &p), copies.PutRecord(id, rec)
		if clear(rec); !bytes.Equal(copies.Record(copied), puts.Record(put)) { // it was copied
			t.Errorf("%s differs: %.100x", g.name, copies.Record(copied))
		}
	}
	if copies.Len() != puts.Len() || copies.Bytes() != puts.Bytes() {
		t.Errorf("%d entries and %d bytes, want %d and %d", copies.Len(), copies.Bytes(), puts.Len(), puts.Bytes())
	}
	copied, _ := copies.Body(nil, nil)
	put, _ := puts.Body(nil, nil)
	if !bytes.Equal(bytes.Join(copied, nil), bytes.Join(put, nil)) {
		t.Error("the entries differ")
	}
	if err := s.Apply(&copies); err != nil {
		t.Fatal(err)
	}
	if ids, tally := scanned(t, s); len(ids) != len(goldenPackets()) || s.Verify(tally) != nil {
		t.Errorf("%d packets", len(ids))
	}
}

func TestTheHashOfAPayloadIsKnownToAScan(t *testing.T) {
	s := smallStore(t, t.TempDir())
	var b Batch
	small, large := []byte("small"), bytes.Repeat([]byte("large"), 1000)
	b.Put(PacketID{1, 1, 1}, &Packet{Payload: small, Hash: 5})
	b.Put(PacketID{1, 1, 2}, &Packet{Payload: large, Hash: ValueHash(large)})
	b.Put(PacketID{1, 1, 3}, &Packet{Payload: large})
	b.Put(PacketID{1, 1, 4}, &Packet{Payload: small, Key: []byte("k")})
	if err := s.Apply(&b); err != nil {
		t.Fatal(err)
	}
	var got []uint64
	if err := settled(t, s).Packets(func(_ PacketID, m *Meta) error { got = append(got, m.Hash); return nil }); err != nil {
		t.Fatal(err)
	}
	if want := []uint64{ValueHash(small), 0x24c6cd9fa9a84aba, 0, 0}; !slices.Equal(got, want) || ValueHash(large) == 0 || ValueHash(nil) == 0 {
		t.Errorf("hashes %x, want %x", got, want)
	}
}
