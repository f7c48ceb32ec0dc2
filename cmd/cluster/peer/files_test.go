package peer

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/recovery/archive"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// source is a store that is copied.
type source struct {
	*testing.T
	*storage.Store
}

// newSource has a packet of a mebibyte in a table.
func newSource(t *testing.T) source {
	t.Helper()
	s, err := storage.Open(t.TempDir(), storage.Options{Sync: storage.SyncNever()})
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	source{t, s}.push()
	return source{t, s}
}

// push adds a packet, which is in a table then.
func (s source) push() {
	s.Helper()
	seq, b := s.Control().Live+1, content.Batch{}
	b.Put(content.PacketID{Queue: 1, Priority: 1, Seq: seq}, &content.Packet{Identity: seq, Payload: make([]byte, 1<<20)})
	must(s, s.Apply(&b))
	n, err := s.Snapshot()
	must(s, err)
	n.Close()
}

// write is Config.Files.
func (s source) write(w io.Writer, had []byte) error {
	f, err := s.Files()
	must(s, err)
	defer f.Close()
	must(s, f.LeaveOut(had))
	return archive.Write(w, f, "test", time.Now())
}

// tablesOf are the names of the tables in an archive.
func tablesOf(t *testing.T, b []byte) (names []string) {
	t.Helper()
	r, err := archive.NewReader(bytes.NewReader(b))
	must(t, err)
	for _, f := range r.Header.Files {
		if strings.HasSuffix(f.Name, ".sst") {
			names = append(names, f.Name)
		}
	}
	return names
}

func TestACopyIsMadeInRoundsAndTheLogIsHeldForTheLastOneAlone(t *testing.T) {
	s := newSource(t)
	var rounds [][]string // the tables of each
	held := 0             // rounds before that
	address := serveNode(t, Config{Files: func(w io.Writer, had []byte) error {
		var b bytes.Buffer
		err := s.write(&b, had)
		if len(rounds) == 0 {
			time.Sleep(shortRound) // so it is a long one
		}
		rounds = append(rounds, tablesOf(t, b.Bytes()))
		s.push()
		_, werr := w.Write(b.Bytes())
		return errors.Join(err, werr)
	}})
	dir := filepath.Join(t.TempDir(), "copy")
	must(t, NewClient(nil).Fetch(t.Context(), address, dir, func() error {
		s.push()
		held = len(rounds)
		return nil
	}))
	if held != 2 || len(rounds) != 3 || len(rounds[0]) != 1 || len(rounds[1]) != 1 || len(rounds[2]) != 2 {
		t.Errorf("the rounds have tables %q, of which %d without a hold", rounds, held)
	}
	c, err := storage.Open(dir, storage.Options{})
	must(t, err)
	defer c.Close()
	if err := c.Verify(c.Control().Tally); err != nil || c.Control().Live != 4 {
		t.Errorf("the copy has %+v, %v", c.Control(), err)
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
	s := newSource(t)
	for name, c := range map[string]struct {
		first, last int // bytes of a round behind which the link is cut
		hold        error
	}{
		"at once": {1, 0, nil}, "in the header": {1000, 0, nil}, "before a table": {10_000, 0, nil}, "in a table": {1 << 19, 0, nil},
		"at the end": {1<<20 + 5000, 0, nil}, "in the last round": {1 << 30, 1 << 10, nil}, "before the last round": {1 << 30, 0, errShort},
	} {
		var rounds atomic.Int32 // each may come before the one that was cut has ended
		address := serveNode(t, Config{Files: func(w io.Writer, had []byte) error {
			at := []int{c.first, c.last}[rounds.Add(1)-1]
			return s.write(&short{w, at}, had)
		}})
		dir := filepath.Join(t.TempDir(), "copy")
		err := NewClient(nil).Fetch(t.Context(), address, dir, func() error { return c.hold })
		if _, serr := os.Stat(dir); err == nil || !errors.Is(serr, os.ErrNotExist) {
			t.Errorf("cut %s: %v, and of the folder %v", name, err, serr)
		}
	}
}

func TestACopyEndsWithItsContext(t *testing.T) {
	s, done := newSource(t), make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	address := serveNode(t, Config{Files: func(w io.Writer, had []byte) error {
		err := s.write(&short{w, 1 << 19}, had)
		cancel()
		<-done
		return err
	}})
	dir := filepath.Join(t.TempDir(), "copy")
	err := NewClient(nil).Fetch(ctx, address, dir, nil)
	close(done)
	if _, serr := os.Stat(dir); !errors.Is(err, context.Canceled) || !errors.Is(serr, os.ErrNotExist) {
		t.Errorf("it ends with %v, and of the folder %v", err, serr)
	}
}

func TestACopyThatCannotBeginSaysWhy(t *testing.T) {
	address := serveNode(t, Config{Files: func(io.Writer, []byte) error { return errors.New("the folder is closed") }})
	if err := NewClient(nil).Fetch(t.Context(), address, t.TempDir(), nil); err == nil || !strings.Contains(err.Error(), "the folder is closed") {
		t.Errorf("got %v", err)
	}
}
