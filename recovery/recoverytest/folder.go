package recoverytest

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// InFolder makes a folder of what a fake holds.
func InFolder(tb testing.TB, src *Fake) (dir string) {
	tb.Helper()
	dir = tb.TempDir()
	Tamper(tb, dir, func(b *content.Batch) {
		b.SetMarks(src.Counted.Marks)
		for _, q := range src.Defined {
			b.PutQueue(q)
		}
		for i := range src.Stored {
			b.Put(src.Stored[i].ID, &src.Stored[i].Packet)
		}
		_ = src.Items(func(_ content.ValueID, h *content.Head, f *content.Field, _ error) error {
			if h != nil {
				b.PutHead(h, content.Mark{})
			} else {
				b.PutField(f, content.Mark{})
			}
			return nil
		})
		_ = src.Uniques(func(u *content.Unique) error { b.PutUnique(u); return nil })
		for i := range src.Tried {
			b.PutDelivery(&src.Tried[i].Delivery, 0)
		}
	})
	return dir
}

// Tamper changes a closed folder, or a new one, with batches, past all that the broker would
// refuse.
func Tamper(tb testing.TB, dir string, fns ...func(b *content.Batch)) {
	tb.Helper()
	s, err := storage.Open(dir, storage.Options{Sync: storage.SyncNever()})
	if err != nil {
		tb.Fatal(err)
	}
	for _, fn := range fns {
		var b content.Batch
		if fn(&b); err == nil {
			err = s.Apply(&b)
		}
	}
	if err := errors.Join(err, s.Close()); err != nil {
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
