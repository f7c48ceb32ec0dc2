// Package verify looks at everything in a data folder and says what is wrong with it.
package verify

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/holdfast-queue/holdfast/storage"
)

// Options say how to verify.
type Options struct {
	Deep bool  // check every block of every table before anything is read, which names the packets of blocks with nothing but payloads
	Now  int64 // Unix milliseconds: what has expired by then is counted as expired; 0 is the wall clock

	// Progress is called now and then, from several goroutines: with "files" and bytes, then with
	// "packets" and packets. total is 0 when it is not known. It may be nil.
	Progress func(step string, done, total int64)
	Logger   *slog.Logger // nil is silence
}

// Report says what a folder holds and what is wrong with it.
type Report struct {
	Findings []storage.Finding // nothing in a sound folder
	More     int               // findings past the first ten thousand, which are not listed
	Queues   []QueueCount      // those with a definition, in order of identity
	Packets  int64             // that have not expired
	Expired  int64             // on disk, their time has passed
	Bytes    int64             // keys and payloads of the packets that have not expired
	Took     time.Duration
}

// Sound reports whether nothing was found.
func (r *Report) Sound() bool { return len(r.Findings) == 0 }

// QueueCount counts the packets of one queue by their state.
type QueueCount struct {
	ID           uint32
	Name         []byte
	Ready        int64
	Delayed      int64 // their time has not come
	Unselectable int64 // of priority 0: they go only with others of their key
	Expired      int64
	Bytes        int64 // keys and payloads of those that have not expired
}

// maxFindings bounds Report.Findings.
const maxFindings = 10_000

// Folder looks at everything in the folder dir and changes nothing. Its error means that it could
// not look, as when the folder is in use; what is wrong with the folder is in the report. Memory
// does not grow with the number of packets.
func Folder(ctx context.Context, dir string, o Options) (Report, error) {
	start := time.Now()
	o.Now = cmp.Or(o.Now, start.UnixMilli())
	if err := ctx.Err(); err != nil {
		return Report{}, err
	}
	view, err := storage.OpenView(dir, storage.ViewOptions{
		Deep:     o.Deep,
		Tolerant: true,
		Logger:   o.Logger,
		Progress: func(done, total int64) {
			if o.Progress != nil {
				o.Progress("files", done, total)
			}
		},
	})
	if err != nil {
		return Report{}, err
	}
	defer view.Close()
	v := &verifier{Options: o, src: view.Snapshot}
	err = v.run(ctx)
	v.adopt(view.Findings())
	v.report.Took = time.Since(start)
	return v.report, err
}

// source is what a verification reads; a *storage.Snapshot is one.
type source interface {
	Control() storage.Control
	Queues(fn func(storage.Queue) error) error
	Records(r storage.QueueRange, fn func(id storage.PacketID, rec []byte, damage error) error) error
	Load() []byte
	Packets(r storage.QueueRange, fn func(storage.PacketID, *storage.Meta) error) error
	Payloads(fn func(queue uint32, seq uint64, size int64) error) error
}

// verifier is one verification under way. Its fields belong to the goroutine that called it, but
// for those that verifyFlow says.
type verifier struct {
	Options
	src     source
	control storage.Control
	report  Report
	known   map[findingKey]bool // what report.Findings holds

	met     int // where in report.Queues queueAt looked last
	orphans map[uint32]*orphanCount
	damaged map[storage.PacketID]bool // records that cannot be read, some of them
	damages uint64
	tally   storage.Tally
	large   payloadSum // large payloads, by their packets
}

type findingKey struct{ kind, key string }

// orphanCount counts packets of a queue without a definition.
type orphanCount struct {
	first storage.PacketID
	n     int64
}

// payloadSum is a set of large payloads: how many, and a sum that forgets their order.
type payloadSum struct{ n, sum uint64 }

func (s *payloadSum) add(queue uint32, seq uint64, size int64) {
	s.n++
	s.sum += storage.SetHash(storage.PacketID{Queue: queue, Priority: uint32(size), Seq: seq})
}

func (v *verifier) finding(kind, key, format string, args ...any) {
	if len(v.report.Findings) >= maxFindings {
		v.report.More++
		return
	}
	v.known[findingKey{kind, key}] = true
	v.report.Findings = append(v.report.Findings, storage.Finding{Kind: kind, Key: key, What: fmt.Sprintf(format, args...)})
}

// adopt puts what the view found before what was found here, each record once.
func (v *verifier) adopt(found []storage.Finding) {
	found = slices.DeleteFunc(found, func(f storage.Finding) bool {
		return f.Kind == storage.FindingRecord && v.known[findingKey{f.Kind, f.Key}]
	})
	v.report.Findings = append(found, v.report.Findings...)
	if over := len(v.report.Findings) - maxFindings; over > 0 {
		v.report.More += over
		v.report.Findings = v.report.Findings[:maxFindings]
	}
}

func (v *verifier) run(ctx context.Context) error {
	v.control = v.src.Control()
	v.known = make(map[findingKey]bool)
	v.orphans = make(map[uint32]*orphanCount)
	v.damaged = make(map[storage.PacketID]bool)
	for _, step := range []func(context.Context) error{
		v.definitions, v.scan, v.payloads, v.totals,
	} {
		if err := v.tolerate(step(ctx)); err != nil {
			return err
		}
	}
	v.unfinishedLoad()
	return nil
}

// tolerate makes a finding of damage that ended a scan.
func (v *verifier) tolerate(err error) error {
	if !errors.Is(err, storage.ErrDamaged) {
		return err
	}
	v.finding(storage.FindingRecord, "db", "a scan ended early: %v", err)
	return nil
}

func (v *verifier) definitions(ctx context.Context) error {
	err := v.src.Queues(func(q storage.Queue) error {
		if v.hasControl() && q.ID >= v.control.NextQueue {
			v.finding(storage.FindingQueue, queueKey(q.ID), "its number is not below that of the next queue, %d, which may become the same", v.control.NextQueue)
		}
		v.report.Queues = append(v.report.Queues, QueueCount{ID: q.ID, Name: slices.Clone(q.Name)})
		return ctx.Err()
	})
	v.sameNames()
	return err
}

func queueKey(id uint32) string { return fmt.Sprintf("queue %d", id) }

// sameNames makes findings of queues that have the name of another: sorted they are neighbours, and
// that takes less memory than a map of all names.
func (v *verifier) sameNames() {
	queues := v.report.Queues
	order := make([]int32, len(queues))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int {
		return cmp.Or(bytes.Compare(queues[a].Name, queues[b].Name), cmp.Compare(a, b))
	})
	for i := 1; i < len(order); i++ {
		other, q := &queues[order[i-1]], &queues[order[i]]
		if bytes.Equal(other.Name, q.Name) {
			v.finding(storage.FindingQueue, queueKey(q.ID), "it has the name %q, and so has queue %d: the packets of one of them cannot be asked for", q.Name, other.ID)
		}
	}
}

// queueAt returns where in report.Queues a queue is, if it is defined. Neighbours are asked for.
func (v *verifier) queueAt(id uint32) (at int, ok bool) {
	queues := v.report.Queues
	if v.met < len(queues) && queues[v.met].ID == id {
		return v.met, true
	}
	at, ok = slices.BinarySearchFunc(queues, id, func(q QueueCount, id uint32) int { return cmp.Compare(q.ID, id) })
	v.met = at
	return at, ok
}

// hasControl reports whether the store has a control record: without one, which the view has said,
// nothing can be held against it.
func (v *verifier) hasControl() bool { return v.control.Epoch != 0 }

func (v *verifier) unfinishedLoad() {
	if v.src.Load() == nil {
		return
	}
	v.finding(storage.FindingLoad, "load", "a load was cut short: load the same dump again to go on, or abandon the load to keep what is stored")
}
