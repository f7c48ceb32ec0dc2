package recovery

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/index/keyspace"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// apply brings heads and fields to the source, and counts them.
func (s *source) apply(fn func(b *content.Batch)) {
	var b content.Batch
	fn(&b)
	s.Keys.Apply(&b)
	s.control.Keys, s.control.KeyHash = 0, 0
	s.Keys.Tally(&s.control.Tally)
}

// withKeys has a string and a hash that live, a string whose time is over, and one of each way to
// be left over.
func withKeys() *source {
	s := sound(1)
	s.apply(func(b *content.Batch) {
		b.PutHead(&content.Head{ID: 1, Kind: content.String, Name: []byte("flushed"), Version: 1, Value: []byte("x")}, content.Mark{})
		b.PutHead(&content.Head{ID: 2, Kind: content.Hash, Name: []byte("flushed too"), Version: 2}, content.Mark{})
		b.PutField(&content.Field{Hash: 2, ID: 3, Name: []byte("f"), Version: 3, Value: []byte("x")}, content.Mark{})
		b.SetFlush(content.Flush{{Keys: 10}})

		b.PutHead(&content.Head{ID: 10, Kind: content.String, Name: []byte("s"), Version: 11, Value: []byte("text"), Expiry: now + 1}, content.Mark{})
		b.PutHead(&content.Head{ID: 20, Kind: content.Hash, Name: []byte("h"), Version: 20}, content.Mark{})
		b.PutField(&content.Field{Hash: 20, ID: 21, Name: []byte("small"), Version: 22, Value: []byte("v")}, content.Mark{})
		b.PutField(&content.Field{Hash: 20, ID: 23, Name: []byte("large"), Version: 24, Value: make([]byte, 2000)}, content.Mark{})

		b.PutHead(&content.Head{ID: 3, Database: 7, Kind: content.String, Name: []byte("s"), Version: 4, Value: []byte("of 7")}, content.Mark{})
		b.PutHead(&content.Head{ID: 30, Kind: content.String, Name: []byte("over"), Version: 30, Value: make([]byte, 3000), Expiry: now}, content.Mark{})
		b.PutField(&content.Field{Hash: 40, ID: 41, Name: []byte("f"), Version: 42, Value: []byte("x")}, content.Mark{})
	})
	return s
}

func TestStringsAndHashesAreRestored(t *testing.T) {
	state, err := Restore(withKeys(), Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	names := state.Names
	if n, expiring := names.Len(0); state.Report.Keys != 4 || n != 3 || expiring != 2 || len(state.Report.Findings) > 0 {
		t.Fatalf("%d names, %d expire, report %+v", n, expiring, state.Report)
	}
	if other := names.Find(7, []byte("s")); other == nil || string(other.Small) != "of 7" {
		t.Errorf("the string of another database is %+v", other)
	}
	if over := names.Find(0, []byte("over")); over == nil || over.Expiry() != now {
		t.Errorf("what has expired is %+v, want it with its name until the broker deletes it", over)
	}
	s, h := names.Find(0, []byte("s")), names.Find(0, []byte("h"))
	if s.ID != 10 || s.Version != 11 || s.Kind() != keyspace.String || string(s.Small) != "text" || s.Expiry() != now+1 {
		t.Errorf("the string is %+v", s)
	}
	if h.ID != 20 || h.Version != 20 || h.Kind() != keyspace.Hash || h.Fields() != 2 || h.Expiry() != 0 {
		t.Errorf("the hash is %+v", h)
	}
	if f := h.Field([]byte("small")); f.ID != 21 || f.Version != 22 || string(f.Small) != "v" {
		t.Errorf("the small field is %+v", f)
	}
	if f := h.Field([]byte("large")); f.ID != 23 || f.Version != 24 || !f.Large() || f.Len() != 2000 {
		t.Errorf("the large field is %+v", f)
	}
}

func TestWhatIsFlushedOrWithoutAHashIsLeftOver(t *testing.T) {
	state, err := Restore(withKeys(), Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	type left struct {
		id, version uint64
		large       bool
		fields      int
	}
	var got []left
	for _, k := range state.Leftovers {
		got = append(got, left{k.ID, k.Version, k.Large(), k.Fields()})
	}
	want := []left{{1, 1, false, 0}, {2, 2, false, 1}, {40, 0, false, 1}}
	if !slices.Equal(got, want) {
		t.Errorf("left over %+v, want %+v", got, want)
	}
	if f := state.Leftovers[2].Field([]byte("f")); f == nil || f.ID != 41 || f.Version != 42 || f.Large() {
		t.Errorf("the field without a hash is %+v", f)
	}
}

// Otherwise the older one would be back after the newer one was deleted.
func TestTheOlderOfTwoKeysOrFieldsOfOneNameIsLeftOver(t *testing.T) {
	s := sound(1)
	s.apply(func(b *content.Batch) {
		for _, id := range []uint64{1, 3} {
			b.PutHead(&content.Head{ID: id, Kind: content.Hash, Name: []byte("twice"), Version: id, Value: []byte{}}, content.Mark{})
			for _, field := range []uint64{id + 10, id + 11} {
				b.PutField(&content.Field{Hash: id, ID: field, Name: []byte("f"), Version: field, Value: []byte("x")}, content.Mark{})
			}
		}
	})
	state, err := Restore(s, Options{Now: now})
	if err != nil || len(state.Report.Findings) != 3 {
		t.Fatalf("%v, report %+v, want a finding of the keys and one of the fields of each", err, state.Report)
	}
	if h := state.Names.Find(0, []byte("twice")); h.ID != 3 || h.Fields() != 1 || h.Field([]byte("f")).ID != 14 {
		t.Errorf("%d with %d fields is used, want 3 with its field 14", h.ID, h.Fields())
	}
	var left []uint64
	for _, k := range state.Leftovers {
		if left = append(left, k.ID, k.Version); k.Version != 0 {
			continue
		}
		for f := k.LastField(); f != nil; f = k.LastField() {
			left = append(left, f.ID)
			k.RemoveField(f)
		}
	}
	if want := []uint64{1, 0, 11, 1, 1, 3, 0, 13}; !slices.Equal(left, want) {
		t.Errorf("left over %d, want %d", left, want)
	}
}

func TestAHashThatHasLostItsFieldsIsLeftOver(t *testing.T) {
	s := sound(1)
	s.apply(func(b *content.Batch) {
		b.PutHead(&content.Head{ID: 1, Kind: content.Hash, Name: []byte("h"), Version: 1, Value: []byte{}}, content.Mark{})
	})
	state, err := Restore(s, Options{Now: now})
	if err != nil || state.Names.Find(0, []byte("h")) != nil || len(state.Leftovers) != 1 || state.Leftovers[0].Version != 1 {
		t.Errorf("%v, left over %+v, want the hash left over", err, state.Leftovers)
	}
}

func TestALostKeyIsRefusedUnlessAccepted(t *testing.T) {
	s := withKeys()
	s.control.Keys++
	if _, err := Restore(s, Options{Now: now}); !errors.Is(err, storage.ErrLoss) {
		t.Fatalf("got %v, want ErrLoss", err)
	}
	state, err := Restore(s, Options{Now: now, AcceptLoss: true})
	if err != nil || len(state.Report.Findings) != 1 {
		t.Fatalf("%v, findings %q, want the one that was accepted", err, state.Report.Findings)
	}
}

func TestPacketsOfDroppedQueuesAreInTheIndexUnderAQueueWithoutAName(t *testing.T) {
	s := sound(2)
	s.queues = append(s.queues, content.Queue{ID: 8, Name: []byte("gone"), Dropped: true}, content.Queue{ID: 3, Name: []byte("flushed")})
	s.put(content.PacketID{Queue: 8, Priority: 1, Seq: 5}, content.Meta{Size: 1})
	s.put(content.PacketID{Queue: 3, Priority: 1, Seq: 6}, content.Meta{Size: 1})
	s.apply(func(b *content.Batch) { b.SetFlush(content.Flush{{Queues: 4}}) })
	state, err := Restore(s, Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	if len(state.Queues) != 1 || state.Report.Queues != 1 || state.Report.Packets != 2 || len(state.Report.Findings) > 0 {
		t.Errorf("queues %+v, report %+v, want only what is not dropped", state.Queues, state.Report)
	}
	for i, id := range []uint32{8, 3} {
		q := state.Dropped[i]
		if q.ID != id || q.Name != nil || state.Index.Counts(q.Index).Ready != 1 {
			t.Errorf("dropped %+v with %+v, want queue %d with its packet", q, state.Index.Counts(q.Index), id)
		}
	}
}

func TestTheExpiryOfAQueueIsRestored(t *testing.T) {
	s := sound(1)
	s.queues[0].Expiry = now + 5
	state, err := Restore(s, Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	if at := state.Queues[0].Expiry; at != now+5 {
		t.Errorf("the queue expires at %d, want %d", at, now+5)
	}
}

func TestThePayloadOfAPacketWithoutAKeyIsFoundAfterARestart(t *testing.T) {
	s, payload := sound(1), bytes.Repeat([]byte("x"), 10)
	s.put(content.PacketID{Queue: 7, Priority: 9, Seq: 5}, content.Meta{Size: 10, Hash: content.ValueHash(payload)})
	state, err := Restore(s, Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	found, _ := state.Index.FindValue(state.Queues[0].Index, content.ValueHash(payload), index.Newest, index.Place{}, 0, nil)
	if len(found) != 1 || found[0].Seq != 5 {
		t.Errorf("found %+v", found)
	}
}
