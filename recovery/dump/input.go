package dump

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/cespare/xxhash/v2"
)

// input reads a dump: one goroutine cuts it into chunks of whole records, several take the records
// apart, and next gives the chunks in order. Chunks are handed round, so memory is bounded.
type input struct {
	r      io.Reader
	format Format
	newer  bool // the dump is of a later version
	first  entry
	passed int64 // fields of the header that were passed over

	// These belong to openInput, and then to the goroutine that cuts.
	carry  []byte // read, and not part of a chunk yet
	offset int64  // of carry in the dump
	at     int64  // line, or number of the record, that carry begins with
	hash   xxhash.Digest
	ended  error // of r: io.EOF or worse

	size  int       // of a chunk, about
	room  chunkRoom // belongs to the goroutine that cuts
	seam  int64     // a place where one chunk must end and another begin; 0 is none
	count int64     // records of msgpack in what wholeRecords found
	free  chan *chunk
	work  chan *chunk
	order chan *chunk
	stop  chan struct{} // closed by close
}

// chunk is some whole records. Whoever holds it may touch it.
type chunk struct {
	buf     []byte
	data    []byte        // whole records, in buf
	at      int64         // line or number of its first record
	end     int64         // offset in the dump of what follows it
	before  xxhash.Digest // of all bytes before it
	hash    uint64        // of all bytes up to its end
	entries []entry
	ignored int64 // fields and records of a later version
	err     error // what comes after the entries
	ready   chan struct{}
	held    int // bytes of buf as it was handed out
}

const (
	chunkBytes = 256 << 10
	// chunkRecords bounds what the entries of a chunk take: more than its bytes, if records are as
	// short as only those of later versions can be.
	chunkRecords = 4096
	// headBytes is read at first: more than a header is.
	headBytes = 4 << 10
	// maxEntry bounds one record of a dump: the longest packet, each byte escaped, and some room.
	maxEntry = 8 << 20
)

// errSeam means that no record ends at the seam.
var errSeam = errors.New("no record ends where an earlier load stopped")

// errRead means that there may be more of the dump, and that it could not be read.
var errRead = errors.New("cannot read the dump")

// openInput reads the header of a dump, and of its rest nothing but what came along.
func openInput(r io.Reader) (*input, error) {
	in := &input{r: r, at: 1}
	in.hash.Reset()
	if err := in.more(); err != nil {
		return nil, err
	}
	if err := in.guess(); err != nil {
		return nil, err
	}
	var end int
	for {
		var err error
		if end, err = in.headEnd(); err != nil {
			return nil, err
		}
		if end > 0 {
			break
		}
		if err := in.more(); err != nil {
			return nil, err
		}
	}
	c := &chunk{}
	in.count = 1
	in.hand(c, in.carry, end)
	return in, in.readHead(c)
}

// readHead reads the header, first as one of a later version: only it can tell whether it is one.
func (in *input) readHead(c *chunk) error {
	in.newer = true
	in.newDecoder()(c)
	if c.err == nil && (len(c.entries) != 1 || c.entries[0].kind != entryHeader) {
		return fmt.Errorf("%s: expected the header of a dump, a record of type holdfast", in.place(1))
	}
	if c.err == nil && c.entries[0].other.header.version <= Version {
		in.newer = false
		c.entries = c.entries[:0]
		in.newDecoder()(c)
	}
	if c.err != nil {
		return c.err
	}
	in.first, in.passed = c.entries[0], c.ignored
	return nil
}

// more reads on; carry grows. Without more it returns an error.
func (in *input) more() error {
	if in.ended != nil {
		if len(in.carry) == 0 && in.offset == 0 && errors.Is(in.ended, io.EOF) {
			return errors.New("the dump is empty: expected at least a header and an end record")
		}
		if errors.Is(in.ended, io.EOF) {
			return fmt.Errorf("%s: the dump is cut short: it ends inside a record", in.place(in.at))
		}
		return in.ended
	}
	if len(in.carry) > maxEntry {
		return fmt.Errorf("%s: the record is longer than %d bytes, which none is", in.place(in.at), maxEntry)
	}
	have := len(in.carry)
	buf := make([]byte, max(headBytes, 2*have))
	copy(buf, in.carry)
	n, err := io.ReadFull(in.r, buf[have:])
	in.note(err)
	in.carry = buf[:have+n]
	if n == 0 {
		return in.more()
	}
	return nil
}

func (in *input) note(err error) {
	switch {
	case err == nil:
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		in.ended = io.EOF
	default:
		in.ended = fmt.Errorf("%w: %w", errRead, err)
	}
}

// guess tells the format by the first bytes.
func (in *input) guess() error {
	switch b := in.carry; {
	case b[0] == '{':
		in.format = JSONL
	case isMap(b[0]):
		in.format = Msgpack
	case bytes.HasPrefix(b, []byte("queue,")):
		return errors.New("the dump is CSV, which is for spreadsheets and holds no queues: dump as jsonl or msgpack to load it again")
	case bytes.HasPrefix(b, []byte{0x1f, 0x8b}) || bytes.HasPrefix(b, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		return errors.New("the dump is compressed: unpack it first, for example through a pipe")
	default:
		return fmt.Errorf("not a dump: it begins with %q, where JSON lines begin with { and msgpack with a map", b[:min(len(b), 16)])
	}
	return nil
}

// place names a record for people.
func (in *input) place(at int64) string {
	if in.format == Msgpack {
		return fmt.Sprintf("record %d", at)
	}
	return fmt.Sprintf("line %d", at)
}

// headEnd returns where the first record of carry ends; 0 means that more must be read.
func (in *input) headEnd() (int, error) {
	if in.format == Msgpack {
		u := unpacker{b: in.carry}
		switch u.skip() {
		case malformed:
			return 0, fmt.Errorf("%s: not msgpack", in.place(in.at))
		case cutShort:
			return 0, nil
		}
		return u.pos, nil
	}
	if n := bytes.IndexByte(in.carry, '\n'); n >= 0 {
		return n + 1, nil
	}
	if errors.Is(in.ended, io.EOF) {
		return len(in.carry), nil
	}
	return 0, nil
}

// hand gives the chunk the first end bytes of data and keeps the rest.
func (in *input) hand(c *chunk, data []byte, end int) {
	c.data, c.at, c.before = data[:end:end], in.at, in.hash
	_, _ = in.hash.Write(c.data)
	in.offset += int64(end)
	c.end, c.hash = in.offset, in.hash.Sum64()
	in.carry = data[end:]
	if in.format == JSONL {
		in.count = int64(bytes.Count(c.data, []byte{'\n'}))
	}
	in.at += in.count
}

// start begins to read on in chunks of about size bytes, one of which ends at seam unless that is 0.
func (in *input) start(size int, seam int64) {
	workers := runtime.GOMAXPROCS(0)
	n := 2*workers + 2
	in.size, in.seam = size, seam
	in.free, in.work, in.order = make(chan *chunk, n), make(chan *chunk, n), make(chan *chunk, n)
	in.stop = make(chan struct{})
	for range n {
		in.free <- &chunk{ready: make(chan struct{}, 1)}
	}
	in.room = chunkRoom{free: in.free, stop: in.stop}
	for range workers {
		go func() { // ends when work is closed
			decode := in.newDecoder()
			for c := range in.work {
				decode(c)
				c.ready <- struct{}{}
			}
		}()
	}
	go in.cut() // ends with the input, or with stop once r has given what it was asked for
}

// next returns the next chunk, for release once it is used up; nil at the end of the input.
func (in *input) next(ctx context.Context) (*chunk, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case c, ok := <-in.order:
		if !ok {
			return nil, nil
		}
		<-c.ready
		return c, nil
	}
}

func (in *input) release(c *chunk) {
	if cap(c.buf) > 4*in.size { // of a long record
		c.buf = nil
	}
	c.data = nil
	for i := range c.entries {
		c.entries[i] = entry{}
	}
	c.entries, c.err, c.ignored = c.entries[:0], nil, 0
	in.free <- c
}

func (in *input) close() { close(in.stop) }

// newDecoder returns a function that takes the records of chunks apart; one goroutine uses it.
func (in *input) newDecoder() func(c *chunk) {
	if in.format == Msgpack {
		r := &packReader{}
		return func(c *chunk) { in.decodePacks(r, c) }
	}
	r := &jsonReader{}
	return func(c *chunk) { in.decodeLines(r, c) }
}

func (in *input) decodeLines(r *jsonReader, c *chunk) {
	r.newer, r.ignored = in.newer, 0
	defer r.forget()
	at, from := c.at, 0
	for ; from < len(c.data); at++ {
		end := len(c.data)
		if n := bytes.IndexByte(c.data[from:], '\n'); n >= 0 {
			end = from + n + 1
		}
		line := c.data[from:end]
		if len(bytes.TrimSpace(line)) > 0 {
			e := c.grow(at)
			if err := r.read(line, e); err != nil {
				c.fail(fmt.Errorf("%s: %w", in.place(at), err))
				return
			}
			c.mark(e, from)
		}
		from = end
	}
	c.ignored = r.ignored
}

func (in *input) decodePacks(r *packReader, c *chunk) {
	r.newer, r.ignored = in.newer, 0
	defer r.forget()
	u := unpacker{b: c.data}
	for at := c.at; u.pos < len(c.data); at++ {
		from := u.pos
		if u.skip() != passed {
			return // the cutter has said so
		}
		e := c.grow(at)
		if err := r.read(c.data[from:u.pos], e); err != nil {
			c.fail(fmt.Errorf("%s: %w", in.place(at), err))
			return
		}
		c.mark(e, from)
	}
	c.ignored = r.ignored
}

func (c *chunk) grow(at int64) *entry {
	c.entries = append(c.entries, entry{at: at})
	return &c.entries[len(c.entries)-1]
}

// fail takes the entry that was begun away.
func (c *chunk) fail(err error) {
	c.entries, c.err = c.entries[:len(c.entries)-1], err
}

// mark notes in an end record what its hash must be.
func (c *chunk) mark(e *entry, from int) {
	if e.kind == entryEnd {
		hash := c.before
		_, _ = hash.Write(c.data[:from])
		e.other.want = hash.Sum64()
	}
}
