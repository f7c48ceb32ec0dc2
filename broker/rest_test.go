package broker_test

import (
	"errors"
	"testing"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/recovery"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// A later version wrote a folder, in which each record has a field that this one does not know.
func TestWhatALaterVersionWroteIsWrittenBack(t *testing.T) {
	const sequence = content.FirstSeq + 7
	dir, rest := t.TempDir(), content.Rest{Bytes: "\x3c\x2a", Fields: 1} // field 60 is 42
	store, err := storage.Open(dir, storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var b content.Batch
	b.PutQueue(content.Queue{ID: 1, Name: []byte("jobs"), New: true, Settings: &content.Settings{MaxAttempts: 5}, Rest: rest})
	b.Put(content.PacketID{Queue: 1, Priority: 1, Seq: sequence}, &content.Packet{Payload: []byte("x")})
	b.PutDelivery(&content.Delivery{Identity: sequence, State: content.Ready, Attempts: 1, Rest: rest}, 0)
	b.PutHead(&content.Head{ID: 1, Kind: content.String, Name: []byte("string"), Version: 2, Value: []byte("v"), Rest: rest}, content.Mark{})
	b.PutHead(&content.Head{ID: 3, Kind: content.Hash, Name: []byte("hash"), Version: 4, Value: []byte{}, Rest: rest}, content.Mark{})
	b.PutField(&content.Field{Hash: 3, ID: 5, Name: []byte("f"), Version: 6, Value: []byte("v"), Rest: rest}, content.Mark{})
	b.SetMarks(content.Marks{NextSeq: sequence + 1, LowSeq: content.FirstSeq - 1, NextQueue: 2, LastKey: 6})
	if err := errors.Join(store.Apply(&b), store.Close()); err != nil {
		t.Fatal(err)
	}

	h := &harness{t: t}
	h.now.Store(startTime)
	if store, err = storage.Open(dir, storage.Options{}); err != nil {
		t.Fatal(err)
	}
	state, err := recovery.Restore(store, recovery.Options{Now: startTime})
	if err != nil {
		t.Fatal(err)
	}
	h.b = newDriver(store, state, broker.Options{}, h.clocks)
	h.together(func(tx *broker.Tx) error { // each record is written anew
		_, claim := tx.Claim([]byte("jobs"), broker.ClaimRequest{Selection: broker.Selection{Count: 1}, Lease: 1000})
		_, expire := tx.SetExpiry([]byte("string"), startTime+1_000_000)
		_, hash := tx.SetExpiry([]byte("hash"), startTime+1_000_000)
		_, field := tx.SetField([]byte("hash"), []byte("f"), []byte("w"))
		settings := tx.SetSettings([]byte("jobs"), content.Settings{MaxAttempts: 6, Lease: 1000})
		return errors.Join(claim, expire, hash, field, settings)
	})
	if err := errors.Join(h.b.Close(), store.Close()); err != nil {
		t.Fatal(err)
	}

	view, err := storage.OpenView(dir, storage.ViewOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer view.Close()
	records := 0
	see := func(what string, changed bool, got content.Rest) {
		records++
		if !changed || got != rest {
			t.Errorf("%s: changed is %v, and it has %+v", what, changed, got)
		}
	}
	err = view.Walk(storage.Visitor{
		Whole: true,
		Queue: func(q content.Queue) error {
			see("the definition", q.Settings.MaxAttempts == 6, q.Rest)
			return nil
		},
		State: func(d *content.Delivery, _ content.Stored, damage error) error {
			see("the delivery state", index.State(d.State) == index.Claimed, d.Rest)
			return damage
		},
		Item: func(v content.ValueID, h *content.Head, f *content.Field, damage error) error {
			if f != nil {
				see(v.String(), string(f.Value) == "w", f.Rest)
				return damage
			}
			see(v.String(), h.Expiry == startTime+1_000_000, h.Rest)
			return damage
		},
	})
	if err != nil || records != 5 {
		t.Errorf("%d records, %v", records, err)
	}
}
