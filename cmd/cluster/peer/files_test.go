package peer

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/recovery/archive"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// filesOf writes an archive of a store with a packet of a mebibyte.
func filesOf(t *testing.T) func(io.Writer) error {
	t.Helper()
	s, err := storage.Open(t.TempDir(), storage.Options{Sync: storage.SyncNever()})
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	var b content.Batch
	b.Put(content.PacketID{Queue: 1, Priority: 1, Seq: 1}, &content.Packet{Identity: 1, Payload: make([]byte, 1<<20)})
	must(t, s.Apply(&b))
	return func(w io.Writer) error {
		f, err := s.Files()
		must(t, err)
		defer f.Close()
		return archive.Write(w, f, "test", time.Now())
	}
}

func TestACopyIsAFolderThatOpenTakes(t *testing.T) {
	write := filesOf(t)
	address := serveNode(t, Config{Files: func(_ context.Context, w io.Writer) error { return write(w) }})
	dir := filepath.Join(t.TempDir(), "copy")
	must(t, NewClient(nil).Fetch(t.Context(), address, dir))
	s, err := storage.Open(dir, storage.Options{})
	must(t, err)
	defer s.Close()
	if got := s.Control(); got.Live != 1 || got.Batch == 0 {
		t.Errorf("the copy has %+v", got)
	}
}

// short fails behind some bytes.
type short struct {
	io.Writer
	left int
}

var errShort = errors.New("the link is cut")

// Write implements io.Writer.
func (s *short) Write(b []byte) (int, error) {
	if len(b) > s.left {
		_, _ = s.Writer.Write(b[:s.left])
		return 0, errShort
	}
	s.left -= len(b)
	return s.Writer.Write(b)
}

func TestACopyThatIsCutLeavesNoFolder(t *testing.T) {
	write := filesOf(t)
	for _, at := range []int{1, 1000, 10_000, 1 << 19, 1<<20 + 5000} {
		address := serveNode(t, Config{Files: func(_ context.Context, w io.Writer) error { return write(&short{w, at}) }})
		dir := filepath.Join(t.TempDir(), "copy")
		err := NewClient(nil).Fetch(t.Context(), address, dir)
		if _, serr := os.Stat(dir); err == nil || !errors.Is(serr, os.ErrNotExist) {
			t.Errorf("cut behind %d bytes: %v, and of the folder %v", at, err, serr)
		}
	}
}

func TestACopyThatCannotBeginSaysWhy(t *testing.T) {
	address := serveNode(t, Config{Files: func(context.Context, io.Writer) error { return errors.New("the folder is closed") }})
	if err := NewClient(nil).Fetch(t.Context(), address, t.TempDir()); err == nil || !strings.Contains(err.Error(), "the folder is closed") {
		t.Errorf("got %v", err)
	}
}
