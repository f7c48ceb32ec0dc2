// Package dump writes what is in a data folder as a dump, and reads dumps. DUMP.md describes the
// formats to the byte.
//
// Its map:
//
//	dump.go      Dump: chooses the queues
//	packets.go   reads packets, encodes them on several goroutines, writes them in order
//	delivery.go  what was tried with packets: read, checked, shown
//	keys.go      reads and writes strings and hashes
//	salvage.go   what Dump does in addition for a damaged folder
//	jsonl.go, msgpack.go, csv.go   the encoders; text.go: bytes as text
//	reader.go    Reader: splits a dump into records, and hands them out in order
//	decode.go    decodes records, on several goroutines
//	check.go     checks them, in order; checkkeys.go: strings and hashes
//	record.go    the fields of the records; settings.go: those of a queue's settings; format.go: the names of formats
//	glob.go      patterns for the names of queues
package dump

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"time"

	"github.com/cespare/xxhash/v2"

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
	// some that are there, in rising order; any goroutine may call it.
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
	OmittedKeys     int64        // strings, hashes and fields left out because of the format or the limit
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
// of packets, but by 8 bytes for each that has a delivery state. A dump made without an error can
// be loaded.
//
// The error is that of w or of src, or names the packet that cannot be read or loaded, or wraps
// storage.ErrLoadUnfinished. What was written until then has no end record, so no reader takes it
// for a whole dump.
func Dump(src Source, w io.Writer, o Options) (Report, error) {
	o.Now = cmp.Or(o.Now, time.Now().UnixMilli())
	d := &dumper{Options: o, src: src, control: src.Control(), w: w, hash: xxhash.New(),
		dropped: make(map[uint32]bool), filled: make(map[string]bool)}
	d.report.Unfinished = src.Load() != nil
	if d.report.Unfinished && !o.Salvage {
		return d.report, storage.ErrLoadUnfinished
	}
	err := d.run()
	d.report.Nameless = d.nameless
	return d.report, err
}

// dumper is one dump under way.
type dumper struct {
	Options
	src       Source
	control   storage.Control
	queues    []*storage.Queue // to be dumped, in order of identity
	ranges    []storage.QueueRange
	globs     globs
	dropped   map[uint32]bool             // queues that nobody can reach
	filled    map[string]bool             // names of queues in the dump with packets or settings
	delivered []uint64                    // identities of the packets with a delivery state, in order
	matched   []uint64                    // for each of these the sequence of the packet that has it, 0: none yet
	marks     storage.Marks               // of the dump
	uniques   map[storage.UniqueID][]byte // ids of packets
	windows   []storage.Unique            // that are not over, by queue
	tally     storage.Tally               // of both

	names    map[string]bool // of a salvage: of queues; nil until lostName needs it
	nameless int64           // queues that have got a name from lostName because they have no definition

	// These belong to the goroutine that called Dump.
	w      io.Writer
	report Report
	hash   *xxhash.Digest
}

func (d *dumper) run() error {
	d.marks = d.control.Marks
	if err := d.chooseQueues(); err != nil {
		return err
	}
	if d.Salvage {
		if err := d.salvagePass(&d.marks); err != nil {
			return err
		}
	}
	if err := d.readUniques(); err != nil {
		return err
	}
	if err := d.readDeliveries(&d.marks); err != nil {
		return err
	}
	d.matched = make([]uint64, len(d.delivered))
	enc := newEncoder(d.Format, d.Payload)
	if err := d.write(enc.header(nil, d.marks)); err != nil {
		return err
	}
	if err := d.packets(context.Background()); err != nil {
		return err
	}
	if err := d.keys(); err != nil {
		return err
	}
	end := endRecord{typeEnd, uint64(d.report.Packets), uint64(d.report.Queues), uint64(d.report.Keys), hashDigits(d.hash.Sum64())}
	if err := d.write(enc.end(nil, end)); err != nil {
		return err
	}
	if d.Progress != nil {
		d.Progress(d.progress())
	}
	return nil
}

// readUniques reads the ids of unique pushes. A salvage leaves out those that cannot be loaded.
func (d *dumper) readUniques() error {
	d.uniques = make(map[storage.UniqueID][]byte)
	err := d.src.Uniques(func(u *storage.Unique) error {
		d.tally.AddUnique(u.UniqueID)
		switch ok := u.Identity > d.marks.LowSeq && u.Identity < d.marks.NextSeq && len(u.ID) <= storage.MaxUnique; {
		case !ok && !d.Salvage:
			return fmt.Errorf("%w: %v has an id of %d bytes, at most %d, or lies outside of the marks", storage.ErrDamaged, u.UniqueID, len(u.ID), storage.MaxUnique)
		case !ok:
			d.finding(storage.FindingRecord, u.String(), "it is left out: its id is too long, or it lies outside of the marks")
		case u.Until == 0:
			d.uniques[u.UniqueID] = bytes.Clone(u.ID)
		case !u.Expired(d.Now):
			d.windows = append(d.windows, storage.Unique{UniqueID: u.UniqueID, ID: bytes.Clone(u.ID), Until: u.Until})
		}
		return nil
	})
	if err != nil && !(d.Salvage && errors.Is(err, storage.ErrDamaged)) {
		return fmt.Errorf("read ids of unique pushes: %w", err)
	}
	return nil
}

// windowsOf returns the windows of a queue.
func (d *dumper) windowsOf(queue uint32) []storage.Unique {
	at := func(id uint32) int {
		return sort.Search(len(d.windows), func(i int) bool { return d.windows[i].Queue >= id })
	}
	return d.windows[at(queue):at(queue+1)]
}

func hashDigits(hash uint64) string { return fmt.Sprintf("%016x", hash) }

func (d *dumper) write(b []byte) error {
	if _, err := d.w.Write(b); err != nil {
		return fmt.Errorf("cannot write the dump: %w", err)
	}
	_, _ = d.hash.Write(b)
	d.report.Bytes += int64(len(b))
	return nil
}

func (d *dumper) progress() Progress {
	return Progress{Packets: d.report.Packets, Total: int64(d.control.Live), Keys: d.report.Keys, Bytes: d.report.Bytes}
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
		if err := d.checkNumber(q.ID); err != nil {
			return err
		}
		if !possibleQueue(q.ID) {
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
	if err != nil && !(d.Salvage && errors.Is(err, storage.ErrDamaged)) {
		return fmt.Errorf("read queue definitions: %w", err)
	}
	if len(d.Queues) == 0 {
		d.ranges = []storage.QueueRange{{}} // also the packets whose queue has lost its definition
	}
	return d.checkNames()
}

// checkNumber refuses the number of a queue that could not be loaded. A salvage leaves the queue
// out if no queue can have the number, and else widens the marks.
func (d *dumper) checkNumber(id uint32) error {
	switch {
	case d.Salvage && !possibleQueue(id):
		d.finding(storage.FindingQueue, queueKey(id), "no queue can have this number: its definition and its packets are left out")
	case d.Salvage || possibleQueue(id) && id < d.control.NextQueue:
	default:
		return fmt.Errorf("%w: the number of queue %d is not below that of the next queue, %d", storage.ErrDamaged, id, d.control.NextQueue)
	}
	return nil
}

// checkNames refuses two queues of one name, which could not be loaded. A salvage renames all but
// the first.
func (d *dumper) checkNames() error {
	order := slices.Clone(d.queues)
	slices.SortStableFunc(order, func(a, b *storage.Queue) int {
		return cmp.Or(cmp.Compare(a.Database, b.Database), bytes.Compare(a.Name, b.Name))
	})
	var again []*storage.Queue
	for i := 1; i < len(order); i++ {
		if order[i-1].Database != order[i].Database || !bytes.Equal(order[i-1].Name, order[i].Name) {
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

func (d *dumper) finding(kind, key, format string, args ...any) {
	if len(d.report.Findings) < maxFindings {
		d.report.Findings = append(d.report.Findings, storage.Finding{Kind: kind, Key: key, What: fmt.Sprintf(format, args...)})
	}
}

func queueKey(id uint32) string { return fmt.Sprintf("queue %d", id) }
