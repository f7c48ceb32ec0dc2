package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/holdfast-queue/holdfast/netproto/admin"
	"github.com/holdfast-queue/holdfast/recovery/archive"
	"github.com/holdfast-queue/holdfast/recovery/dump"
	"github.com/holdfast-queue/holdfast/storage"
)

// backupOf makes backups of a store. It reads the store itself, not what Config.WrapStore returned,
// because a backup is of what is on disk. A backup ends with its context, because w then fails. The
// store may be opened later: no backup is made before the server serves.
func backupOf(from *atomic.Pointer[storage.Store], version string) admin.Backup {
	return func(_ context.Context, w admin.Writer, r admin.Request) error {
		store := from.Load()
		out := &polite{Writer: w, busy: busy(store)}
		if r.Format == admin.FormatTar {
			return archiveTo(out, store, version, nil)
		}
		if err := dump.CheckPatterns(r.Queues); err != nil {
			return fmt.Errorf("%w: %w", admin.ErrRequest, err)
		}
		snapshot, err := store.Snapshot()
		if err != nil {
			return err
		}
		defer snapshot.Close()
		if len(r.Queues) == 0 {
			w.Expect(snapshot.Control().Live)
		}
		_, err = dump.Dump(snapshot, out, dump.Options{Format: dump.Format(r.Format), Queues: r.Queues, May: r.May, Now: time.Now().UnixMilli()})
		return err
	}
}

// Archive writes the files of the store that is served, or that follows. had is the list of tables
// of a copy that needs no other ones; empty: it needs all.
func (s *Server) Archive(w io.Writer, had []byte) error {
	store := s.store.Load()
	if store == nil {
		return errors.New("no folder is open yet")
	}
	return archiveTo(w, store, s.c.Version, had)
}

// archiveTo makes a backup of a store's files.
func archiveTo(w io.Writer, s *storage.Store, version string, had []byte) error {
	now := time.Now()
	files, err := s.Files()
	if err != nil {
		return err
	}
	defer files.Close()
	if err := files.LeaveOut(had); err != nil {
		return err
	}
	return archive.Write(w, files, version, now)
}

// busy tells each time whether clients have written since. It tells no where the disk is short of
// room: a backup keeps what is deleted, and should end.
func busy(s *storage.Store) func() bool {
	last := s.Control().Batch
	return func() bool {
		before := last
		last = s.Control().Batch
		return last != before && s.Space().Level == storage.Normal
	}
}

// polite writes a backup. While clients write, it rests after each piece: the processors and the
// disk are theirs.
type polite struct {
	io.Writer
	busy  func() bool
	began time.Time // the work since the last rest
}

const (
	restPart    = 19 // times as long as the work is the rest, up to the longest
	longestRest = 20 * time.Millisecond
)

// Write implements io.Writer.
func (p *polite) Write(b []byte) (int, error) {
	n, err := p.Writer.Write(b)
	if p.busy() && !p.began.IsZero() {
		time.Sleep(min(restPart*time.Since(p.began), longestRest))
	}
	p.began = time.Now()
	return n, err
}
