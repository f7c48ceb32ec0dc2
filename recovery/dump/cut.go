package dump

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

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
