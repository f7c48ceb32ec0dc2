package dump

import (
	"bufio"
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

// ReadOptions say who gets the records. Each function may be nil; its error ends the reading. What
// a function gets is its own.
type ReadOptions struct {
	// Header gets the marks of the dumped folder before all else. payloads says whether the dump has
	// them.
	Header func(m storage.Marks, payloads bool) error
	Queue  func(q *storage.Queue) error
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
	Bytes           int64
}

const (
	// maxLine bounds a line of JSON: the longest packet with every byte escaped, and its other
	// fields.
	maxLine = 10 << 20
	// maxMap bounds a record of msgpack: the longest packet with the longest names and notes. It also
	// bounds how deep the library can be made to call itself.
	maxMap = 6 << 18

	chunkBytes   = 256 << 10
	chunkRecords = 1024
	readBytes    = 64 << 10
)

// Read reads a dump to its end and checks it (DUMP.md, section reading). It calls the functions of
// o on the caller's goroutine. The error names the line, or in msgpack the number of the record. A
// dump without its end record, such as a backup that was cut off, is an error. When Read ends early
// it waits for a Read of the input that is under way.
func Read(ctx context.Context, in io.Reader, o ReadOptions) (ReadReport, error) {
	r := reader{ReadOptions: o, hash: xxhash.New()}
	err := r.run(ctx, bufio.NewReaderSize(in, readBytes))
	return ReadReport{Format: r.format, Packets: int64(r.check.packets), Queues: int64(r.check.queues), Keys: int64(r.check.keys), Bytes: r.bytes}, err
}

// reader reads one dump.
type reader struct {
	ReadOptions
	format Format
	next   func() ([]byte, error) // the next raw record, valid until the next call; at the end io.EOF

	// What was handed out so far.
	check   checker
	queue   *storage.Queue
	head    *storage.Head
	records int64 // lines, in JSON
	bytes   int64
	hash    *xxhash.Digest
}

func (r *reader) run(ctx context.Context, in *bufio.Reader) error {
	begin, err := in.Peek(1)
	if err != nil {
		if errors.Is(err, io.EOF) {
			return errors.New("the dump is empty: expected at least a header and an end record")
		}
		return fmt.Errorf("cannot read the dump: %w", err)
	}
	if r.format, err = formatOf(begin[0]); err != nil {
		return err
	}
	r.next = (&lines{in: in}).next
	if r.format == Msgpack {
		m := &maps{in: &io.LimitedReader{R: in}}
		m.dec = msgpack.NewDecoder(m.in)
		r.next = m.next
	}
	if err := r.header(); err != nil {
		return err
	}
	tell := time.Now()
	err = pipeline.Run(ctx, pipeline.Stages[*chunk]{
		New:  func() *chunk { return &chunk{} },
		Read: func(_ context.Context, next func() (*chunk, error)) error { return r.split(next) },
		Work: func() func(*chunk) { return func(c *chunk) { c.decode(r.format) } },
		Deliver: func(c *chunk) error {
			defer c.reset()
			if err := r.deliver(c); err != nil {
				return err
			}
			if now := time.Now(); r.Progress != nil && now.After(tell) {
				tell = now.Add(progressEvery)
				r.Progress(Progress{Packets: int64(r.check.packets), Keys: int64(r.check.keys), Bytes: r.bytes})
			}
			return nil
		},
	})
	if err == nil && !r.check.ended {
		err = fmt.Errorf("the dump is cut short: after %d packets of %d queues it has no end record", r.check.packets, r.check.queues)
	}
	return err
}

// formatOf tells the format of a dump by its first byte.
func formatOf(c byte) (Format, error) {
	const fixMap, map16, map32 = 0x80, 0xde, 0xdf
	switch {
	case c == '{':
		return JSONL, nil
	case c&0xf0 == fixMap, c == map16, c == map32:
		return Msgpack, nil
	}
	return "", fmt.Errorf("not a dump: it begins with %q, where JSON lines begin with { and msgpack with a map; unpack one that is compressed first, for example through a pipe", c)
}

// header reads the first record, before any goroutine is started.
func (r *reader) header() error {
	raw, err := r.next()
	if err == nil {
		err = laterVersion(r.format, raw)
	}
	var record record
	if err == nil {
		err = decode(r.format, raw, &record)
	}
	if err == nil {
		err = r.check.record(&record)
	}
	if err != nil {
		return r.located(err)
	}
	r.pass(raw)
	if r.Header != nil {
		return r.Header(r.check.marks, r.check.payloads)
	}
	return nil
}

// located names the record behind those that were handed out.
func (r *reader) located(err error) error {
	if r.format == Msgpack {
		return fmt.Errorf("record %d: %w", r.records+1, err)
	}
	return fmt.Errorf("line %d: %w", r.records+1, err)
}

// pass counts a record that was handed out.
func (r *reader) pass(raw []byte) {
	r.records++
	r.bytes += int64(len(raw))
	_, _ = r.hash.Write(raw)
}

// chunk is some records on their way. The raw ones lie in buf, one behind the other.
type chunk struct {
	buf     []byte
	ends    []int // of each raw record in buf
	err     error // of the record behind the last one
	records []record
	errs    []error // of each record
}

func (c *chunk) decode(f Format) {
	from := 0
	for _, end := range c.ends {
		c.records = append(c.records, record{})
		c.errs = append(c.errs, decode(f, c.buf[from:end], &c.records[len(c.records)-1]))
		from = end
	}
}

func (c *chunk) reset() {
	if cap(c.buf) > 4*chunkBytes { // of a long record
		c.buf = nil
	}
	clear(c.records)
	c.buf, c.ends, c.err, c.records, c.errs = c.buf[:0], c.ends[:0], nil, c.records[:0], c.errs[:0]
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

// deliver is the pipeline's last stage.
func (r *reader) deliver(c *chunk) error {
	from := 0
	for i, end := range c.ends {
		err := c.errs[i]
		if err == nil && c.records[i].Type != "" { // else an empty line
			err = r.record(&c.records[i])
		}
		if err != nil {
			return r.located(err)
		}
		r.pass(c.buf[from:end])
		from = end
	}
	if c.err != nil {
		return r.located(c.err)
	}
	return nil
}

// record checks a record and hands it out.
func (r *reader) record(record *record) (err error) {
	if err := r.check.record(record); err != nil {
		return err
	}
	switch record.Type {
	case typeQueue:
		r.queue = record.queue()
		if r.queue.Settings, err = record.Settings.stored(); err == nil && r.Queue != nil {
			err = r.Queue(r.queue)
		}
	case typePacket:
		if r.Packet != nil {
			id, p, d := record.packet(r.queue.ID)
			err = r.Packet(r.queue, id, p, d)
		}
	case typeWindow:
		if r.Window != nil {
			err = r.Window(&storage.Unique{
				UniqueID: storage.UniqueID{Queue: r.queue.ID, Identity: uint64(record.Identity)}, ID: record.Name, Until: int64(record.Expires),
			})
		}
	case typeString, typeHash:
		if r.head = record.head(); r.Head != nil {
			err = r.Head(r.head)
		}
	case typeField:
		if r.Field != nil {
			err = r.Field(r.head, &storage.Field{Name: record.Name, Value: notNil(record.Value)})
		}
	case typeEnd:
		err = r.check.whole(record, hashDigits(r.hash.Sum64()))
	}
	return err
}

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

func hashDigits(hash uint64) string { return fmt.Sprintf("%016x", hash) }
