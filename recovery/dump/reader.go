package dump

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/vmihailenco/msgpack/v5"

	"github.com/holdfast-queue/holdfast/recovery/pipeline"
	"github.com/holdfast-queue/holdfast/storage"
)

// ReadOptions say who gets the records. Each function may be nil; its error ends the reading.
type ReadOptions struct {
	Queue func(q *storage.Queue) error
	// Packet gets a nil delivery state if nothing was tried with the packet.
	Packet func(q *storage.Queue, id storage.PacketID, p *storage.Packet, d *Delivery) error
	// Window gets a window of the queue that Queue got last.
	Window func(u *storage.Unique) error
	// Head and Field get strings, hashes and fields, which come after all queues and have no numbers
	// and versions.
	Head     func(h *storage.Head) error
	Field    func(h *storage.Head, f *storage.Field) error
	Progress func(Progress) // called now and then
}

// ReadReport says what a dump holds.
type ReadReport struct {
	Format          Format
	Packets, Queues int64
	Keys            int64 // strings, hashes and fields
}

// Read reads a dump in JSONL or Msgpack to its end and checks it (DUMP.md, section reading). The
// error names the line, or in msgpack the number of the record. A dump without its end record, such
// as a backup that was cut off, is an error.
func Read(ctx context.Context, in io.Reader, o ReadOptions) (ReadReport, error) {
	r, err := NewReader(in)
	if err != nil {
		return ReadReport{}, err
	}
	err = r.Run(ctx, o)
	return ReadReport{Format: r.format, Packets: int64(r.check.packets), Queues: int64(r.check.queues), Keys: int64(r.check.keyCount)}, err
}

// Reader reads one dump. Its methods are called from one goroutine, or from the functions of Run.
type Reader struct {
	// ChunkBytes is about how many bytes are decoded at a time. NewReader sets it to the usual number.
	ChunkBytes int

	format Format
	source source
	check  *checker

	// What was handed out so far.
	records int64 // lines, in JSON
	offset  int64
	hash    *xxhash.Digest
}

const (
	// maxLine bounds a line of JSON: the longest packet with every byte escaped, and its other
	// fields.
	maxLine = 10 << 20
	// maxMap bounds a record of msgpack: the longest packet with the longest names and notes. It also
	// bounds how deep the library can be made to call itself.
	maxMap = 6 << 18
)

// NewReader reads the header of a dump.
func NewReader(in io.Reader) (*Reader, error) {
	r := &Reader{ChunkBytes: chunkBytes, hash: xxhash.New()}
	if err := r.readHeader(bufio.NewReaderSize(in, readBytes)); err != nil {
		return nil, err
	}
	return r, nil
}

// Marks are those of the dumped folder.
func (r *Reader) Marks() storage.Marks { return r.check.marks }

// Payloads reports whether the dump holds payloads.
func (r *Reader) Payloads() bool { return r.check.payloads }

// Offset is how many bytes precede the record that is being handed out.
func (r *Reader) Offset() int64 { return r.offset }

// Hash is the xxhash64 (seed 0) of these bytes.
func (r *Reader) Hash() uint64 { return r.hash.Sum64() }

func (r *Reader) readHeader(in *bufio.Reader) error {
	begin, err := in.Peek(16)
	if len(begin) == 0 {
		if errors.Is(err, io.EOF) {
			return errors.New("the dump is empty: expected at least a header and an end record")
		}
		return fmt.Errorf("cannot read the dump: %w", err)
	}
	if r.format, err = formatOf(begin); err != nil {
		return err
	}
	if r.format == Msgpack {
		r.source = newMaps(in)
	} else {
		r.source = &lines{in: in}
	}
	raw, err := r.source.next()
	if err != nil {
		return fmt.Errorf("%s: %w", r.place(1), err)
	}
	record, err := decodeHeader(r.format, raw)
	if err == nil {
		r.check, err = newChecker(record)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", r.place(1), err)
	}
	r.pass(raw)
	return nil
}

// formatOf tells the format of a dump by its first bytes.
func formatOf(begin []byte) (Format, error) {
	const fixMap, map16, map32 = 0x80, 0xde, 0xdf
	switch c := begin[0]; {
	case c == '{':
		return JSONL, nil
	case c&0xf0 == fixMap, c == map16, c == map32:
		return Msgpack, nil
	case bytes.HasPrefix(begin, []byte("queue,")):
		return "", errors.New("the dump is CSV, which is for spreadsheets and holds no queues: dump as jsonl or msgpack to load it again")
	case bytes.HasPrefix(begin, []byte{0x1f, 0x8b}) || bytes.HasPrefix(begin, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		return "", errors.New("the dump is compressed: unpack it first, for example through a pipe")
	}
	return "", fmt.Errorf("not a dump: it begins with %q, where JSON lines begin with { and msgpack with a map", begin)
}

// place names a record for people.
func (r *Reader) place(number int64) string {
	if r.format == Msgpack {
		return fmt.Sprintf("record %d", number)
	}
	return fmt.Sprintf("line %d", number)
}

// pass counts a record that was handed out.
func (r *Reader) pass(raw []byte) {
	r.records++
	r.offset += int64(len(raw))
	_, _ = r.hash.Write(raw)
}

// chunk is some records on their way. Its raw records lie in buf, one behind the other.
type chunk struct {
	buf     []byte
	ends    []int // of each raw record in buf
	records []any // decoded; an error for one that cannot be
}

const (
	chunkBytes   = 256 << 10
	chunkRecords = 1024
	readBytes    = 64 << 10
)

// Run hands the records out, on the caller's goroutine and in their order, and checks them. It is
// called once. When it ends early it waits for a Read of the input that is under way.
func (r *Reader) Run(ctx context.Context, o ReadOptions) error {
	tell := time.Now()
	err := pipeline.Run(ctx, pipeline.Stages[*chunk]{
		New:  func() *chunk { return &chunk{} },
		Read: func(_ context.Context, next func() (*chunk, error)) error { return r.split(next) },
		Work: func() func(*chunk) {
			d := newDecoder(r.format)
			return func(c *chunk) { c.decode(d) }
		},
		Deliver: func(c *chunk) error {
			defer c.reset()
			if err := r.deliver(c, &o); err != nil {
				return err
			}
			if now := time.Now(); o.Progress != nil && now.After(tell) {
				tell = now.Add(progressEvery)
				o.Progress(Progress{Packets: int64(r.check.packets), Keys: int64(r.check.keyCount), Bytes: r.offset})
			}
			return nil
		},
	})
	if err != nil {
		return err
	}
	return r.check.finish()
}

// split fills chunks with raw records. It is the pipeline's first stage.
func (r *Reader) split(next func() (*chunk, error)) error {
	c, err := next()
	for n := r.records + 1; err == nil; n++ {
		raw, e := r.source.next()
		if e != nil {
			if _, err = next(); err == nil && !errors.Is(e, io.EOF) {
				err = fmt.Errorf("%s: %w", r.place(n), e)
			}
			return err
		}
		c.buf = append(c.buf, raw...)
		c.ends = append(c.ends, len(c.buf))
		if len(c.buf) >= r.ChunkBytes || len(c.ends) == chunkRecords {
			c, err = next()
		}
	}
	return err
}

// deliver is the pipeline's last stage.
func (r *Reader) deliver(c *chunk, o *ReadOptions) error {
	from := 0
	for i, record := range c.records {
		if err := r.record(record, o); err != nil {
			return fmt.Errorf("%s: %w", r.place(r.records+1), err)
		}
		r.pass(c.buf[from:c.ends[i]])
		from = c.ends[i]
	}
	return nil
}

func (r *Reader) record(record any, o *ReadOptions) error {
	switch record := record.(type) {
	case error:
		return record
	case *headerRecord:
		if r.check.ended {
			return errAfterEnd
		}
		return errors.New("a second header: is it two dumps in one file")
	case *queueRecord:
		q, err := r.check.queueRecord(record)
		if err == nil && o.Queue != nil {
			err = o.Queue(q)
		}
		return err
	case *packetRecord:
		id, p, d, err := r.check.packetRecord(record)
		if err == nil && o.Packet != nil {
			err = o.Packet(r.check.queue, id, p, d)
		}
		return err
	case *keyRecord:
		if record.Type == typeWindow {
			u, err := r.check.windowRecord(record)
			if err == nil && o.Window != nil {
				err = o.Window(u)
			}
			return err
		}
		f, err := r.check.keyRecord(record)
		if err == nil && f != nil && o.Field != nil {
			err = o.Field(r.check.head, f)
		}
		if err == nil && f == nil && o.Head != nil {
			err = o.Head(r.check.head)
		}
		return err
	case *endRecord:
		return r.check.endRecord(record, r.hash.Sum64())
	}
	return nil // an empty line
}

func (c *chunk) reset() {
	if cap(c.buf) > 4*chunkBytes { // of a long record
		c.buf = nil
	}
	clear(c.records)
	c.buf, c.ends, c.records = c.buf[:0], c.ends[:0], c.records[:0]
}

// source splits a dump into raw records, which are valid until the next call. The error behind the
// last one is io.EOF.
type source interface{ next() ([]byte, error) }

// lines are those of a JSON dump.
type lines struct {
	in   *bufio.Reader
	long []byte
}

func (l *lines) next() ([]byte, error) {
	l.long = l.long[:0]
	for {
		part, err := l.in.ReadSlice('\n')
		if err == nil && len(l.long) == 0 {
			return part, nil
		}
		l.long = append(l.long, part...)
		switch {
		case len(l.long) > maxLine:
			return nil, fmt.Errorf("the line is longer than %d bytes, which none is", maxLine)
		case err == nil, errors.Is(err, io.EOF) && len(l.long) > 0:
			return l.long, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

// maps are those of a msgpack dump.
type maps struct {
	in  *io.LimitedReader
	dec *msgpack.Decoder
}

func newMaps(in io.Reader) *maps {
	m := &maps{in: &io.LimitedReader{R: in}}
	m.dec = msgpack.NewDecoder(m.in)
	return m
}

func (m *maps) next() ([]byte, error) {
	m.in.N = maxMap
	if _, err := m.dec.PeekCode(); err != nil {
		return nil, err
	}
	raw, err := m.dec.DecodeRaw()
	switch {
	case err == nil:
		return raw, nil
	case m.in.N <= 0:
		return nil, fmt.Errorf("the record is longer than %d bytes, which none is", maxMap)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, errors.New("the dump is cut short: it ends inside a record")
	}
	return nil, err
}
