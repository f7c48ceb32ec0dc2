package daemon

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-queue/holdfast/netproto/admin"
	"github.com/holdfast-queue/holdfast/recovery/dump"
	"github.com/holdfast-queue/holdfast/storage"
)

// backupOf makes backups of a store. It reads the store itself, not what Config.WrapStore returned,
// because a backup is of what is on disk. A backup ends with its context, because w then fails.
func backupOf(store *storage.Store) admin.Backup {
	return func(_ context.Context, w admin.Writer, r admin.Request) error {
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
		_, err = dump.Dump(snapshot, w, dump.Options{Format: dump.Format(r.Format), Queues: r.Queues, Now: time.Now().UnixMilli()})
		return err
	}
}
