package dump

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/holdfast-queue/holdfast/storage/content"
)

// What a stranger's record would make of the libraries is found out before they see it: how deep
// they call themselves, and how many values they make. Only texts may be long.

// longText is more than a text of a line has behind its escapes: a payload in base64.
const longText = (content.MaxRecord + 2) / 3 * 4

// shape tells what a long line has so far.
type shape struct {
	seen    int // bytes of it
	inside  bool
	escape  int // of the present escape: newEscape, or how many digits are to come
	text    int // bytes of the present text; an escape is one
	outside int // bytes besides texts
}

const newEscape = 5 // the next byte says whether digits come

// see looks at what has come of a line. It refuses one with too much besides texts, or in one text.
func (s *shape) see(line []byte) error {
	for _, c := range line[s.seen:] {
		switch {
		case s.escape == newEscape && c != 'u':
			s.escape = 0
		case s.escape > 0:
			s.escape--
		case c == '"':
			s.inside, s.text = !s.inside, 0
			s.outside++
		case !s.inside:
			s.outside++
		default:
			if s.text++; c == '\\' {
				s.escape = newEscape
			}
		}
	}
	switch s.seen = len(line); {
	case s.outside > maxShape:
		return fmt.Errorf("the line has more than %d bytes besides texts, which none has", maxShape)
	case s.text > longText:
		return fmt.Errorf("a text of the line has more than %d bytes, which none has", longText)
	}
	return nil
}

// maps gives one map of msgpack after the other.
func maps(in *bufio.Reader) func() ([]byte, error) {
	s := splitter{in: in}
	return func() ([]byte, error) {
		if _, err := in.Peek(1); err != nil {
			return nil, err
		}
		if s.raw = s.raw[:0]; cap(s.raw) > keepBytes {
			s.raw = nil
		}
		s.left, s.long = maxMap, content.MaxPayload
		err := s.value(0)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = errors.New("the dump is cut short: it ends inside a record")
		}
		return s.raw, err
	}
}

// splitter finds out where values of msgpack end.
type splitter struct {
	in   *bufio.Reader
	raw  []byte // of the record
	left int    // how many bytes it may still have
	long int    // and how many a payload may have, which do not count
}

// value reads a value, which is so deep in others.
func (s *splitter) value(depth int) error {
	if err := s.bytes(1); err != nil {
		return err
	}
	values, size := 0, 0
	switch c := int(s.raw[len(s.raw)-1]); {
	case c < 0x80, c >= 0xe0, c == 0xc0, c == 0xc2, c == 0xc3: // small numbers, nil, false, true
		return nil
	case c < 0x90:
		values = 2 * (c & 0xf)
	case c < 0xa0:
		values = c & 0xf
	case c < 0xc0:
		size = c & 0x1f
	default:
		var err error
		if values, size, err = s.head(c); err != nil {
			return err
		}
	}
	if depth == maxDepth && values > 0 {
		return fmt.Errorf("the record has values %d deep in others: expected fewer", depth)
	}
	for range values {
		if err := s.value(depth + 1); err != nil {
			return err
		}
	}
	if depth == 1 && size > longValue && size <= s.long {
		s.left, s.long = s.left+size, 0
	}
	return s.bytes(size)
}

// head reads the length behind a code from 0xc1 to 0xdf: of how many values, or of how many bytes.
func (s *splitter) head(code int) (values, size int, err error) {
	const bin8, ext8, float32, float64, uint8, int8, fixext1, str8, array16, map16 = 0xc4, 0xc7, 0xca, 0xcb, 0xcc, 0xd0, 0xd4, 0xd9, 0xdc, 0xde
	switch {
	case code >= map16:
		n, err := s.length(code - map16 + 1)
		return 2 * n, 0, err
	case code >= array16:
		values, err = s.length(code - array16 + 1)
	case code >= str8:
		size, err = s.length(code - str8)
	case code >= fixext1:
		size = 1 + 1<<(code-fixext1)
	case code >= int8:
		size = 1 << (code - int8)
	case code >= uint8:
		size = 1 << (code - uint8)
	case code >= float32:
		size = 4 << (code - float32)
	case code >= ext8:
		size, err = s.length(code - ext8)
		size++
	case code >= bin8:
		size, err = s.length(code - bin8)
	default:
		err = fmt.Errorf("the record has the code %#x, which msgpack does not use", code)
	}
	return values, size, err
}

// length reads a length of 1, 2 or 4 bytes: 1 << log.
func (s *splitter) length(log int) (int, error) {
	var whole [4]byte
	err := s.bytes(1 << log)
	if err == nil {
		copy(whole[4-1<<log:], s.raw[len(s.raw)-1<<log:])
	}
	return int(binary.BigEndian.Uint32(whole[:])), err
}

// bytes reads n bytes more. Memory follows what has come, not what is announced.
func (s *splitter) bytes(n int) error {
	if s.left -= n; s.left < 0 {
		return fmt.Errorf("the record is longer than %d bytes besides its payload, which none is", maxMap)
	}
	for n > 0 {
		part := min(n, max(len(s.raw), readBytes))
		from := len(s.raw)
		s.raw = slices.Grow(s.raw, part)[:from+part]
		if _, err := io.ReadFull(s.in, s.raw[from:]); err != nil {
			return err
		}
		n -= part
	}
	return nil
}
