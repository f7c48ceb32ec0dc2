// Package dump writes what is in a data folder as a dump, in the formats of DUMP.md, reads dumps, and
// loads them into a folder.
package dump

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/holdfast-queue/holdfast/storage"
)

// Source is what Dump reads; a *storage.Snapshot is one. Its calls are made from the goroutine
// that called Dump.
type Source interface {
	Control() storage.Control
	// Queues calls fn for every queue definition, in order of identity.
	Queues(fn func(storage.Queue) error) error
	// Records calls fn for every packet of the queues in r in the order of the keys. rec is the
	// full record, valid during the call, or nil and damage why there is none.
	Records(r storage.QueueRange, fn func(id storage.PacketID, rec []byte, damage error) error) error
	// Load returns the record of a load under way, nil if there is none.
	Load() []byte
	Packets(r storage.QueueRange, fn func(storage.PacketID, *storage.Meta) error) error
}

// Options say what to dump and how. The zero value dumps everything as JSONL.
type Options struct {
	Format  Format
	Payload Encoding
	Queues  []string // patterns (DUMP.md, section queues); a queue that one of them matches is dumped; none: all
	Limit   int64    // the most packets; 0 is no limit
	Now     int64    // Unix milliseconds: packets that have expired by then are left out; 0 is the wall clock

	// Salvage goes on where a packet cannot be read, counting it, dumps packets whose queue has
	// lost its name, or that has the name of another queue, under the name lost-queue-N, and dumps a
	// folder that was being loaded. Where sequences lie outside of the marks the dump has wider ones.
	// Without it each of these is an error.
	Salvage bool

	// Progress, if not nil, is called now and then from a goroutine of Dump's.
	Progress func(Progress)
}

// Progress is how far something is.
type Progress struct {
	Packets int64 // handled so far
	Total   int64 // about how many there are; 0: not known
	Bytes   int64 // of the dump, written or read so far
}

// Unreadable is a packet that a salvage could not bring out.
type Unreadable struct {
	ID  storage.PacketID
	Err error
}

// Report says what a dump holds and what it leaves out.
type Report struct {
	Packets, Queues int64
	Bytes           int64
	Expired         int64        // packets on disk whose time had passed; left out
	Lost            int64        // packets that cannot be read; left out
	Unreadable      []Unreadable // the first thousand of them
	Nameless        int64        // queues whose definitions are gone
	Unfinished      bool         // the folder was being loaded

	// Findings, of a salvage, say how what is there differs from what the control record counts,
	// and what was changed so that Load takes the dump.
	Findings []storage.Finding

	Took time.Duration
}

// maxUnreadable bounds Report.Unreadable.
const maxUnreadable = 1000

// Dump writes the packets and queues of src to w, in the order of their keys: by queue, best
// priority first but for priority 0, which no consumer selects and which comes before, oldest first.
// The same src and options give the same bytes. Memory does not grow with the number of packets.
//
// The error is that of w or of src, or names the packet that cannot be read or that Load would not
// take, or wraps storage.ErrLoadUnfinished; what was written then has no end record, and Load refuses it.
// What Dump makes without an error Load takes.
func Dump(src Source, w io.Writer, o Options) (Report, error) {
	start := time.Now()
	o.Now = cmp.Or(o.Now, start.UnixMilli())
	d := &dumper{Options: o, src: src, w: w, hash: xxhash.New()}
	d.report.Unfinished = src.Load() != nil
	if d.report.Unfinished && !o.Salvage {
		return d.report, fmt.Errorf("%w: go on with the load, or salvage what is there", storage.ErrLoadUnfinished)
	}
	err := d.run()
	d.report.Nameless = d.lost
	d.report.Took = time.Since(start)
	return d.report, err
}

// dumper is one dump under way.
type dumper struct {
	Options
	src    Source
	w      io.Writer
	queues []*storage.Queue // those to be dumped, in order of identity
	ranges []storage.QueueRange
	next   int      // of queues: the first whose record is not written yet
	lost   int64    // queues that were made up
	names  *nameSet // of a salvage: of queues; nil until it is asked

	// These belong to the goroutine that writes, while it runs.
	report Report
	hash   *xxhash.Digest
}

func (d *dumper) run() error {
	h := &header{version: Version, marks: d.src.Control().Marks, payload: d.Payload}
	if err := d.chooseQueues(); err != nil {
		return err
	}
	if d.Salvage {
		if err := d.survey(&h.marks); err != nil {
			return err
		}
	}
	form := newForm(d.Format, d.Payload)
	if err := d.write(form.header(nil, h)); err != nil {
		return err
	}
	if err := d.packets(); err != nil {
		return err
	}
	end := trailer{packets: uint64(d.report.Packets), queues: uint64(d.report.Queues), hash: d.hash.Sum64()}
	if err := d.write(form.end(nil, &end)); err != nil {
		return err
	}
	if d.Progress != nil {
		d.Progress(d.progress())
	}
	return nil
}

// maxFindings bounds Report.Findings.
const maxFindings = 10_000

func (d *dumper) finding(kind, key, format string, args ...any) {
	if len(d.report.Findings) < maxFindings {
		d.report.Findings = append(d.report.Findings, storage.Finding{Kind: kind, Key: key, What: fmt.Sprintf(format, args...)})
	}
}

func (d *dumper) write(b []byte) error {
	if _, err := d.w.Write(b); err != nil {
		return fmt.Errorf("cannot write the dump: %w", err)
	}
	_, _ = d.hash.Write(b)
	d.report.Bytes += int64(len(b))
	return nil
}

func (d *dumper) progress() Progress {
	return Progress{Packets: d.report.Packets, Total: int64(d.src.Control().Live), Bytes: d.report.Bytes}
}

// chooseQueues fills queues and ranges: a range is a run of queues without one between them that
// is not wanted.
func (d *dumper) chooseQueues() error {
	globs := make([]glob, 0, len(d.Queues))
	for _, pattern := range d.Queues {
		g, err := parseGlob(pattern)
		if err != nil {
			return err
		}
		globs = append(globs, g)
	}
	wanted := func(name []byte) bool {
		for _, g := range globs {
			if g.match(name) {
				return true
			}
		}
		return len(globs) == 0
	}
	joined := false
	err := d.src.Queues(func(q storage.Queue) error {
		if !wanted(q.Name) {
			joined = false
			return nil
		}
		if err := d.judgeNumber(q.ID); err != nil {
			return err
		}
		if !possibleQueue(q.ID) {
			return nil
		}
		q.Name, q.Rest = append([]byte{}, q.Name...), append([]byte(nil), q.Rest...)
		d.queues = append(d.queues, &q)
		if joined {
			d.ranges[len(d.ranges)-1].Last = q.ID
		} else {
			d.ranges = append(d.ranges, storage.QueueRange{First: q.ID, Last: q.ID})
		}
		joined = true
		return nil
	})
	if err != nil && !(d.Salvage && errors.Is(err, storage.ErrDamaged)) {
		return fmt.Errorf("read queue definitions: %w", err)
	}
	if len(globs) == 0 {
		d.ranges = []storage.QueueRange{{}} // also those that have lost their definition
	}
	return d.sameNames()
}

// judgeNumber refuses the number of a queue that load would refuse. A salvage passes over one that
// no queue can have, and makes the marks wide enough for others.
func (d *dumper) judgeNumber(id uint32) error {
	next := d.src.Control().NextQueue
	switch {
	case d.Salvage && !possibleQueue(id):
		d.finding(storage.FindingQueue, queueKey(id), "no queue can have this number: its definition and its packets are left out")
	case d.Salvage || possibleQueue(id) && id < next:
	default:
		return fmt.Errorf("%w: the number of queue %d is not below that of the next queue, %d", storage.ErrDamaged, id, next)
	}
	return nil
}

// sameNames refuses queues that have the name of another, as load does. A salvage gives all but the
// first of them other names.
func (d *dumper) sameNames() error {
	order := slices.Clone(d.queues)
	slices.SortStableFunc(order, func(a, b *storage.Queue) int { return bytes.Compare(a.Name, b.Name) })
	var again []*storage.Queue
	for i := 1; i < len(order); i++ {
		if !bytes.Equal(order[i-1].Name, order[i].Name) {
			continue
		}
		if !d.Salvage {
			return fmt.Errorf("%w: queues %d and %d both have the name %q", storage.ErrDamaged, order[i-1].ID, order[i].ID, order[i].Name)
		}
		again = append(again, order[i])
	}
	for _, q := range again {
		name := d.lostName(q.ID)
		d.finding(storage.FindingQueue, queueKey(q.ID), "it has the name %q, and so has another queue: it is dumped as %q", q.Name, name)
		q.Name = name
	}
	return nil
}

func queueKey(id uint32) string { return fmt.Sprintf("queue %d", id) }

// lostName is the name under which a queue is dumped that has none of its own. No other queue of the
// dump has that name: a dot is added until it is so.
func (d *dumper) lostName(id uint32) []byte {
	if d.names == nil {
		d.names = newNameSet()
		for _, q := range d.queues {
			d.names.add(q.Name)
		}
	}
	name := fmt.Appendf(nil, "lost-queue-%d", id)
	for !d.names.add(name) {
		name = append(name, '.')
	}
	return name
}
