// Package compact makes a data folder as small as it gets.
package compact

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-queue/holdfast/recovery"
	"github.com/holdfast-queue/holdfast/storage"
)

// Options say how to compact.
type Options struct {
	// Now is the time in Unix milliseconds, by which packets have expired. 0 is the wall clock.
	Now int64
	// AcceptLoss compacts a folder that has lost acknowledged packets, too.
	AcceptLoss bool
	// Progress is told the step under way and how far it is: records in the step "read", else bytes
	// of tables. total is 0 while it is not known. The calls come from one goroutine. It may be nil.
	Progress func(step string, done, total int64)
}

// Report says what a compaction did.
type Report struct {
	recovery.Report                   // what was found, and is kept but for what has expired; Took is of the whole
	Before, After   storage.FileSizes // of the folder
}

// Folder compacts the data folder dir: it merges all tables into one sorted run, without what was
// deleted or has expired. What was dropped and not swept yet stays until a server has done so. All
// that has expired stays while a packet is claimed that has.
//
// The folder must be one that a server could start on: it is read as a start reads it, but without
// an index, so more than four billion packets are no reason to refuse it. Memory grows with
// delivery states, ids of unique pushes, and the names of strings, hashes and fields, and not with
// other packets. The error wraps one of the opening errors of package storage, or storage.ErrLoss
// when the packets are not those that the control record counts. It wraps storage.ErrFull, and
// nothing was done, when the disk has no room for new tables beside the old ones. When ctx ends,
// Folder stops after the step under way, and the error wraps that of ctx. However it ends, also by
// a kill, no packet is lost and it can be run again.
func Folder(ctx context.Context, dir string, o Options) (report Report, err error) {
	start := time.Now()
	o.Now = cmp.Or(o.Now, start.UnixMilli())
	if o.Progress == nil {
		o.Progress = func(string, int64, int64) {}
	}
	if report.Before, err = storage.Sizes(dir); err != nil {
		return report, err
	}
	store, err := storage.Open(dir, storage.Options{AcceptLoss: o.AcceptLoss})
	if err != nil {
		return report, err
	}
	err = errors.Join(compact(ctx, store, o, &report), store.Close())
	report.Took = time.Since(start)
	if err != nil {
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			err = fmt.Errorf("compaction stopped: %w; the folder is sound, with all its packets that have not expired", err)
		}
		return report, err
	}
	report.After, err = storage.Sizes(dir)
	return report, err
}

func compact(ctx context.Context, store *storage.Store, o Options, report *Report) error {
	control := store.Control()
	total := int64(control.Live + control.Keys)
	state, err := recovery.Restore(store, recovery.Options{
		Now: o.Now, AcceptLoss: o.AcceptLoss, NoIndex: true, Accepted: store.Accepted(),
		Progress: func(n int) { o.Progress("read", int64(n), max(int64(n), total)) },
	})
	if err != nil {
		return err
	}
	if report.Report = state.Report; ctx.Err() != nil {
		return ctx.Err()
	}
	if len(state.Held) > 0 {
		o.Now = 0 // what is claimed stays beyond its own time, and tables do not know of claims
	}
	return store.Compact(ctx, o.Now, o.Progress)
}
