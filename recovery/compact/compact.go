// Package compact makes a data folder as small as it gets.
package compact

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-queue/holdfast/storage"
)

// Options say how to compact.
type Options struct {
	// Now is the time in Unix milliseconds; packets that have expired by then are deleted. 0 is the
	// wall clock.
	Now int64
	// AcceptLoss compacts a folder that has lost acknowledged packets, too.
	AcceptLoss bool
	// Progress is told the step under way and how far it is: packets in the steps "read" and
	// "delete expired", else bytes of tables. total is 0 while it is not known. The calls come from
	// one goroutine. It may be nil.
	Progress func(step string, done, total int64)
}

// Report says what a compaction did.
type Report struct {
	Packets       int64             // kept
	Expired       int64             // deleted, because their time had passed
	Findings      []string          // losses that were accepted, a sentence each
	Before, After storage.FileSizes // of the folder
	Took          time.Duration
}

// Folder compacts the data folder dir: it deletes expired packets, merges all tables, collects the
// value log and removes the reserve file, which the next start makes again.
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
	store, err := storage.Open(dir, storage.Options{AcceptLoss: o.AcceptLoss, Offline: true})
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
	expired, err := c.read()
	if err != nil {
		return err
	}
	if expired > 0 {
		if err := c.deleteExpired(expired); err != nil {
			return err
		}
	}
	return c.store.Compact(c.ctx, func(p storage.CompactProgress) { c.Progress(p.Step, p.Done, p.Total) })
}

// accepted notes a loss that Options.AcceptLoss passes over.
func (c *compactor) accepted(loss any) {
	c.report.Findings = append(c.report.Findings, fmt.Sprintf("%v (accepted)", loss))
}

// read compares the packets with the control record, as a start does, and counts those that have
// expired. It builds no index, which would take memory for an order that does not matter here.
func (c *compactor) read() (expired int64, err error) {
	queues := make(map[uint32]bool)
	err = c.store.Queues(func(q storage.Queue) error {
		queues[q.ID] = true
		return c.ctx.Err()
	})
	if err != nil {
		return 0, fmt.Errorf("read queue definitions: %w", err)
	}
	var tally storage.Tally
	orphans := 0
	total := int64(c.store.Control().Live)
	err = c.packets(func(n int64) { c.Progress("read", n, max(n, total)) }, func(id storage.PacketID, m *storage.Meta) error {
		tally.Add(id, m.Expiry)
		if m.Expired(c.Now) {
			expired++
			return nil
		}
		if !queues[id.Queue] {
			orphans++
		}
		c.report.Packets++
		return nil
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
	return expired, nil
}

// deleteExpired deletes the packets whose time has passed: there are as many as expired. The
// database drops them by itself, but only some time later.
func (c *compactor) deleteExpired(expired int64) error {
	var b storage.Batch
	limits := c.store.Limits()
	apply := func() error {
		if err := c.store.Apply(&b); err != nil {
			return fmt.Errorf("delete expired packets: %w", err)
		}
		b.Reset()
		c.Progress("delete expired", c.report.Expired, expired)
		return c.ctx.Err()
	}
	const entries = 2 // that one packet takes at most
	// The scan shows the store as it was before the first batch.
	err := c.packets(func(int64) {}, func(id storage.PacketID, m *storage.Meta) error {
		if !m.Expired(c.Now) {
			return nil
		}
		b.Delete(id, storage.Removed{Expires: true, Large: m.Large})
		c.report.Expired++
		if b.Len()+entries <= limits.MaxOps && b.Bytes() < limits.MaxBytes/2 {
			return nil
		}
		return apply()
	})
	if err != nil {
		return err
	}
	return apply()
}

// packets reads all packets. Every 2^16 of them it calls progress and looks whether ctx has ended.
func (c *compactor) packets(progress func(n int64), fn func(storage.PacketID, *storage.Meta) error) error {
	var n int64
	err := c.store.Packets(func(id storage.PacketID, m *storage.Meta) error {
		if n++; n&0xffff == 0 {
			progress(n)
			if err := c.ctx.Err(); err != nil {
				return err
			}
		}
		return fn(id, m)
	})
	if err != nil {
		return fmt.Errorf("read packets: %w", err)
	}
	return nil
}
