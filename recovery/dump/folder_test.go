package dump

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-queue/holdfast/recovery/verify"
	"github.com/holdfast-queue/holdfast/storage"
)

// verified is what a verification says of a closed folder.
func verified(t testing.TB, dir string) verify.Report {
	t.Helper()
	report, err := verify.Folder(t.Context(), dir, verify.Options{Now: later})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// tamper changes a closed folder with batches.
func tamper(t testing.TB, dir string, fns ...func(b *storage.Batch)) {
	t.Helper()
	s, err := storage.Open(dir, storage.Options{Unfinished: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, fn := range fns {
		var b storage.Batch
		fn(&b)
		if err := s.Apply(&b); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// at is a packet of manyPackets.
func at(i int) storage.PacketID {
	const n = 2100
	return storage.PacketID{Queue: uint32(1 + i*7/n), Priority: uint32(1 + i*21/n), Seq: 1<<63 + uint64(i)}
}

func copyOf(t testing.TB, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}
