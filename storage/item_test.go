package storage

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/holdfast-queue/holdfast/storage/content"
	"pgregory.net/rapid"
)

// items is what a store should hold of heads and fields.
type items map[content.ValueID]content.Item

func (m items) mark(v content.ValueID) content.Mark {
	i, ok := m[v]
	if !ok {
		return content.Mark{}
	}
	return content.Mark{Version: i.Version, Large: content.IsLarge(len(i.Value))}
}

// put writes an item with a batch. A nil value is large and kept.
func put(b *content.Batch, v content.ValueID, i content.Item, size int, keep bool, old content.Mark) {
	if v.IsField {
		b.PutField(&content.Field{Hash: v.ID, ID: v.Field, Name: i.Name, Version: i.Version, Value: i.Value, Size: size, KeepValue: keep, Rest: i.Rest}, old)
		return
	}
	b.PutHead(&content.Head{ID: v.ID, Kind: i.Kind, Database: i.Database, Name: i.Name, Version: i.Version, Expiry: i.Expiry, Value: i.Value, Size: size, KeepValue: keep, Rest: i.Rest}, old)
}

func remove(b *content.Batch, v content.ValueID, old content.Mark) {
	if v.IsField {
		b.DeleteField(v.ID, v.Field, old)
		return
	}
	b.DeleteHead(v.ID, old)
}

// itemDrawer draws calls for one batch and carries them out on a model.
type itemDrawer struct {
	*rapid.T
	b       *content.Batch
	now     items
	old     items
	called  map[content.ValueID]bool
	version uint64
}

func drawItemID(t *rapid.T) content.ValueID {
	v := content.ValueID{ID: rapid.Uint64Range(1, 3).Draw(t, "id")}
	if v.IsField = rapid.Bool().Draw(t, "field"); v.IsField {
		v.Field = rapid.Uint64Range(1, 2).Draw(t, "field")
	}
	return v
}

func (d *itemDrawer) call() {
	v := drawItemID(d.T)
	old := d.old.mark(v)
	if d.called[v] {
		old = content.Mark{Version: 9999, Large: true} // only the first call's counts
	}
	d.called[v] = true
	d.version++
	i := content.Item{Kind: content.String, Name: fmt.Appendf(nil, "name %d", d.version%3), Version: d.version}
	if v.IsField {
		i.Kind = 0
	} else if rapid.Bool().Draw(d.T, "expires") {
		i.Expiry = 1 + int64(d.version) // long past: the store does not look
	}
	size := rapid.SampledFrom([]int{0, 1, 1024, 1025, 5000}).Draw(d.T, "size")
	value := bytes.Repeat([]byte{byte(d.version)}, size)
	before := d.now[v].Value
	switch rapid.IntRange(0, 4).Draw(d.T, "call") {
	case 0:
		remove(d.b, v, old)
		delete(d.now, v)
		return
	case 1, 2:
		if content.IsLarge(len(before)) {
			put(d.b, v, i, len(before), true, old)
			value = before
			break
		}
		fallthrough
	default:
		i.Value = value
		put(d.b, v, i, 0, false, old)
	}
	i.Value = value
	d.now[v] = i
}

// stored reads all heads and fields, and how many large values there are.
func stored(t *rapid.T, s *Store) (got items, tally content.Tally, large int) {
	got = items{}
	if err := s.settle(); err != nil {
		t.Fatal(err)
	}
	add := func(v content.ValueID, i content.Item, size int) error {
		if i.Name, i.Value = bytes.Clone(i.Name), bytes.Clone(i.Value); size != len(i.Value) && i.Value != nil {
			return fmt.Errorf("%v: size %d of %d bytes", v, size, len(i.Value))
		}
		tally.AddItem(v, i.Version)
		if i.Value != nil {
			got[v] = i
			return nil
		}
		s.ReadValues([]content.ValueID{v}, func(_ int, value []byte, damage error) {
			if i.Value = bytes.Clone(value); len(value) != size {
				t.Fatalf("%v: a value of %d bytes, want %d, %v", v, len(value), size, damage)
			}
			got[v] = i
		})
		return nil
	}
	err := errors.Join(
		eachItem(s, func(v content.ValueID, i content.Item) error {
			size := int(i.Size)
			i.Size = 0
			return add(v, i, size)
		}),
		each(s, content.ValuePrefix, func() { large++ }),
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
		if content.IsLarge(len(i.Value)) {
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
		var b content.Batch
		for range rapid.IntRange(1, 5).Draw(t, "batches") {
			b.Reset()
			d := itemDrawer{T: t, b: &b, now: items{}, old: old, called: map[content.ValueID]bool{}, version: version}
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
	for _, key := range [][]byte{content.AppendItemKey(nil, content.ValueID{ID: 1}), content.AppendItemKey(nil, content.ValueID{ID: 1, Field: 3, IsField: true})} {
		dir := t.TempDir()
		s := smallStore(t, dir)
		var b content.Batch
		b.PutHead(&content.Head{ID: 1, Kind: content.Hash, Name: []byte("a"), Version: 2}, content.Mark{})
		b.PutField(&content.Field{Hash: 1, ID: 3, Name: []byte("f"), Version: 4, Value: []byte("x")}, content.Mark{})
		if err := s.Apply(&b); err != nil {
			t.Fatal(err)
		}
		behind(t, s, func(e *entries) { e.delete(key) })
		_, tally := scanned(t, s)
		var mismatch *content.MismatchError
		if err := s.Verify(tally); !errors.As(err, &mismatch) || mismatch.What() != "keys" || mismatch.CameBack() || !errors.Is(err, ErrLoss) {
			t.Errorf("without %s: %v", content.DescribeKey(key), err)
		}
	}
}

func TestTheFlushRecordIsThereUntilItIsRemoved(t *testing.T) {
	dir := t.TempDir()
	s := smallStore(t, dir)
	var b content.Batch
	want := content.Flush{{Keys: math.MaxUint64, Queues: math.MaxUint32}}
	b.SetFlush(content.Flush{{Keys: 1}})
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
	b.SetFlush(content.Flush{})
	if err := errors.Join(s.Apply(&b), s.Close()); err != nil {
		t.Fatal(err)
	}
	if s := smallStore(t, dir); s.Flush() != (content.Flush{}) {
		t.Errorf("the flush record is still %+v", s.Flush())
	}
}

func TestCopiedRecordsAreStoredLikePutOnes(t *testing.T) {
	s := smallStore(t, t.TempDir())
	var puts, copies content.Batch
	for i, g := range goldenPackets() {
		p := g.packet
		if p.Key == nil {
			p.Hash = content.ValueHash(p.Payload)
		}
		id := content.PacketID{Queue: 1, Priority: 1, Seq: uint64(i)}
		rec := content.AppendRecord(nil, &p)
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
	var b content.Batch
	small, large := []byte("small"), bytes.Repeat([]byte("large"), 1000)
	b.Put(content.PacketID{Queue: 1, Priority: 1, Seq: 1}, &content.Packet{Payload: small, Hash: 5})
	b.Put(content.PacketID{Queue: 1, Priority: 1, Seq: 2}, &content.Packet{Payload: large, Hash: content.ValueHash(large)})
	b.Put(content.PacketID{Queue: 1, Priority: 1, Seq: 3}, &content.Packet{Payload: large})
	b.Put(content.PacketID{Queue: 1, Priority: 1, Seq: 4}, &content.Packet{Payload: small, Key: []byte("k")})
	if err := s.Apply(&b); err != nil {
		t.Fatal(err)
	}
	var got []uint64
	if err := settled(t, s).Packets(func(_ content.PacketID, m *content.Meta) error { got = append(got, m.Hash); return nil }); err != nil {
		t.Fatal(err)
	}
	if want := []uint64{content.ValueHash(small), 0x24c6cd9fa9a84aba, 0, 0}; !slices.Equal(got, want) || content.ValueHash(large) == 0 || content.ValueHash(nil) == 0 {
		t.Errorf("hashes %x, want %x", got, want)
	}
}
