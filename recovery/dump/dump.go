// Package dump writes what is in a data folder as a dump, and reads dumps. DUMP.md describes the
// formats to the byte.
//
// Its map:
//
//	dump.go      Dump: chooses the queues, encodes records on several goroutines, writes them in order
//	packets.go   makes records of packets and of what was tried with them
//	keys.go      makes records of strings and hashes
//	salvage.go   what Dump does in addition for a damaged folder
//	reader.go    Read: splits a dump into records, decodes them on several goroutines, hands them out in order
//	record.go    the one type of all records, and what it is in the store; settings.go: a queue's settings
//	codec.go     records as JSON lines and as msgpack
//	check.go     which records in which order are a dump
//	glob.go      patterns for the names of queues
package dump

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/holdfast-queue/holdfast/recovery/pipeline"
	"github.com/holdfast-queue/holdfast/storage"
)

// Source is what Dump reads; a *storage.Snapshot is one. Dump calls it from one goroutine at a
// time.
type Source interface {
	Control() storage.Control
	// Queues calls fn for every queue definition, in order of identity.
	Queues(fn func(storage.Queue) error) error
	// Records calls fn for every packet of the queues in r, in key order. rec is the full record,
	// valid during the call. It is nil if the record cannot be read, and damage says why.
	Records(r storage.QueueRange, fn func(id storage.PacketID, rec []byte, damage error) error) error
	// Deliveries calls fn for every delivery state, as storage.Snapshot does. ReadDeliveries reads
	// some that are there, in rising order, also during a call of Records.
	Deliveries(fn func(d *storage.Delivery, damage error) error) error
	ReadDeliveries(identities []uint64, fn func(i int, d *storage.Delivery) error) error
	// Uniques calls fn for every record of a unique push, in the order of their keys.
	Uniques(fn func(*storage.Unique) error) error
	// Items calls fn for every head and field, as storage.Snapshot does.
	Items(fn func(v storage.ValueID, h *storage.Head, f *storage.Field, damage error) error) error
	// Flush says which queues, strings and hashes are dropped.
	Flush() storage.Flush
	// Load returns the record of a load under way, nil if there is none.
	Load() []byte
}

// Options say what to dump and how. The zero value dumps everything as JSONL.
type Options struct {
	Format  Format
	Payload Encoding
	Queues  []string // patterns (DUMP.md, section names): only what has a name that matches one is dumped; none: all
	Limit   int64    // the most packets, and then no strings and hashes; 0 is no limit
	Now     int64    // Unix milliseconds: packets that have expired by then are left out; 0 is the wall clock

	// Salvage writes what can be read of a damaged folder, in a form that can be loaded:
	//   - a packet, string, hash or field that cannot be read is left out and counted, a delivery
	//     state that cannot be read is left out;
	//   - a queue without a name, or with that of another queue, gets the name lost-queue-N;
	//   - where sequences lie outside the marks, the dump has wider marks;
	//   - a folder with an unfinished load is dumped as it is.
	// Without Salvage each of these is an error.
	Salvage bool

	// Progress, if not nil, is called now and then.
	Progress func(Progress)
}

// Progress is how far something is.
type Progress struct {
	Packets int64 // handled so far
	Total   int64 // about how many there are; 0: not known
	Keys    int64 // strings, hashes and fields handled so far: after all packets
	Bytes   int64 // of the dump, written or read so far
}

// progressEvery is how often progress is told.
const progressEvery = 100 * time.Millisecond

// Unreadable is a packet that a salvage could not read.
type Unreadable struct {
	ID  storage.PacketID
	Err error
}

// Report says what a dump holds and what it leaves out.
type Report struct {
	Packets, Queues int64
	Keys            int64 // strings, hashes and fields
	Bytes           int64
	Expired         int64        // packets on disk that have expired; left out
	Lost            int64        // packets that cannot be read; left out
	Unreadable      []Unreadable // the first thousand of them
	LostKeys        int64        // strings, hashes and fields that cannot be read or loaded; left out
	OmittedKeys     int64        // strings, hashes and fields left out because of the limit
	Nameless        int64        // queues whose definitions are gone
	Unfinished      bool         // a load into the folder is not finished

	// Findings, of a salvage, say how the folder differs from what its control record counts, and
	// what was changed so that the dump can be loaded.
	Findings []storage.Finding
}

const (
	maxUnreadable = 1000   // bounds Report.Unreadable
	maxFindings   = 10_000 // bounds Report.Findings
)

// Dump writes the packets and queues of src to w, in key order: by queue, then by priority, then
// oldest first. The same src and options give the same bytes. Memory does not grow with the number
// of packets, but by 16 bytes for each that has a delivery state. A dump made without an error can
// be loaded.
//
// The error is that of w or of src, or names the packet that cannot be read or loaded, or wraps
// storage.ErrLoadUnfinished. What was written until then has no end record, so no reader takes it
// for a whole dump.
func Dump(src Source, w io.Writer, o Options) (Report, error) {
	o.Now = cmp.Or(o.Now, time.Now().UnixMilli())
	d := &dumper{Options: o, src: src, control: src.Control(), dropped: make(map[uint32]bool)}
	d.report.Unfinished = src.Load() != nil
	if d.report.Unfinished && !o.Salvage {
		return d.report, storage.ErrLoadUnfinished
	}
	err := d.run(&output{Writer: w, hash: xxhash.New()})
	return d.report, err
}

// dumper is one dump under way. While the pipeline runs, it belongs to the goroutine that makes
// records.
type dumper struct {
	Options
	src     Source
	control storage.Control
	report  Report
	check   checker       // of all records so far
	tally   storage.Tally // of ids of unique pushes, strings, hashes and fields

	queues    []*storage.Queue // to be dumped, in order of identity
	ranges    []storage.QueueRange
	globs     globs
	dropped   map[uint32]bool             // queues that nobody can reach
	names     map[string]bool             // of queues; nil until lostName needs it
	uniques   map[storage.UniqueID][]byte // ids of packets
	windows   []storage.Unique            // that are not over, by queue
	delivered []uint64                    // identities of the packets with a delivery state, in order
	matched   []uint64                    // for each of these the sequence of the packet that has it, 0: none yet

	queue   *storage.Queue   // the last one whose record was made
	later   []*storage.Queue // those after it
	packets []packet         // of queue, whose records are not made yet
	bytes   int              // of these

	block *block
	next  func() (*block, error) // hands the block on, and returns an empty one
}

// block is some records on their way from the folder to the dump.
type block struct {
	records  []record
	bytes    int // about so many will be written
	out      []byte
	err      error
	progress Progress // behind these records
}

// A block is full at so many records, or so many bytes.
const (
	blockRecords = 256
	blockBytes   = 256 << 10
)

// output is where a dump goes.
type output struct {
	io.Writer
	hash  *xxhash.Digest
	bytes int64
}

func (o *output) write(b []byte) error {
	if _, err := o.Write(b); err != nil {
		return fmt.Errorf("cannot write the dump: %w", err)
	}
	_, _ = o.hash.Write(b)
	o.bytes += int64(len(b))
	return nil
}

func (d *dumper) run(out *output) error {
	marks := d.control.Marks
	if err := d.prepare(&marks); err != nil {
		return err
	}
	tell := time.Now()
	err := pipeline.Run(context.Background(), pipeline.Stages[*block]{
		New: func() *block { return &block{} },
		Read: func(_ context.Context, next func() (*block, error)) (err error) {
			if d.block, err = next(); err != nil {
				return err
			}
			d.next = next
			if err = d.all(marks); err == nil {
				_, err = next()
			}
			return err
		},
		Work: func() func(*block) {
			e := newEncoder(d.Format, d.Payload)
			return func(b *block) { b.encode(e) }
		},
		Deliver: func(b *block) error {
			defer func() { clear(b.records); *b = block{records: b.records[:0], out: b.out[:0]} }()
			if b.err != nil {
				return b.err
			}
			if err := out.write(b.out); err != nil {
				return err
			}
			if now := time.Now(); d.Progress != nil && now.After(tell) {
				tell = now.Add(progressEvery)
				b.progress.Bytes = out.bytes
				d.Progress(b.progress)
			}
			return nil
		},
	})
	if err != nil {
		return err
	}
	d.report.Packets, d.report.Queues, d.report.Keys = int64(d.check.packets), int64(d.check.queues), int64(d.check.keys)
	end := block{records: []record{{
		Type: typeEnd, Packets: new(d.check.packets), Queues: new(d.check.queues), Keys: d.check.keys, Hash: data(hashDigits(out.hash.Sum64())),
	}}}
	end.encode(newEncoder(d.Format, Text))
	err = cmp.Or(end.err, out.write(end.out))
	if d.report.Bytes = out.bytes; d.Progress != nil {
		p := d.progress()
		p.Bytes = out.bytes
		d.Progress(p)
	}
	return err
}

func (b *block) encode(e *encoder) {
	e.Reset()
	for i := range b.records {
		if b.err = e.encode(&b.records[i]); b.err != nil {
			return
		}
	}
	b.out = append(b.out, e.Bytes()...)
}

func (d *dumper) progress() Progress {
	return Progress{Packets: int64(d.check.packets), Total: int64(d.control.Live), Keys: int64(d.check.keys)}
}

// prepare reads what must be known before the first record is made.
func (d *dumper) prepare(m *storage.Marks) error {
	if err := d.chooseQueues(); err != nil {
		return err
	}
	if d.Salvage {
		if err := d.salvagePass(m); err != nil {
			return err
		}
	}
	if err := d.readUniques(); err != nil {
		return err
	}
	return d.readDeliveries(m)
}

// all makes all records but the end.
func (d *dumper) all(m storage.Marks) error {
	if err := d.put(headerRecord(m, d.Payload)); err != nil {
		return fmt.Errorf("%w: the control record: %w", storage.ErrDamaged, err)
	}
	switch err := d.allPackets(); {
	case err != nil && !errors.Is(err, errEnough):
		return err
	case d.Limit > 0:
		d.report.OmittedKeys = int64(d.control.Keys - d.tally.Keys)
		return nil
	}
	return d.allKeys()
}

// put checks a record and sends it on its way. A refusal means that no dump can have it.
func (d *dumper) put(r record) error {
	if err := d.check.record(&r); err != nil {
		return refusal{err}
	}
	d.block.records = append(d.block.records, r)
	d.block.bytes += len(r.Payload) + len(r.Value) + len(r.Key) + len(r.Name)
	if len(d.block.records) < blockRecords && d.block.bytes < blockBytes {
		return nil
	}
	d.block.progress = d.progress()
	var err error
	d.block, err = d.next()
	return err
}

// refusal is why no dump can have a record.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

func refused(err error) bool {
	_, ok := errors.AsType[refusal](err)
	return ok
}

// tolerable is nil in place of an error that a salvage passes over.
func (d *dumper) tolerable(what string, err error) error {
	if err == nil || d.Salvage && errors.Is(err, storage.ErrDamaged) {
		return nil
	}
	return fmt.Errorf("read %s: %w", what, err)
}

// readUniques reads the ids of unique pushes. A salvage leaves out those that cannot be loaded.
func (d *dumper) readUniques() error {
	d.uniques = make(map[storage.UniqueID][]byte)
	return d.tolerable("ids of unique pushes", d.src.Uniques(func(u *storage.Unique) error {
		d.tally.AddUnique(u.UniqueID)
		switch {
		case len(u.ID) > storage.MaxUnique && !d.Salvage:
			return fmt.Errorf("%w: %v has an id of %d bytes, at most %d", storage.ErrDamaged, u.UniqueID, len(u.ID), storage.MaxUnique)
		case len(u.ID) > storage.MaxUnique:
			d.finding(storage.FindingRecord, u.String(), "it is left out: its id is too long")
		case u.Until == 0:
			d.uniques[u.UniqueID] = bytes.Clone(u.ID)
		case !u.Expired(d.Now):
			d.windows = append(d.windows, storage.Unique{UniqueID: u.UniqueID, ID: bytes.Clone(u.ID), Until: u.Until})
		}
		return nil
	}))
}

// chooseQueues fills queues and ranges. A range is a run of wanted queues with no other between
// them.
func (d *dumper) chooseQueues() error {
	var err error
	if d.globs, err = parseGlobs(d.Queues); err != nil {
		return err
	}
	adjacent, flush := false, d.src.Flush()
	err = d.src.Queues(func(q storage.Queue) error {
		dead := flush.DropsQueue(&q) || q.Expired(d.Now)
		if dead {
			d.dropped[q.ID] = true
		}
		if dead || !d.globs.match(q.Name) {
			adjacent = false
			return nil
		}
		q.Name, q.Rest, q.Settings = append([]byte{}, q.Name...), bytes.Clone(q.Rest), q.Settings.Clone()
		d.queues = append(d.queues, &q)
		if adjacent {
			d.ranges[len(d.ranges)-1].Last = q.ID
		} else {
			d.ranges = append(d.ranges, storage.QueueRange{First: q.ID, Last: q.ID})
		}
		adjacent = true
		return nil
	})
	if len(d.Queues) == 0 {
		d.ranges = []storage.QueueRange{{}} // also the packets whose queue has lost its definition
	}
	d.later = d.queues
	return d.tolerable("queue definitions", err)
}

func (d *dumper) finding(kind, key, format string, args ...any) {
	if len(d.report.Findings) < maxFindings {
		d.report.Findings = append(d.report.Findings, storage.Finding{Kind: kind, Key: key, What: fmt.Sprintf(format, args...)})
	}
}

// mismatch notes that the folder differs from what its control record counts.
func (d *dumper) mismatch(err error) {
	if m, ok := errors.AsType[*storage.MismatchError](err); ok && d.Salvage && d.control.Epoch != 0 {
		f := m.Finding()
		d.finding(f.Kind, f.Key, "%s", f.What)
	}
}
