package storage

import (
	"errors"
	"fmt"
	"slices"
	"testing"
)

func TestDeliveryStatesAreReadByTheirIdentities(t *testing.T) {
	s := smallStore(t, t.TempDir())
	defer s.Close()
	const n = 200
	var b Batch
	for i := range uint64(n) {
		b.PutDelivery(&Delivery{Identity: i, Token: i}, 0)
		if i%3 == 0 {
			b.PutNote(NoteID{i, NoteReason}, fmt.Append(nil, "why ", i), 0)
		}
		if i%5 == 0 {
			b.PutNote(NoteID{i, NoteProgress}, fmt.Append(nil, "text ", i), 0)
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
	for _, ids := range [][]uint64{{}, {0}, {0, 1, 2, 3}, {5, 6, 30, 31, 90, 199}, {45}} {
		var got []string
		err := snapshot.ReadDeliveries(ids, func(i int, d *Delivery) error {
			if d.Identity != ids[i] || d.Token != ids[i] {
				t.Errorf("of %v, %d is %+v", ids, i, d)
			}
			got = append(got, fmt.Sprint(d.Identity, d.Reason, d.Progress))
			return nil
		})
		var want []string
		for _, id := range ids {
			reason, progress := "", ""
			if id%3 == 0 {
				reason = fmt.Sprint("why ", id)
			}
			if id%5 == 0 {
				progress = fmt.Sprint("text ", id)
			}
			want = append(want, fmt.Sprint(id, reason, progress))
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("read %q, %v, want %q", got, err, want)
		}
	}
	for _, ids := range [][]uint64{{n}, {3, n}, {7, 8, n + 5}} {
		if err := snapshot.ReadDeliveries(ids, func(int, *Delivery) error { return nil }); !errors.Is(err, ErrDamaged) {
			t.Errorf("%v gives %v, and the last one is not there", ids, err)
		}
	}
	stop := errors.New("stop")
	if err := snapshot.ReadDeliveries([]uint64{3, 4}, func(int, *Delivery) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("got %v, want the error of the function", err)
	}
}
