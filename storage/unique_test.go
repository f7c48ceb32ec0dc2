package storage

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// uniquesOf returns the ids of unique pushes of a store.
func uniquesOf(t *testing.T, s *Store) map[UniqueID]Unique {
	t.Helper()
	all := make(map[UniqueID]Unique)
	if err := s.Uniques(func(u *Unique) error { all[u.UniqueID] = *u; return nil }); err != nil {
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
	first, second := Unique{UniqueID{1, 5}, []byte("a"), 0}, Unique{UniqueID{2, 5}, []byte("b"), 7}
	apply := func(fn func(b *Batch), want ...Unique) {
		t.Helper()
		var b Batch
		fn(&b)
		if err := s.Apply(&b); err != nil {
			t.Fatal(err)
		}
		got, tally := uniquesOf(t, settled(t, s)), Tally{}
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
	apply(func(b *Batch) {
		b.PutUnique(&first)
		b.PutUnique(&second)
		b.PutUnique(&Unique{UniqueID{3, 6}, []byte("c"), 0})
		b.DeleteUnique(UniqueID{3, 6})
		if b.Len() != 2 {
			t.Errorf("the batch has %d entries, want 2", b.Len())
		}
	}, first, second)
	apply(func(b *Batch) { // a packet moves away and back
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
	apply(func(b *Batch) { b.DeleteUnique(first.UniqueID) })
}

func TestALostIDOfAUniquePushIsALoss(t *testing.T) {
	s := openUniques(t, t.TempDir())
	var b Batch
	b.PutUnique(&Unique{UniqueID{1, 5}, []byte("a"), 0})
	if err := s.Apply(&b); err != nil {
		t.Fatal(err)
	}
	if err := s.Verify(Tally{}); err == nil || !strings.Contains(err.Error(), "keys are missing") {
		t.Errorf("Verify says %v", err)
	}
}

// olderFolder is a folder of version 4 with unique pushes: three packets, two windows, and strings
// that are none.
func olderFolder(t *testing.T, done bool) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(goldenFolder(4), "unique.txt"))
	if err != nil {
		t.Fatal(err)
	}
	record, err := hex.DecodeString(strings.Fields(string(text))[2]) // with the identity 2^63 + 1
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s := openUniques(t, dir)
	var b Batch
	b.SetMarks(Marks{NextSeq: 1<<63 + 100, LowSeq: 1<<63 - 1, NextQueue: 3, LastKey: 9})
	b.PutQueue(Queue{ID: 1, Name: []byte("q:r")})
	b.PutQueue(Queue{ID: 2, Name: []byte("gone"), Dropped: true})
	b.PutRecord(PacketID{1, 1, 1<<63 + 9}, record)
	b.Put(PacketID{1, 1, 1<<63 + 2}, &Packet{})
	for i, name := range []string{"unique:3:q:r:a:b", "unique:4:none:x", "unique:3:q:r:forever", "unique:3:q:r:", "unique:9:q:r:a", "other"} {
		h := Head{ID: uint64(i + 1), Kind: String, Name: []byte(name), Version: uint64(i + 1), Expiry: 4_000_000_000_123, Value: []byte("7")}
		if i == 2 {
			h.Expiry = 0
		}
		b.PutHead(&h, Mark{})
	}
	if done { // as a start that was cut short left it
		b.PutUnique(&Unique{UniqueID{1, 1<<63 + 1}, []byte("order-17"), 0})
		b.DeleteHead(1, Mark{})
		b.PutUnique(&Unique{UniqueID{1, 1<<63 + 7}, []byte("a:b"), 4_000_000_000_123})
	}
	if err := s.Apply(&b); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, formatName), []byte("4\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestUniquePushesOfOlderFoldersAreTakenOver(t *testing.T) {
	skipOlder(t, 4)
	for _, done := range []bool{false, true} {
		dir := olderFolder(t, done)
		for range 2 { // the second start finds nothing to do
			s := openUniques(t, dir)
			want := map[UniqueID]Unique{}
			for _, u := range []Unique{
				{UniqueID{1, 1<<63 + 1}, []byte("order-17"), 0},
				{UniqueID{1, 1<<63 + 7}, []byte("a:b"), 4_000_000_000_123},
				{UniqueID{3, 1<<63 + 7}, []byte("x"), 4_000_000_000_123},
			} {
				want[u.UniqueID] = u
			}
			if got := uniquesOf(t, s); !reflect.DeepEqual(got, want) {
				t.Errorf("cut short %v: the ids are %v, want %v", done, got, want)
			}
			var names []string
			var scan Tally
			for id := range want {
				scan.AddUnique(id)
			}
			_ = s.Heads(func(h *Head) error {
				names = append(names, string(h.Name))
				scan.AddItem(ValueID{ID: h.ID}, h.Version)
				return nil
			})
			if len(names) != 4 || s.Control().CheckKeys(scan, 0) != nil || s.Control().NextQueue != 4 {
				t.Errorf("cut short %v: the strings %v are left, %+v", done, names, s.Control())
			}
			queues := 0
			_ = s.Queues(func(q Queue) error {
				if queues++; q.ID == 3 && string(q.Name) != "none" {
					t.Errorf("queue 3 is called %q", q.Name)
				}
				return nil
			})
			if queues != 3 {
				t.Errorf("there are %d queues, want 3", queues)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
