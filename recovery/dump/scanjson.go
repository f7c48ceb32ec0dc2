package dump

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// scanner reads one line of JSON. Its methods return false when the bytes are not what was asked
// for; why then says what is wrong and pos where. Text without escapes aliases the line, other text
// is put into arena, to which later calls only append.
type scanner struct {
	b     []byte
	pos   int
	why   string
	arena []byte
}

func (s *scanner) fail(why string) bool {
	if s.why == "" {
		s.why = why
	}
	return false
}

func (s *scanner) space() {
	for s.pos < len(s.b) {
		switch s.b[s.pos] {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return
		}
	}
}

// peek returns the next byte that is no space, 0 at the end.
func (s *scanner) peek() byte {
	s.space()
	if s.pos >= len(s.b) {
		return 0
	}
	return s.b[s.pos]
}

func (s *scanner) take(c byte) bool {
	if s.peek() != c {
		return false
	}
	s.pos++
	return true
}

// end reports whether nothing is left.
func (s *scanner) end() bool {
	return s.peek() == 0 && s.pos == len(s.b)
}

// members reads an object and calls fn at each value, which fn must pass.
func (s *scanner) members(fn func(name []byte) bool) bool {
	if !s.take('{') {
		return s.fail("expected an object, which begins with {")
	}
	if s.take('}') {
		return true
	}
	for {
		name, ok := s.str()
		if !ok {
			return s.fail("expected the name of a field in double quotes")
		}
		if !s.take(':') {
			return s.fail("expected : after the name of a field")
		}
		if !fn(name) {
			return s.fail("unexpected value")
		}
		if s.take('}') {
			return true
		}
		if !s.take(',') {
			return s.fail("expected , or } after a value")
		}
	}
}

// elements reads an array and calls fn at each value, which fn must pass.
func (s *scanner) elements(fn func() bool) bool {
	if !s.take('[') {
		return s.fail("expected an array, which begins with [")
	}
	if s.take(']') {
		return true
	}
	for {
		if !fn() {
			return s.fail("unexpected value")
		}
		if s.take(']') {
			return true
		}
		if !s.take(',') {
			return s.fail("expected , or ] after a value")
		}
	}
}

// str reads a string.
func (s *scanner) str() ([]byte, bool) {
	if !s.take('"') {
		return nil, s.fail("expected a string in double quotes")
	}
	from := s.pos
	n := bytes.IndexByte(s.b[from:], '"')
	if n < 0 {
		return nil, s.fail("the string has no end")
	}
	text := s.b[from : from+n : from+n]
	k := kindOf(text)
	if k&kindEscaped == 0 && k&kindBinary == 0 {
		s.pos = from + n + 1
		return text, true
	}
	return s.escaped()
}

// escaped reads the rest of a string that has escapes, or something wrong.
func (s *scanner) escaped() ([]byte, bool) {
	from := len(s.arena)
	for s.pos < len(s.b) {
		start := s.pos
		for s.pos < len(s.b) && kind(kinds[s.b[s.pos]])&kindEscaped == 0 {
			s.pos++
		}
		if run := s.b[start:s.pos]; !utf8.Valid(run) {
			return nil, s.fail("the text is not UTF-8: bytes that are not go into a field whose name ends in _base64")
		}
		s.arena = append(s.arena, s.b[start:s.pos]...)
		if s.pos == len(s.b) {
			break
		}
		switch s.b[s.pos] {
		case '"':
			s.pos++
			return s.arena[from:len(s.arena):len(s.arena)], true
		case '\\':
			s.pos++
			if !s.escape() {
				return nil, false
			}
		default:
			return nil, s.fail("a control character in a string must be escaped")
		}
	}
	return nil, s.fail("the string has no end")
}

// escape reads what follows a backslash.
func (s *scanner) escape() bool {
	if s.pos == len(s.b) {
		return s.fail("the string has no end")
	}
	c := s.b[s.pos]
	s.pos++
	switch c {
	case '"', '\\', '/':
		s.arena = append(s.arena, c)
	case 'b':
		s.arena = append(s.arena, '\b')
	case 'f':
		s.arena = append(s.arena, '\f')
	case 'n':
		s.arena = append(s.arena, '\n')
	case 'r':
		s.arena = append(s.arena, '\r')
	case 't':
		s.arena = append(s.arena, '\t')
	case 'u':
		return s.unicode()
	default:
		s.pos--
		return s.fail("unknown escape in a string")
	}
	return true
}

func (s *scanner) unicode() bool {
	r, ok := s.hex4()
	if !ok {
		return s.fail(`expected four hexadecimal digits after \u`)
	}
	if utf16.IsSurrogate(r) {
		low, ok := rune(0), false
		if bytes.HasPrefix(s.b[s.pos:], []byte(`\u`)) {
			s.pos += 2
			low, ok = s.hex4()
		}
		r = utf16.DecodeRune(r, low)
		if !ok || r == utf8.RuneError {
			return s.fail("half a surrogate pair is no character")
		}
	}
	s.arena = utf8.AppendRune(s.arena, r)
	return true
}

func (s *scanner) hex4() (rune, bool) {
	if len(s.b)-s.pos < 4 {
		return 0, false
	}
	r := rune(0)
	for _, c := range s.b[s.pos : s.pos+4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	s.pos += 4
	return r, true
}

// digits returns the characters of a number, or of a whole number in a string when quoted is allowed.
func (s *scanner) digits(quoted bool) ([]byte, bool) {
	if quoted && s.peek() == '"' {
		return s.str()
	}
	s.space()
	from := s.pos
	for s.pos < len(s.b) {
		switch c := s.b[s.pos]; {
		case c >= '0' && c <= '9', c == '-', c == '+', c == '.', c == 'e', c == 'E':
			s.pos++
			continue
		}
		break
	}
	return s.b[from:s.pos], s.pos > from
}

// uint reads a whole number from 0 on; quoted allows it as a string, too.
func (s *scanner) uint(quoted bool) (uint64, bool) {
	b, ok := s.digits(quoted)
	if !ok || len(b) == 0 || len(b) > 1 && b[0] == '0' {
		return 0, s.fail("expected a whole number from 0 on")
	}
	v := uint64(0)
	for _, c := range b {
		d := uint64(c - '0')
		if d > 9 || v > (1<<64-1)/10 || v*10 > 1<<64-1-d {
			return 0, s.fail("expected a whole number from 0 to 18446744073709551615")
		}
		v = v*10 + d
	}
	return v, true
}

func (s *scanner) int() (int64, bool) {
	b, ok := s.digits(false)
	if !ok {
		return 0, s.fail("expected a whole number")
	}
	digits := bytes.TrimPrefix(b, []byte{'-'})
	v, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil || b[0] == '+' || len(digits) > 1 && digits[0] == '0' {
		return 0, s.fail("expected a whole number of milliseconds")
	}
	return v, true
}

// maxDepth bounds how deep values of later versions may lie in each other.
const maxDepth = 32

// skip passes one value of any form.
func (s *scanner) skip(depth int) bool {
	if depth > maxDepth {
		return s.fail("values lie too deep in each other")
	}
	switch s.peek() {
	case '{':
		return s.members(func([]byte) bool { return s.skip(depth + 1) })
	case '[':
		return s.elements(func() bool { return s.skip(depth + 1) })
	case '"':
		_, ok := s.str()
		return ok
	case 't', 'f', 'n':
		for _, word := range []string{"true", "false", "null"} {
			if bytes.HasPrefix(s.b[s.pos:], []byte(word)) {
				s.pos += len(word)
				return true
			}
		}
		return s.fail("unknown word")
	}
	_, ok := s.digits(false)
	return ok || s.fail("expected a value")
}
