// Package dump writes what is in a data folder as a dump, and reads dumps. DUMP.md describes the
// formats to the byte.
//
// Its map:
//
//	dump.go      Dump: encodes records on several goroutines, and writes them in order
//	walk.go      makes the records of a folder, and leaves out of a salvage what no dump can have
//	salvage.go   what Dump does in addition for a damaged folder
//	reader.go    Read: splits a dump into records, decodes them on several goroutines, hands them out in order
//	record.go    the one type of all records, and what it is in the store; settings.go: a queue's settings
//	codec.go     records as JSON lines and as msgpack; raw.go: msgpack, split by hand
//	check.go     which records in which order are a dump
//	glob.go      patterns for the names of queues
package dump

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/holdfast-queue/holdfast/recovery/pipeline"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// Source is the part of a store that Dump reads; a *storage.Snapshot is one, and says what the
// methods do. Dump calls it from one goroutine at a time, what ReadDeliveries returned also during
// a call of Walk.
type Source interface {
	Control() content.Control
	Flush() content.Flush
	Walk(v storage.Visitor) error
	ReadDeliveries() (read func(identity uint64) (*content.Delivery, error), done func())
}

// Options say what to dump and how. The zero value dumps everything as JSONL.
type Options struct {
	Format  Format
	Payload Encoding
	Queues  []string               // patterns (DUMP.md, section names): only what has a name that matches one is dumped; none: all
	May     func(name []byte) bool // whether what has a name may be dumped, if Queues name anything; nil: it may
	Limit   int64                  // the most packets, and then no strings and hashes; 0 is no limit
	Now     int64                  // Unix milliseconds: packets that have expired by then are left out; 0 is the wall clock

	// Salvage writes what can be read of a damaged folder, in a form that can be loaded:
	//   - what cannot be read is left out, and so is what no dump can have;
	//   - a queue without a name, or with that of another queue, gets the name lost-queue-N;
	//   - where sequences lie outside the marks, the dump has wider marks.
	// Without Salvage each of these is an error.
	Salvage bool

	// Progress, if not nil, is called now and then.
	Progress func(Progress)
}

// Counts holds the counts of a dump, or of what was written or read of one so far.
type Counts struct {
	Packets, Queues int64
	Keys            int64 // strings, hashes and fields: they come after all packets
	Bytes           int64
}

// Progress is how far something is.
type Progress struct {
	Counts
	Total int64 // about how many packets there are; 0: not known
}

// teller tells progress to a func, which may be nil.
type teller struct {
	told func(Progress)
	next time.Time
}

// progressEvery is how often progress is told.
const progressEvery = 100 * time.Millisecond

func (t *teller) tell(p Progress, last bool) {
	if now := time.Now(); t.told != nil && (last || now.After(t.next)) {
		t.next = now.Add(progressEvery)
		t.told(p)
	}
}

// Report says what a dump holds and what it leaves out.
type Report struct {
	Counts
	Expired     int64 // packets on disk that have expired; left out
	Lost        int64 // packets that cannot be read or loaded; left out
	LostKeys    int64 // strings, hashes and fields, likewise
	OmittedKeys int64 // strings, hashes and fields left out because of the limit

	// Found, of a salvage, says what is left out, how the folder differs from what its control record
	// counts, and what was changed so that the dump can be loaded.
	storage.Found
}

// Dump writes the packets and queues of src to w, in key order: by queue, then by priority, then
// oldest first. The same src and options give the same bytes. Memory does not grow with the number
// of packets, but by 16 bytes for each that has a delivery state, and with queues and ids of unique
// pushes. A dump made without an error can be loaded.
//
// The error comes from w or src, or names what cannot be read or loaded. What was written until
// then has no end record, so no reader takes it for a whole dump.
func Dump(src Source, w io.Writer, o Options) (Report, error) {
	o.Now = cmp.Or(o.Now, time.Now().UnixMilli())
	d := &dumper{Options: o, src: src, control: src.Control(), flush: src.Flush()}
	err := d.run(&output{Writer: w, hash: xxhash.New()})
	return d.report, err
}

// block is some records on their way from the folder to the dump.
type block struct {
	*encoder
	records  []Record
	bytes    int // about so many will be written
	err      error
	progress Progress // behind these records
}

// A block is full at blockRecords or blockBytes.
const (
	blockRecords = 256
	blockBytes   = 256 << 10
)

func (b *block) encode() {
	for i := range b.records {
		if b.err = b.encoder.encode(&b.records[i]); b.err != nil {
			return
		}
	}
}

func (b *block) reset() {
	clear(b.records)
	if b.Reset(); b.Cap() > keepBytes {
		b.Buffer = bytes.Buffer{}
	}
	b.records, b.bytes, b.err = b.records[:0], 0, nil
}

// output is where a dump goes.
type output struct {
	io.Writer
	hash  *xxhash.Digest
	bytes int64
}

func (o *output) write(b *block) error {
	if b.err != nil {
		return b.err
	}
	if _, err := o.Write(b.Bytes()); err != nil {
		return fmt.Errorf("cannot write the dump: %w", err)
	}
	_, _ = o.hash.Write(b.Bytes())
	o.bytes += int64(b.Len())
	return nil
}

func (d *dumper) run(out *output) error {
	marks := d.control.Marks
	if err := d.prepare(&marks); err != nil {
		return err
	}
	told := teller{told: d.Progress}
	newBlock := func() *block { return &block{encoder: newEncoder(d.Format, d.Payload)} }
	err := pipeline.Run(context.Background(), pipeline.Stages[*block]{
		New: newBlock,
		Read: func(next func() (*block, error)) (err error) {
			d.next = next
			if d.block, err = next(); err == nil {
				err = d.all(marks)
			}
			if err == nil {
				_, err = next()
			}
			return err
		},
		Alone: func(b *block) bool { return b.bytes > keepBytes },
		Work:  (*block).encode,
		Deliver: func(b *block) error {
			defer b.reset()
			if err := out.write(b); err != nil {
				return err
			}
			b.progress.Bytes = out.bytes
			told.tell(b.progress, false)
			return nil
		},
	})
	if err != nil {
		return err
	}
	end := newBlock()
	end.records = []Record{endRecord(d.check.Counts, hashDigits(out.hash.Sum64()))}
	end.encode()
	err = out.write(end)
	d.report.Counts = d.check.Counts
	d.report.Bytes = out.bytes
	told.tell(Progress{d.report.Counts, int64(d.control.Live)}, true)
	return err
}

// put checks a record, which what names, and sends it on its way. A salvage leaves out what no dump
// can have, and says so; that ends any other dump.
func (d *dumper) put(r Record, kind string, what any) (ok bool, err error) {
	b := d.block
	b.records = append(b.records, r)
	at := len(b.records) - 1
	if err := d.check.record(&b.records[at]); err != nil {
		b.records = b.records[:at]
		return false, d.leaveOut(kind, fmt.Sprint(what), err)
	}
	b.bytes += len(r.Payload) + len(r.Value) + len(r.Key) + len(r.Name)
	if len(b.records) < blockRecords && b.bytes < blockBytes {
		return true, nil
	}
	b.progress = Progress{d.check.Counts, int64(d.control.Live)}
	d.block, err = d.next()
	return true, err
}
