package recovery

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
	if c.err == nil && c.entries[0].other.header.version <= DumpVersion {
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

// cut reads r and makes chunks of it.
func (in *input) cut() {
	defer close(in.work)
	defer close(in.order)
	for {
		c, err := in.room.take()
		if err != nil {
			return
		}
		more, err := in.fill(c)
		if errors.Is(err, errStopped) {
			return
		}
		if err != nil {
			c.data, c.err = nil, err
		} else if len(c.data) == 0 {
			return
		}
		in.room.give(c)
		in.work <- c // has room for every chunk, as order has
		in.order <- c
		if !more || err != nil {
			return
		}
	}
}

// fill makes a chunk of the whole records in about the next size bytes; more says whether others follow.
func (in *input) fill(c *chunk) (more bool, err error) {
	data := c.buf[:0]
	if cap(data) < in.size {
		data = make([]byte, 0, in.size)
	}
	if len(in.carry) >= in.size { // left of a buffer that was made for a long record
		end, err := in.wholeRecords(in.carry)
		if err != nil {
			return false, err
		}
		if end > 0 {
			return true, in.part(c, end)
		}
		if err := in.room.wait(len(in.carry)); err != nil {
			return false, err
		}
	}
	data = append(data, in.carry...)
	in.carry = nil
	for {
		if in.ended == nil && len(data) < cap(data) {
			n, err := io.ReadAtLeast(in.r, data[len(data):cap(data)], cap(data)-len(data))
			in.note(err)
			data = data[:len(data)+n]
		}
		end, err := in.wholeRecords(data)
		if err != nil {
			return false, err
		}
		switch last := in.ended != nil; {
		case end > 0:
			c.buf = data
			in.hand(c, data, end)
			in.carry = bytes.Clone(in.carry) // it lies in the buffer of the chunk
			return len(in.carry) > 0 || !errors.Is(in.ended, io.EOF), nil
		case last && !errors.Is(in.ended, io.EOF):
			return false, in.ended
		case last && len(data) == 0:
			c.data = nil
			return false, nil
		case last:
			return false, fmt.Errorf("%s: the dump is cut short: it ends inside a record", in.place(in.at))
		case len(data) > maxEntry:
			return false, fmt.Errorf("%s: the record is longer than %d bytes, which none is", in.place(in.at), maxEntry)
		}
		n := min(2*len(data), maxEntry+1)
		if err := in.room.wait(n); err != nil {
			return false, err
		}
		data = append(make([]byte, 0, n), data...)
	}
}

// part makes a chunk of the first end bytes of carry, and leaves the buffer that carry lies in alone.
func (in *input) part(c *chunk, end int) error {
	if err := in.room.wait(end); err != nil {
		return err
	}
	rest := in.carry[end:]
	c.buf = append(c.buf[:0], in.carry[:end]...)
	in.hand(c, c.buf, end)
	in.carry = rest
	return nil
}

// wholeRecords returns where the next chunk ends: as many whole records as have room in its usual
// size, but at most chunkRecords, or one that is longer; 0 if data holds no whole one. It counts
// records of msgpack.
func (in *input) wholeRecords(data []byte) (end int, err error) {
	atSeam := in.seam > in.offset && in.offset+int64(len(data)) >= in.seam
	if atSeam {
		data = data[:in.seam-in.offset]
	}
	last := !atSeam && errors.Is(in.ended, io.EOF)
	window := data[:min(len(data), in.size)]
	all := len(window) == len(data)
	if end, err = in.lastWhole(window, last && all); err == nil && end == 0 {
		end, err = in.firstWhole(data, last)
	}
	if err == nil && atSeam && (end == 0 || all && end != len(data) && in.count < chunkRecords) {
		err = errSeam
	}
	return end, err
}

// lastWhole returns where the last whole record ends; last says that the input ends with data.
func (in *input) lastWhole(data []byte, last bool) (end int, err error) {
	if in.format == JSONL {
		if lines := bytes.Count(data, []byte{'\n'}); lines > chunkRecords {
			in.count = chunkRecords
			return endOfLines(data, chunkRecords), nil
		}
		in.count = 0
		if last {
			return len(data), nil
		}
		return bytes.LastIndexByte(data, '\n') + 1, nil
	}
	in.count = 0
	for u := (unpacker{b: data}); u.pos < len(data); end = u.pos {
		switch u.skip() {
		case malformed:
			return 0, fmt.Errorf("%s and some after it: not msgpack", in.place(in.at))
		case cutShort:
			return end, nil
		}
		if in.count++; in.count == chunkRecords {
			return u.pos, nil
		}
	}
	return end, nil
}

// endOfLines returns where the first n lines end, of which data has as many.
func endOfLines(data []byte, n int) (end int) {
	for range n {
		end += bytes.IndexByte(data[end:], '\n') + 1
	}
	return end
}

// firstWhole returns where the first record ends.
func (in *input) firstWhole(data []byte, last bool) (end int, err error) {
	if in.format == JSONL {
		if end = bytes.IndexByte(data, '\n') + 1; end == 0 && last {
			end = len(data)
		}
		return end, nil
	}
	in.count = 1
	u := unpacker{b: data}
	switch u.skip() {
	case malformed:
		return 0, fmt.Errorf("%s: not msgpack", in.place(in.at))
	case cutShort:
		return 0, nil
	}
	return u.pos, nil
}

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
