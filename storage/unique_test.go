package storage

import (
	"github.com/holdfast-queue/holdfast/storage/content"
	"reflect"
	"strings"
	"testing"
)

// uniquesOf returns the ids of unique pushes of a store.
func uniquesOf(t *testing.T, s *Store) map[content.UniqueID]content.Unique {
	t.Helper()
	all := make(map[content.UniqueID]content.Unique)
	if err := s.Uniques(func(u *content.Unique) error { all[u.UniqueID] = *u; return nil }); err != nil {
		t.Fatal(err)
	}
	return all
}

func openUniques(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(dir, Options{Sync: SyncNever()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestIDsOfUniquePushesAreWrittenCountedAndDeleted(t *testing.T) {
	dir := t.TempDir()
	s := openUniques(t, dir)
	first, second := content.Unique{UniqueID: content.UniqueID{Queue: 1, Identity: 5}, ID: []byte("a"), Until: 0}, content.Unique{UniqueID: content.UniqueID{Queue: 2, Identity: 5}, ID: []byte("b"), Until: 7}
	apply := func(fn func(b *content.Batch), want ...content.Unique) {
		t.Helper()
		var b content.Batch
		fn(&b)
		if err := s.Apply(&b); err != nil {
			t.Fatal(err)
		}
		got, tally := uniquesOf(t, settled(t, s)), content.Tally{}
		for _, u := range want {
			tally.AddUnique(u.UniqueID)
			if !reflect.DeepEqual(got[u.UniqueID], u) {
				t.Errorf("%v is %+v", u.UniqueID, got[u.UniqueID])
			}
		}
		if len(got) != len(want) || s.Control().CheckKeys(tally, 0) != nil {
			t.Errorf("the store has %v, counted %d: want %v", got, s.Control().Keys, want)
		}
	}
	apply(func(b *content.Batch) {
		b.PutUnique(&first)
		b.PutUnique(&second)
		b.PutUnique(&content.Unique{UniqueID: content.UniqueID{Queue: 3, Identity: 6}, ID: []byte("c"), Until: 0})
		b.DeleteUnique(content.UniqueID{Queue: 3, Identity: 6})
		if b.Len() != 2 {
			t.Errorf("the batch has %d entries, want 2", b.Len())
		}
	}, first, second)
	apply(func(b *content.Batch) { // a packet moves away and back
		b.DeleteUnique(first.UniqueID)
		b.PutUnique(&first)
		if b.CancelUnique(first.UniqueID) || b.Len() != 1 {
			t.Error("a record of an earlier batch cannot be taken back")
		}
		b.DeleteUnique(second.UniqueID)
	}, first)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openUniques(t, dir)
	apply(func(b *content.Batch) { b.DeleteUnique(first.UniqueID) })
}

func TestALostIDOfAUniquePushIsALoss(t *testing.T) {
	s := openUniques(t, t.TempDir())
	var b content.Batch
	b.PutUnique(&content.Unique{UniqueID: content.UniqueID{Queue: 1, Identity: 5}, ID: []byte("a"), Until: 0})
	if err := s.Apply(&b); err != nil {
		t.Fatal(err)
	}
	if err := s.Verify(content.Tally{}); err == nil || !strings.Contains(err.Error(), "keys are missing") {
		t.Errorf("Verify says %v", err)
	}
}
