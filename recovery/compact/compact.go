// Package compact makes a data folder as small as it gets.
package compact

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-queue/holdfast/recovery/contents"
	"github.com/holdfast-queue/holdfast/storage"
)

// Options say how to compact.
type Options struct {
	// Now is the time in Unix milliseconds; what has expired by then is deleted. 0 is the wall clock.
	Now int64
	// AcceptLoss compacts a folder that has lost acknowledged packets, too.
	AcceptLoss bool
	// Progress is told the step under way and how far it is: records in the steps "read" and
	// "delete expired", else bytes of tables. total is 0 while it is not known. The calls come from
	// one goroutine. It may be nil.
	Progress func(step string, done, total int64)
}

// Report says what a compaction did.
type Report struct {
	Packets       int64             // kept
	Expired       int64             // packets deleted: their time had passed, or their queue was dropped
	Keys          int64             // strings and hashes, kept
	Findings      []string          // losses that were accepted, a sentence each
	Before, After storage.FileSizes // of the folder
	Took          time.Duration
}

// Folder compacts the data folder dir: it deletes what has expired or was dropped, merges all
// tables, collects the value log and removes the reserve file, which the next start makes again.
//
// The folder must be one that a server could start on: the error wraps one of the opening errors of
// package storage, or storage.ErrLoss when the packets are not those that the control record
// counts. It wraps storage.ErrFull, and nothing was done, when the disk has no room for new tables
// beside the old ones. When ctx ends, Folder stops after the step under way, and the error wraps
// that of ctx. However it ends, also by a kill, no packet is lost and it can be run again.
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
	c := compactor{Options: o, ctx: ctx, store: store, report: &report}
	for _, f := range store.Accepted() {
		c.accepted(f)
	}
	err = errors.Join(c.run(), store.Close())
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

// compactor is one compaction under way.
type compactor struct {
	Options
	ctx    context.Context
	store  *storage.Store
	report *Report
}

func (c *compactor) run() error {
	dead, err := c.read()
	if err != nil {
		return err
	}
	if dead > 0 {
		// The database drops only some of it by itself, and some time later.
		err := contents.DeleteDead(c.ctx, c.store, c.Now, func(n int64) { c.Progress("delete expired", n, dead) })
		if err != nil {
			return err
		}
	}
	return c.store.Compact(c.ctx, func(p storage.CompactProgress) { c.Progress(p.Step, p.Done, p.Total) })
}

// accepted notes a loss that Options.AcceptLoss passes over.
func (c *compactor) accepted(loss any) {
	c.report.Findings = append(c.report.Findings, fmt.Sprintf("%v (accepted)", loss))
}

// read compares the folder with the control record, as a start does, and counts the records that
// can be deleted. It builds no index, which would take memory for an order that does not matter
// here.
func (c *compactor) read() (dead int64, err error) {
	defined := make(map[uint32]bool)
	orphans := 0
	count := func(is bool, live *int64) error {
		if is {
			dead++
		} else {
			*live++
		}
		return nil
	}
	fields, uniques := int64(0), int64(0)
	control := c.store.Control()
	total := int64(control.Live + control.Keys)
	tally, err := contents.Walk(c.ctx, c.store, c.Now, contents.Visitor{
		Queue: func(q *storage.Queue, is bool) error {
			defined[q.ID] = true
			if is {
				dead++
			}
			return nil
		},
		Head:   func(_ *storage.Head, is bool) error { return count(is, &c.report.Keys) },
		Field:  func(_ *storage.Field, is bool) error { return count(is, &fields) },
		Orphan: func(*contents.Delivery) error { dead++; return nil },
		Unique: func(_ storage.UniqueID, is bool) error { return count(is, &uniques) },
		Packet: func(id storage.PacketID, _ *storage.Meta, _ *contents.Delivery, is bool) error {
			if is {
				c.report.Expired++
			} else if !defined[id.Queue] {
				orphans++
			}
			return count(is, &c.report.Packets)
		},
		Progress: func(n int64) { c.Progress("read", n, max(n, total)) },
	})
	if err != nil {
		return 0, err
	}
	err = c.store.Verify(tally)
	if err == nil && orphans > 0 {
		err = fmt.Errorf("%w: the definitions of the queues of %d packets are gone", storage.ErrLoss, orphans)
	}
	if err != nil {
		if !c.AcceptLoss {
			return 0, err
		}
		c.accepted(err)
	}
	if c.store.Flush() != (storage.Flush{}) {
		dead++
	}
	return dead, nil
}
