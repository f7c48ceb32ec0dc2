package content

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// A record is one msgpack map with small integers for names. Values are written in their shortest
// form and read in any. It is done by hand because a hot record passes here once for every push:
// the library's decoder reads through an io.Reader.

// The forms of values. Behind each of the lower group lie forms of the same kind, whose lengths or
// numbers have twice the bytes.
const (
	formMap   = 0x80 // low 4 bits: fields
	formArray = 0x90 // low 4 bits: elements
	formStr   = 0xa0 // low 5 bits: bytes
	formNil   = 0xc0
	formNever = 0xc1
	formFalse = 0xc2
	formTrue  = 0xc3
	formNeg   = 0xe0 // and above: -32 … -1

	formBin8    = 0xc4 // 3 of them
	formExt8    = 0xc7 // 3
	formFloat32 = 0xca // 2
	formUint8   = 0xcc // 4
	formInt8    = 0xd0 // 4
	formFixExt1 = 0xd4 // 5
	formStr8    = 0xd9 // 3
	formArray16 = 0xdc // 2
	formMap16   = 0xde // 2
)

// maxDepth bounds how deep a value of an unknown field may nest.
const maxDepth = 16

// appendSized appends a number in the fewest bytes, behind the form that tells how many.
func appendSized(dst []byte, form8 byte, v uint64) []byte {
	switch {
	case v <= math.MaxUint8:
		return append(dst, form8, byte(v))
	case v <= math.MaxUint16:
		return append(dst, form8+1, byte(v>>8), byte(v))
	case v <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(dst, form8+2), uint32(v))
	}
	return binary.BigEndian.AppendUint64(append(dst, form8+3), v)
}

func appendUint(dst []byte, v uint64) []byte {
	if v < formMap {
		return append(dst, byte(v))
	}
	return appendSized(dst, formUint8, v)
}

func appendInt(dst []byte, v int64) []byte {
	switch {
	case v >= 0:
		return appendUint(dst, uint64(v))
	case v >= -32:
		return append(dst, byte(v))
	case v >= math.MinInt8:
		return append(dst, formInt8, byte(v))
	case v >= math.MinInt16:
		return append(dst, formInt8+1, byte(v>>8), byte(v))
	case v >= math.MinInt32:
		return binary.BigEndian.AppendUint32(append(dst, formInt8+2), uint32(v))
	}
	return binary.BigEndian.AppendUint64(append(dst, formInt8+3), uint64(v))
}

func appendBin(dst, b []byte) []byte {
	return append(appendSized(dst, formBin8, uint64(len(b))), b...)
}

func appendStr(dst []byte, s string) []byte {
	if len(s) < 32 {
		return append(append(dst, formStr|byte(len(s))), s...)
	}
	return append(appendSized(dst, formStr8, uint64(len(s))), s...)
}

func appendArray(dst []byte, n int) []byte { return appendParts(dst, formArray, formArray16, n) }

// appendParts appends how many elements or fields follow.
func appendParts(dst []byte, fix, form16 byte, n int) []byte {
	switch {
	case n < 16:
		return append(dst, fix|byte(n))
	case n <= math.MaxUint16:
		return append(dst, form16, byte(n>>8), byte(n))
	}
	return binary.BigEndian.AppendUint32(append(dst, form16+1), uint32(n))
}

func appendBool(dst []byte, yes bool) []byte {
	if yes {
		return append(dst, formTrue)
	}
	return append(dst, formFalse)
}

// writer appends a record.
type writer struct {
	b      []byte
	head   int // where the record begins
	fields int
}

func newWriter(dst []byte) writer {
	return writer{b: append(dst, formMap), head: len(dst)}
}

// field returns what the caller appends the value of a field to, and makes b of it.
func (w *writer) field(number byte) []byte {
	w.fields++
	return append(w.b, number)
}

// uint appends a field, unless its value is 0. So does int, and str one that is not empty. What has
// no value costs no call.
func (w *writer) uint(number byte, v uint64) {
	if v != 0 {
		w.putUint(number, v)
	}
}

func (w *writer) int(number byte, v int64) {
	if v != 0 {
		w.b = appendInt(w.field(number), v)
	}
}

func (w *writer) str(number byte, v string) {
	if v != "" {
		w.putStr(number, v)
	}
}

func (w *writer) putUint(number byte, v uint64) { w.b = appendUint(w.field(number), v) }
func (w *writer) putStr(number byte, v string)  { w.b = appendStr(w.field(number), v) }

// bin appends a field, also one that is empty.
func (w *writer) bin(number byte, v []byte) {
	w.b = appendBin(w.field(number), v)
}

// end returns what the record was appended to.
func (w *writer) end() []byte {
	if w.fields < 16 {
		w.b[w.head] |= byte(w.fields)
		return w.b
	}
	return slices.Replace(w.b, w.head, w.head+1, appendParts(nil, formMap, formMap16, w.fields)...)
}

// appendNumbers appends a record whose fields are numbers, from 1 on. Those behind the first always
// ones are left out when they are 0.
func appendNumbers(dst []byte, always int, values ...uint64) []byte {
	w := newWriter(dst)
	for i, v := range values {
		if i < always && v == 0 {
			w.b = append(w.field(byte(i+1)), 0)
		}
		w.uint(byte(i+1), v)
	}
	return w.end()
}

// decodeNumbers reads such a record, and says by bits which of the fields were there. Those without
// a place to go to are skipped.
func decodeNumbers(rec []byte, values ...*uint64) (seen uint64, err error) {
	r := reader{b: rec}
	for r.next() {
		if r.field == 0 || r.field > uint64(len(values)) || values[r.field-1] == nil {
			r.skip(0)
			continue
		}
		seen |= 1 << r.field
		*values[r.field-1] = r.uint()
	}
	return seen, r.err()
}

// reader walks a record: next goes from field to field, of which the caller reads or skips the
// value, and err tells in the end whether all was well. What is not as it was asked for, or ends
// too early, is read as 0. Nothing takes memory.
type reader struct {
	b   []byte
	pos int
	bad bool

	field uint64 // its number
	at    int    // where it begins
	left  int    // fields behind it
}

func (r *reader) next() bool {
	if r.pos == 0 {
		r.left = r.fields()
	}
	if r.left == 0 || r.bad {
		return false
	}
	r.left--
	if r.at = r.pos; r.at < len(r.b) && r.b[r.at] < formMap { // as most are
		r.field = uint64(r.b[r.at])
		r.pos++
		return true
	}
	r.field = r.uint()
	return !r.bad
}

// err wraps ErrRecord, unless what was read is one whole record.
func (r *reader) err() error {
	switch {
	case r.bad:
		return fmt.Errorf("%w: a value is cut short, of a wrong form or out of place at byte %d of %d", ErrRecord, r.pos, len(r.b))
	case r.pos < len(r.b):
		return fmt.Errorf("%w: bytes after the last field at byte %d of %d", ErrRecord, r.pos, len(r.b))
	}
	return nil
}

// check makes the record a bad one unless something is so.
func (r *reader) check(so bool) { r.bad = r.bad || !so }

// code returns the first byte of a value; one that no value has where nothing is left.
func (r *reader) code() byte {
	if r.pos >= len(r.b) {
		r.bad = true
		return formNever
	}
	c := r.b[r.pos]
	r.pos++
	return c
}

// take returns the next n bytes; n comes from the input and is checked first.
func (r *reader) take(n uint64) []byte {
	if n > uint64(len(r.b)-r.pos) {
		r.bad = true
		return nil
	}
	b := r.b[r.pos : r.pos+int(n) : r.pos+int(n)]
	r.pos += int(n)
	return b
}

// number reads a number of 1, 2, 4 or 8 bytes.
func (r *reader) number(bytes uint64) uint64 {
	switch b := r.take(bytes); len(b) {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.BigEndian.Uint16(b))
	case 4:
		return uint64(binary.BigEndian.Uint32(b))
	case 8:
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

// int reads any integer form that fits in an int64.
func (r *reader) int() int64 {
	c := r.code()
	if c < formMap || c >= formNeg {
		return int64(int8(c))
	}
	if size := c - formUint8; size < 4 {
		v := r.number(1 << size)
		r.check(v <= math.MaxInt64)
		return int64(v)
	}
	size := c - formInt8
	r.check(size < 4)
	shift := 64 - 8<<(size&3)
	return int64(r.number(1<<(size&3))<<shift) >> shift
}

// uint reads any integer form that is not negative.
func (r *reader) uint() uint64 {
	if r.pos < len(r.b) && r.b[r.pos] == formUint8+3 {
		r.pos++
		return r.number(8)
	}
	v := r.int()
	r.check(v >= 0)
	return uint64(v)
}

func (r *reader) uint32() uint32 {
	v := r.uint()
	r.check(v <= math.MaxUint32)
	return uint32(v)
}

func (r *reader) bool() bool {
	c := r.code()
	r.check(c == formTrue || c == formFalse)
	return c == formTrue
}

func (r *reader) bin() []byte { return r.sized(r.code() - formBin8) }

func (r *reader) str() []byte {
	c := r.code()
	if c&0xe0 == formStr {
		return r.take(uint64(c & 0x1f))
	}
	return r.sized(c - formStr8)
}

// sized reads bytes whose length is before them, in one of three forms.
func (r *reader) sized(form byte) []byte {
	if form > 2 {
		r.bad = true
		return nil
	}
	return r.take(r.number(1 << form))
}

// array reads the number of elements; each takes a byte at least.
func (r *reader) array() int { return r.parts(formArray, formArray16, 1) }

// fields reads the number of fields of a map; each takes two bytes at least.
func (r *reader) fields() int { return r.parts(formMap, formMap16, 2) }

// parts reads how many parts follow, each of at least each bytes. A number that cannot be true is
// refused here.
func (r *reader) parts(fix, form16 byte, each int) int {
	var n uint64
	c := r.code()
	if n = uint64(c & 0x0f); c&0xf0 != fix {
		r.check(c == form16 || c == form16+1)
		n = r.number(2 << (c & 1))
	}
	if r.check(n <= uint64((len(r.b)-r.pos)/each)); r.bad {
		return 0
	}
	return int(n)
}

// skip passes one value of any form.
func (r *reader) skip(depth int) {
	c, nested := r.code(), 0
	switch {
	case c < formMap, c >= formNeg, c == formNil, c == formFalse, c == formTrue:
	case c < formArray, c == formMap16, c == formMap16+1:
		r.pos--
		nested = 2 * r.fields()
	case c < formStr, c == formArray16, c == formArray16+1:
		r.pos--
		nested = r.array()
	case c < formNil, c-formStr8 < 3:
		r.pos--
		r.str()
	case c-formBin8 < 3:
		r.sized(c - formBin8)
	case c-formExt8 < 3:
		r.take(r.number(1<<(c-formExt8)) + 1)
	case c-formFloat32 < 2:
		r.take(4 << (c - formFloat32))
	case c-formUint8 < 4:
		r.take(1 << (c - formUint8))
	case c-formInt8 < 4:
		r.take(1 << (c - formInt8))
	case c-formFixExt1 < 5:
		r.take(1<<(c-formFixExt1) + 1)
	default:
		r.bad = true
	}
	if r.check(depth <= maxDepth); r.bad {
		return
	}
	for ; nested > 0 && !r.bad; nested-- {
		r.skip(depth + 1)
	}
}
