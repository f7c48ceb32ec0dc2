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
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-queue/holdfast/recovery"
	"github.com/holdfast-queue/holdfast/storage"
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
	Findings []storage.Finding // none in a sound folder
	More     int               // findings past the first ten thousand, which are not listed
	Queues   []QueueCount      // those with a definition that are not dropped, in order of identity
	Packets  int64             // that have not expired
	Expired  int64             // still on disk
	Bytes    int64             // keys and payloads of the packets that have not expired
	Keys     int64             // strings and hashes that have not expired
	LeftOver int64             // packets, delivery states, strings, hashes and fields that nobody can reach: a server deletes them
	Took     time.Duration
}

// Sound reports whether nothing was found.
func (r *Report) Sound() bool { return len(r.Findings) == 0 }

// QueueCount counts the packets of one queue by their state.
type QueueCount struct {
	ID           uint32
	Database     uint8
	Name         []byte
	Ready        int64
	Delayed      int64 // their time has not come
	Unselectable int64 // of priority 0: they go only with others of their key
	Claimed      int64 // their leases have not ended
	Dead         int64 // they were tried too often
	Done         int64 // they were acknowledged, and are kept until they expire
	Expired      int64
	Bytes        int64 // keys and payloads of those that have not expired
	dropped      bool
	settings     bool // it has some, so it lasts when it is empty
}

// packets counts those that have not expired.
func (q *QueueCount) packets() int64 {
	return q.Ready + q.Delayed + q.Unselectable + q.Claimed + q.Dead + q.Done
}

// maxFindings bounds Report.Findings.
const maxFindings = 10_000

// Folder verifies the data folder dir. The error means that it could not look, as when the folder
// is in use; what is wrong with the folder is in the report. Memory grows with queues, delivery
// states, large payloads, strings and hashes, and with the fields of one hash. It does not grow
// with other packets.
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
		Tolerant: true,
		Progress: func(done, total int64) { o.Progress("files", done, total) },
	})
	if err != nil {
		return Report{}, err
	}
	defer view.Close()
	v := &verifier{Options: o, src: view.Snapshot, control: view.Control(), flush: view.Flush(), large: make(map[payload]int)}
	err = v.run(ctx)
	v.addFindings(view.Findings())
	v.report.Took = time.Since(start)
	return v.report, err
}

// source is what a verification reads; a *storage.Snapshot is one.
type source interface {
	Queues(fn func(storage.Queue) error) error
	Records(r storage.QueueRange, fn func(id storage.PacketID, rec []byte, damage error) error) error
	Deliveries(fn func(d *storage.Delivery, damage error) error) error
	Uniques(fn func(*storage.Unique) error) error
	Payloads(fn func(queue uint32, seq uint64, size int64) error) error
	Items(fn func(v storage.ValueID, h *storage.Head, f *storage.Field, damage error) error) error
	Load() []byte
}

// verifier is one verification under way.
type verifier struct {
	Options
	src     source
	control storage.Control
	flush   storage.Flush
	report  Report

	deliveries recovery.Deliveries
	large      map[payload]int // that packets say they have: how many packets
	tally      storage.Tally   // of what can be read
	unread     uint64          // packets that cannot be read
	lost       uint64          // heads and fields that cannot be read
	lostStates uint64          // delivery states that cannot be read
}

func (v *verifier) run(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		v.checkQueues, v.checkDeliveries, v.checkPackets, v.checkUniques, v.checkKeys,
	} {
		err := step(ctx)
		if errors.Is(err, storage.ErrDamaged) {
			v.finding(storage.FindingRecord, "db", "a scan ended early: %v", err)
		} else if err != nil {
			return err
		}
	}
	v.report.Queues = slices.DeleteFunc(v.report.Queues, func(q QueueCount) bool { return q.dropped })
	v.checkTally()
	if v.src.Load() != nil {
		v.finding(storage.FindingLoad, "load",
			"a load was cut short: load the dump again, or abandon the load, which takes back what is stored")
	}
	return nil
}

// hasControl reports whether there is a control record. Where there is none the view says so, and
// there is nothing to compare with.
func (v *verifier) hasControl() bool { return v.control.Epoch != 0 }

func (v *verifier) finding(kind, key, format string, args ...any) {
	v.add(storage.Finding{Kind: kind, Key: key, What: fmt.Sprintf(format, args...)})
}

func (v *verifier) add(f storage.Finding) {
	if len(v.report.Findings) < maxFindings {
		v.report.Findings = append(v.report.Findings, f)
	} else {
		v.report.More++
	}
}

// addFindings puts the findings of the view before those of the verifier. A record that both found
// is listed once.
func (v *verifier) addFindings(found []storage.Finding) {
	known := make(map[string]bool)
	for _, f := range v.report.Findings {
		known[f.Kind+f.Key] = true
	}
	found = slices.DeleteFunc(found, func(f storage.Finding) bool {
		return f.Kind == storage.FindingRecord && known[f.Kind+f.Key]
	})
	own := v.report.Findings
	v.report.Findings = nil
	for _, f := range slices.Concat(found, own) {
		v.add(f)
	}
}

// unreadable is the finding about a record or a value, which says by itself that it is damaged.
func (v *verifier) unreadable(key, what string, err error) {
	v.finding(storage.FindingRecord, key, "the %s cannot be read: %s", what, strings.TrimPrefix(err.Error(), storage.ErrDamaged.Error()+": "))
}

// checkQueues reads the queue definitions.
func (v *verifier) checkQueues(ctx context.Context) error {
	err := v.src.Queues(func(q storage.Queue) error {
		if next := v.control.NextQueue; v.hasControl() && q.ID >= next {
			v.finding(storage.FindingQueue, queueKey(q.ID), "its number is not below %d, the number of the next new queue", next)
		}
		v.report.Queues = append(v.report.Queues, QueueCount{
			ID: q.ID, Database: q.Database, Name: slices.Clone(q.Name), dropped: v.flush.DropsQueue(&q) || q.Expired(v.Now), settings: q.Settings != nil,
		})
		return ctx.Err()
	})
	v.checkNames()
	return err
}

func queueKey(id uint32) string { return fmt.Sprintf("queue %d", id) }

// checkNames finds queues of the same name. Sorting takes less memory than a map of all names.
func (v *verifier) checkNames() {
	order := make([]*QueueCount, 0, len(v.report.Queues))
	for i := range v.report.Queues {
		if q := &v.report.Queues[i]; !q.dropped {
			order = append(order, q)
		}
	}
	slices.SortFunc(order, func(a, b *QueueCount) int {
		return cmp.Or(cmp.Compare(a.Database, b.Database), bytes.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	for i := 1; i < len(order); i++ {
		if other, q := order[i-1], order[i]; other.Database == q.Database && bytes.Equal(other.Name, q.Name) {
			v.finding(storage.FindingQueue, queueKey(q.ID),
				"it has the name %q, and so has queue %d: clients reach the packets of only one of them", q.Name, other.ID)
		}
	}
}

// checkTally compares what was scanned with the control record, as a start does.
func (v *verifier) checkTally() {
	if !v.hasControl() {
		return
	}
	for _, err := range []error{
		v.control.Check(v.tally, v.unread), v.control.CheckKeys(v.tally, v.lost), v.control.CheckDeliveries(v.tally, v.lostStates),
	} {
		var mismatch *storage.MismatchError
		if errors.As(err, &mismatch) {
			v.add(mismatch.Finding())
		}
	}
}
