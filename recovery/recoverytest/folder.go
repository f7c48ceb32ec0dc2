package recoverytest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-queue/holdfast/storage"
)

// InFolder makes a folder of what a fake holds.
func InFolder(tb testing.TB, src *Fake) (dir string) {
	tb.Helper()
	const perBatch = 500
	dir = tb.TempDir()
	s, err := storage.Open(dir, storage.Options{Sync: storage.SyncNever()})
	if err != nil {
		tb.Fatal(err)
	}
	var b storage.Batch
	b.SetMarks(src.Counted.Marks)
	for _, q := range src.Defined {
		b.PutQueue(q)
	}
	for i := range src.Stored {
		b.Put(src.Stored[i].ID, &src.Stored[i].Packet)
		if i%perBatch == 0 || b.Bytes() > 1<<20 {
			apply(tb, s, &b)
		}
	}
	err = src.Items(func(_ storage.ValueID, h *storage.Head, f *storage.Field, _ error) error {
		if h != nil {
			b.PutHead(h, storage.Mark{})
		} else {
			b.PutField(f, storage.Mark{})
		}
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	_ = src.Uniques(func(u *storage.Unique) error { b.PutUnique(u); return nil })
	for i := range src.Tried {
		if src.Tried[i].put(&b); i%perBatch == 0 {
			apply(tb, s, &b)
		}
	}
	apply(tb, s, &b)
	if err := s.Close(); err != nil {
		tb.Fatal(err)
	}
	return dir
}

func apply(tb testing.TB, s *storage.Store, b *storage.Batch) {
	tb.Helper()
	if err := s.Apply(b); err != nil {
		tb.Fatal(err)
	}
	b.Reset()
}

// Tamper changes a closed folder with batches, past all that the broker would refuse.
func Tamper(tb testing.TB, dir string, fns ...func(b *storage.Batch)) {
	tb.Helper()
	s, err := storage.Open(dir, storage.Options{Unfinished: true})
	if err != nil {
		tb.Fatal(err)
	}
	for _, fn := range fns {
		var b storage.Batch
		fn(&b)
		apply(tb, s, &b)
	}
	if err := s.Close(); err != nil {
		tb.Fatal(err)
	}
}

// CopyOf copies a closed folder.
func CopyOf(tb testing.TB, dir string) string {
	tb.Helper()
	to := filepath.Join(tb.TempDir(), "copy")
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		tb.Fatal(err)
	}
	return to
}
