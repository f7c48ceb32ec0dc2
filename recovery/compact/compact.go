// Package compact makes a data folder as small as it gets.
package compact

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/holdfast-queue/holdfast/storage"
)

// Options say how to compact.
type Options struct {
	// Now is the time in Unix milliseconds: packets that have expired by then
	// are deleted. 0 is the wall clock.
	Now int64
	// AcceptLoss goes on with a folder that has lost acknowledged packets.
	AcceptLoss bool
	// Progress is told what is being done and how far it is: packets for the
	// steps "read" and "delete expired", else bytes of tables; total is 0
	// while it is not known. The calls come from one goroutine. May be nil.
	Progress func(step string, done, total int64)
	// Logger gets what the store and the recovery have to say; nil is silence.
	Logger *slog.Logger
}

// Report says what a compaction did.
type Report struct {
	Packets       int64 // kept
	Expired       int64 // deleted, because their time had passed
	Findings      []string
	Before, After storage.FileSizes
	Took          time.Duration
}

// Folder makes the data folder dir as small as it gets: it deletes expired
// packets, merges all tables, collects the value log and removes the reserve
// file, which the next start makes again.
//
// The folder must be one that a server could start on: the error wraps one of
// the opening errors of package storage, or storage.ErrLoss when the packets
// are not those that the control record counts. It wraps storage.ErrFull, and
// nothing was done, when the disk has no room for the tables to be written
// anew. When ctx ends Folder stops after the step under way and returns an
// error that wraps that of ctx. Whenever it ends, and however, nothing is
// lost, and it can be begun again.
func Folder(ctx context.Context, dir string, o Options) (report Report, err error) {
	start := time.Now()
	if o.Now == 0 {
		o.Now = start.UnixMilli()
	}
	if o.Progress == nil {
		o.Progress = func(string, int64, int64) {}
	}
	if report.Before, err = storage.Sizes(dir); err != nil {
		return report, err
	}
	store, err := storage.Open(dir, storage.Options{AcceptLoss: o.AcceptLoss, Offline: true, Logger: o.Logger})
	if err != nil {
		return report, whenFull(dir, &report.Before, err)
	}
	for _, f := range store.Accepted() {
		report.Findings = append(report.Findings, f.String()+" (accepted)")
	}
	c := compactor{Options: o, ctx: ctx, store: store, report: &report}
	err = errors.Join(c.run(), store.Close())
	report.Took = time.Since(start)
	if err != nil {
		return report, stopped(ctx, err)
	}
	report.After, err = storage.Sizes(dir)
	return report, err
}

// whenFull says of a disk without room for opening what else stands against a compaction, so that
// nobody makes room only to be told: a load that was cut short, or the room that the tables take.
func whenFull(dir string, before *storage.FileSizes, err error) error {
	if !errors.Is(err, storage.ErrFull) {
		return err
	}
	if view, e := storage.OpenView(dir, storage.ViewOptions{}); e == nil {
		load := view.Load()
		if e = view.Close(); e == nil && load != nil {
			return fmt.Errorf("%w: %s, and to end it needs room, too: %w",
				storage.ErrLoadUnfinished, dir, err)
		}
	}
	return fmt.Errorf("%w; to write the tables anew takes up to about %d bytes beside that", err, before.Tables+before.Logs)
}

// stopped says of an error that ctx caused how the folder is left.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() == nil || !errors.Is(err, ctx.Err()) {
		return err
	}
	return fmt.Errorf("compaction stopped: %w; the folder is sound, with all its packets that have not expired", err)
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

// read holds the packets against the control record, as a start does, and
// counts those that have expired. It builds no index: the order of packets
// does not matter here, and their memory would.
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
	all := int64(c.store.Control().Live)
	err = c.packets("read", all, func(id storage.PacketID, m *storage.Meta) error {
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
	if err != nil && !c.AcceptLoss {
		return 0, err
	}
	if err != nil {
		c.report.Findings = append(c.report.Findings, err.Error()+" (accepted)")
	}
	return expired, nil
}

// deleteExpired deletes so many packets whose time has passed.
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
	const two = 2 // the most entries that one packet takes
	// What is read is the store as it was before the first batch.
	err := c.packets("", 0, func(id storage.PacketID, m *storage.Meta) error {
		if !m.Expired(c.Now) {
			return nil
		}
		b.Delete(id, storage.Removed{Expires: true, Large: m.Large})
		c.report.Expired++
		if b.Len()+two <= limits.MaxOps && b.Bytes() < limits.MaxBytes/2 {
			return nil
		}
		return apply()
	})
	if err != nil {
		return err
	}
	return apply()
}

// packets reads all packets and reports the step every 2^16 of them; step may
// be empty.
func (c *compactor) packets(step string, total int64, fn func(storage.PacketID, *storage.Meta) error) error {
	var n int64
	err := c.store.Packets(func(id storage.PacketID, m *storage.Meta) error {
		if n++; n&0xffff == 0 {
			if step != "" {
				c.Progress(step, n, max(n, total))
			}
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
