package daemon

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/holdfast-queue/holdfast/netproto/admin"
	"github.com/holdfast-queue/holdfast/recovery"
	"github.com/holdfast-queue/holdfast/storage"
)

// backupOf makes what hands out copies of a store. It reads the store as it was opened, not what
// Config.WrapStore made of it: a copy is of what is on disk. w fails when ctx ends, which ends the copy.
func backupOf(store *storage.Store) admin.Backup {
	return func(_ context.Context, w io.Writer, r admin.Request) error {
		format, err := recovery.ParseFormat(r.Format)
		o := recovery.DumpOptions{Format: format, Queues: r.Queues, Now: time.Now().UnixMilli()}
		if err == nil {
			_, err = recovery.Dump(nothing{}, io.Discard, o)
		}
		if err != nil {
			return fmt.Errorf("%w: %w", admin.ErrRequest, err)
		}
		snapshot, err := store.Snapshot()
		if err != nil {
			return err
		}
		defer snapshot.Close()
		_, err = recovery.Dump(snapshot, w, o)
		return err
	}
}

// nothing is an empty store: what cannot be dumped of it is a mistake of whoever asks.
type nothing struct{}

func (nothing) Control() (c storage.Control)           { return c }
func (nothing) Queues(func(storage.Queue) error) error { return nil }
func (nothing) Load() []byte                           { return nil }

func (nothing) Records(storage.QueueRange, func(storage.PacketID, []byte, error) error) error {
	return nil
}
