// Package verify reads everything in a data folder and reports what is wrong with it. It changes
// nothing.
//
// Its map:
//
//	verify.go   Folder, the one entry point; Report; queue definitions and the control record
//	packets.go  every packet, its delivery state and its payload
//	keys.go     strings and hashes, and ids of unique pushes
package verify

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/holdfast-queue/holdfast/recovery"
	"github.com/holdfast-queue/holdfast/recovery/dump"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// Options say how to verify.
type Options struct {
	Now int64 // Unix milliseconds: decides which packets have expired; 0 is the wall clock

	// Progress is called now and then: with "files" and bytes, from several goroutines, then with
	// "packets" and packets, then with "keys" and heads and fields. total is 0 when it is not known.
	// It may be nil.
	Progress func(step string, done, total int64)
}

// Report says what a folder holds and what is wrong with it.
type Report struct {
	storage.Found
	Queues   []QueueCount // those with a definition that are not dropped, in order of identity
	Packets  int64        // that have not expired
	Expired  int64        // still on disk
	Bytes    int64        // keys and payloads of the packets that have not expired
	Keys     int64        // strings and hashes that have not expired
	Last     int64        // time of the last batch, Unix milliseconds
	LeftOver int64        // packets, delivery states, shares, strings, hashes and fields that nobody can reach: a server deletes them
	Took     time.Duration
}

// Sound reports whether nothing was found.
func (r *Report) Sound() bool { return len(r.Findings) == 0 }

// Counts are numbers of packets by their state (recovery.StateOf).
type Counts [len(recovery.StateNames)]int64

// QueueCount counts the packets of one queue.
type QueueCount struct {
	ID       uint32
	Database uint8
	Name     []byte
	Counts   // of those that have not expired
	Expired  int64
	Bytes    int64 // keys and payloads of those that have not expired
	dropped  bool
	settings bool // it has some, so it lasts when it is empty
}

// lasts reports whether no string or hash may have the queue's name.
func (q *QueueCount) lasts() bool { return q.settings || q.Counts != Counts{} }

// Folder verifies the data folder dir. The error means that it could not look, as when the folder
// is in use; what is wrong with the folder is in the report. Memory grows with queues, delivery
// states, large payloads, strings and hashes, and with the fields of one hash. Other packets take a
// bit to some bytes.
func Folder(ctx context.Context, dir string, o Options) (Report, error) {
	start := time.Now()
	o.Now = cmp.Or(o.Now, start.UnixMilli())
	if o.Progress == nil {
		o.Progress = func(string, int64, int64) {}
	}
	if err := ctx.Err(); err != nil {
		return Report{}, err
	}
	view, err := storage.OpenView(dir, storage.ViewOptions{
		Tolerant: true, AsOpened: true,
		Progress: func(done, total int64) { o.Progress("files", done, total) },
	})
	if err != nil {
		return Report{}, err
	}
	defer view.Close()
	v := newVerifier(view, o)
	err = v.run(ctx)
	v.report.Findings = slices.Concat(view.Findings(), v.report.Findings)
	v.report.Took, v.report.Last = time.Since(start), view.Control().Time
	return v.report, err
}

// source is the part of a store that a verification reads; a *storage.Snapshot is one.
type source interface {
	dump.Source
	Payloads(fn func(queue uint32, seq uint64, size int64) error) error
}

// verifier is one verification under way.
type verifier struct {
	Options
	src     source
	control content.Control // without a control record everything is below its marks
	flush   content.Flush
	report  Report

	names      map[string]int // full names of queues that are not dropped: where they stand in the report
	deliveries recovery.Deliveries
	large      map[payload]bool // that packets say they have
	numbers    recovery.Numbers
	cut        bool // a scan ended early
}

func newVerifier(src source, o Options) *verifier {
	control := src.Control()
	if control.Epoch == 0 { // there is none, and the view says so
		control.Marks = content.Marks{NextSeq: math.MaxUint64, NextQueue: math.MaxUint32, LastKey: math.MaxUint64}
	}
	return &verifier{Options: o, src: src, control: control, flush: src.Flush(), names: make(map[string]int), large: make(map[payload]bool)}
}

func (v *verifier) run(ctx context.Context) error {
	for _, step := range []func(context.Context) error{v.checkQueues, v.checkPackets, v.checkKeys} {
		if err := step(ctx); err != nil {
			return cmp.Or(ctx.Err(), err)
		}
	}
	v.report.Queues = slices.DeleteFunc(v.report.Queues, func(q QueueCount) bool { return q.dropped })
	return nil
}

// walk shows what a visitor asks for, and finds what is wrong with that as a whole.
func (v *verifier) walk(visitor storage.Visitor) error {
	visitor.Whole, visitor.Wrong = true, v.wrong
	return v.src.Walk(visitor)
}

func (v *verifier) wrong(err error) error {
	switch {
	case errors.Is(err, storage.ErrDamaged):
		v.cut = true
		v.report.Add(storage.FindingRecord, "db", "a scan ended early: %v", err)
	case errors.Is(err, storage.ErrLoss):
		v.report.Compare(&v.control, err)
	default:
		return err
	}
	return nil
}

// unreadable is the finding about a record or a value, which says by itself that it is damaged.
func (v *verifier) unreadable(key, what string, err error) {
	v.report.Add(storage.FindingRecord, key, "the %s cannot be read: %s", what, storage.Plain(err))
}

// tell counts a record of a step, and tells how far it is.
func (v *verifier) tell(ctx context.Context, step string, done *int64, total uint64) error {
	if *done++; *done&0xfff != 0 {
		return nil
	}
	v.Progress(step, *done, int64(total))
	return ctx.Err()
}

// checkQueues reads the queue definitions, and the delivery states.
func (v *verifier) checkQueues(ctx context.Context) error {
	return v.walk(storage.Visitor{State: v.delivery(ctx), Share: v.share, Queue: func(q content.Queue) error {
		if next := v.control.NextQueue; q.ID >= next {
			v.report.Add(storage.FindingQueue, storage.QueueKey(q.ID), "its number is not below %d, the number of the next new queue", next)
		}
		count := QueueCount{ID: q.ID, Database: q.Database, Name: slices.Clone(q.Name), settings: q.Settings != nil}
		if count.dropped = v.flush.DropsQueue(&q) || q.Expired(v.Now); !count.dropped {
			name := content.FullName(q.Database, q.Name)
			if other, there := v.names[name]; there {
				v.report.Add(storage.FindingQueue, storage.QueueKey(q.ID),
					"it has the name %q, and so has queue %d: clients reach the packets of only one of them", q.Name, v.report.Queues[other].ID)
			}
			v.names[name] = len(v.report.Queues)
		}
		v.report.Queues = append(v.report.Queues, count)
		return ctx.Err()
	}})
}

// share looks whether somebody can reach what a share has of its own.
func (v *verifier) share(s *content.Share) error {
	at, there := slices.BinarySearchFunc(v.report.Queues, s.Queue, func(q QueueCount, id uint32) int { return cmp.Compare(q.ID, id) })
	if !there || v.report.Queues[at].dropped {
		v.report.LeftOver++
	}
	return nil
}
