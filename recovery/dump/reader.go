package dump

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/cespare/xxhash/v2"

	"github.com/holdfast-queue/holdfast/recovery/archive"
	"github.com/holdfast-queue/holdfast/recovery/pipeline"
	"github.com/holdfast-queue/holdfast/storage/content"
)

const (
	// maxLine bounds a line of JSON: the longest packet with every byte escaped, and its other fields.
	// maxShape bounds what it has besides texts, and so what the library makes of it.
	maxLine  = 6*content.MaxPayload + 4<<20
	maxShape = 1 << 20
	// maxMap bounds a record of msgpack, but for one value above longValue: a payload of 1 MiB with
	// the longest names and notes. maxDepth bounds how deep the library can be made to call itself.
	maxMap    = 6 << 18
	longValue = 1 << 20
	maxDepth  = 100

	// keepBytes is the largest buffer that is kept for the next records. Longer ones are on their way
	// one by one: a dozen of them would take too much memory.
	keepBytes = 4 << 20

	chunkBytes   = 256 << 10
	chunkRecords = 1024
	readBytes    = 64 << 10
)

// Read reads a dump to its end and checks it (DUMP.md, section reading). It calls each with one
// record after the other, which is each's own, and progress now and then, both on the caller's
// goroutine; either may be nil. An error of each ends the reading.
//
// The error names the line, or in msgpack the number of the record. A dump without its end record,
// such as a backup that was cut off, is an error. When Read ends early it waits for a Read of the
// input that is under way.
func Read(ctx context.Context, in io.Reader, each func(*Record) error, progress func(Progress)) (Counts, error) {
	r := reader{each: each, hash: xxhash.New()}
	err := r.run(ctx, bufio.NewReaderSize(in, readBytes), progress)
	return r.check.Counts, err
}

// reader reads one dump.
type reader struct {
	each   func(*Record) error
	format Format
	next   func() ([]byte, error) // the next raw record, valid until the next call; at the end io.EOF

	// What was handed out so far.
	check   checker
	records int64 // lines, in JSON
	hash    *xxhash.Digest
}

func (r *reader) run(ctx context.Context, in *bufio.Reader, progress func(Progress)) error {
	if err := r.begin(in); err != nil {
		return err
	}
	told := teller{told: progress}
	err := pipeline.Run(ctx, pipeline.Stages[*chunk]{
		New:   func() *chunk { return &chunk{} },
		Read:  r.split,
		Alone: func(c *chunk) bool { return len(c.buf) > keepBytes },
		Work:  func(c *chunk) { c.decode(r.format) },
		Deliver: func(c *chunk) error {
			defer c.reset()
			if err := r.deliver(c); err != nil {
				return err
			}
			told.tell(Progress{Counts: r.check.Counts}, false)
			return nil
		},
	})
	if err == nil && !r.check.ended {
		err = fmt.Errorf("the dump is cut short: after %d packets of %d queues it has no end record", r.check.Packets, r.check.Queues)
	}
	return err
}

// ErrFiles: what was read is a tar of the files of a data folder. errors.Is finds it.
var ErrFiles = errors.New("not a dump: it is a backup of files")

// begin tells the format of a dump by its first byte.
func (r *reader) begin(in *bufio.Reader) error {
	begin, err := in.Peek(1)
	switch {
	case errors.Is(err, io.EOF):
		return errors.New("the dump is empty: expected at least a header and an end record")
	case err != nil:
		return fmt.Errorf("cannot read the dump: %w", err)
	}
	if name, _ := in.Peek(len(archive.HeaderName)); string(name) == archive.HeaderName {
		return ErrFiles
	}
	const fixMap, map16, map32 = 0x80, 0xde, 0xdf
	switch c := begin[0]; {
	case c == '{':
		r.format, r.next = JSONL, lines(in, maxLine)
	case c&0xf0 == fixMap, c == map16, c == map32:
		r.format, r.next = Msgpack, maps(in)
	default:
		return fmt.Errorf("not a dump: it begins with %q, where JSON lines begin with { and msgpack with a map; unpack one that is compressed first, for example through a pipe", c)
	}
	return nil
}

// lines gives one line after the other, each with its line feed and no longer than most bytes.
func lines(in *bufio.Reader, most int) func() ([]byte, error) {
	var long []byte
	return func() ([]byte, error) {
		if long = long[:0]; cap(long) > keepBytes {
			long = nil
		}
		for s := (shape{}); ; {
			part, err := in.ReadSlice('\n')
			if err == nil && len(long) == 0 {
				return part, nil
			}
			if long = append(long, part...); len(long) > maxShape {
				if err := s.see(long); err != nil {
					return nil, err
				}
			}
			switch {
			case len(long) > most:
				return nil, fmt.Errorf("the line is longer than %d bytes, which none is", most)
			case err == nil, errors.Is(err, io.EOF) && len(long) > 0:
				return long, nil
			case !errors.Is(err, bufio.ErrBufferFull):
				return nil, err
			}
		}
	}
}

// chunk is some records on their way. The raw ones lie in buf, one behind the other.
type chunk struct {
	buf     []byte
	ends    []int // of each raw record in buf
	records []Record
	err     error // of the record behind the last one
}

func (c *chunk) decode(f Format) {
	from := 0
	for i, end := range c.ends {
		c.records = append(c.records, Record{})
		if err := decode(f, c.buf[from:end], &c.records[i]); err != nil {
			c.records, c.err = c.records[:i], err
			return
		}
		from = end
	}
}

func (c *chunk) reset() {
	if cap(c.buf) > 4*chunkBytes { // of a long record
		c.buf = nil
	}
	clear(c.records)
	c.buf, c.ends, c.records, c.err = c.buf[:0], c.ends[:0], c.records[:0], nil
}

// split fills chunks with raw records. It is the pipeline's first stage.
func (r *reader) split(next func() (*chunk, error)) error {
	c, err := next()
	for err == nil {
		raw, e := r.next()
		if e != nil {
			if !errors.Is(e, io.EOF) {
				c.err = e
			}
			_, err = next()
			return err
		}
		c.buf = append(c.buf, raw...)
		c.ends = append(c.ends, len(c.buf))
		if len(c.buf) >= chunkBytes || len(c.ends) == chunkRecords {
			c, err = next()
		}
	}
	return err
}

// deliver is the pipeline's last stage: it checks the records and hands them out.
func (r *reader) deliver(c *chunk) error {
	from := 0
	for i := range c.records {
		raw := c.buf[from:c.ends[i]]
		if err := r.record(&c.records[i]); err != nil {
			return r.located(err)
		}
		r.records++
		r.check.Bytes += int64(len(raw))
		_, _ = r.hash.Write(raw)
		from = c.ends[i]
	}
	if c.err != nil {
		return r.located(c.err)
	}
	return nil
}

func (r *reader) record(record *Record) error {
	if record.Type == "" { // an empty line
		return nil
	}
	err := r.check.record(record)
	if err == nil && record.Type == TypeEnd {
		err = r.check.whole(record, hashDigits(r.hash.Sum64()))
	}
	if err == nil && r.each != nil {
		err = r.each(record)
	}
	return err
}

// located names the record behind those that were handed out.
func (r *reader) located(err error) error {
	if r.format == Msgpack {
		return fmt.Errorf("record %d: %w", r.records+1, err)
	}
	return fmt.Errorf("line %d: %w", r.records+1, err)
}

func hashDigits(hash uint64) string { return fmt.Sprintf("%016x", hash) }
