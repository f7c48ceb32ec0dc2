package storage

import (
	"errors"
	"fmt"
	"github.com/holdfast-queue/holdfast/storage/content"
	"testing"
)

func TestDeliveryStatesAreReadByTheirIdentities(t *testing.T) {
	s := smallStore(t, t.TempDir())
	defer s.Close()
	const n = 200
	var b content.Batch
	for i := range uint64(n) {
		b.PutDelivery(&content.Delivery{Identity: i, Token: i}, 0)
		if i%3 == 0 {
			b.PutNote(content.NoteID{Identity: i, Kind: content.NoteReason}, fmt.Append(nil, "why ", i), 0)
		}
		if i%5 == 0 {
			b.PutNote(content.NoteID{Identity: i, Kind: content.NoteProgress}, fmt.Append(nil, "text ", i), 0)
		}
	}
	if err := s.Apply(&b); err != nil {
		t.Fatal(err)
	}
	snapshot, err := s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer snapshot.Close()
	read, done := snapshot.ReadDeliveries()
	defer done()
	for _, id := range []uint64{0, 0, 1, 2, 5, 6, 30, 90, 199, 198, 45, 3} {
		reason, progress := "", ""
		if id%3 == 0 {
			reason = fmt.Sprint("why ", id)
		}
		if id%5 == 0 {
			progress = fmt.Sprint("text ", id)
		}
		d, err := read(id)
		if err != nil || *d != (content.Delivery{Identity: id, Token: id, State: content.Ready, Reason: reason, Progress: progress}) {
			t.Errorf("%d is %+v, %v", id, d, err)
		}
	}
	for _, id := range []uint64{n, n + 5} {
		if d, err := read(id); !errors.Is(err, ErrDamaged) {
			t.Errorf("%d gives %+v, %v, and it is not there", id, d, err)
		}
	}
}
