package storage

import (
	"encoding/binary"
	"fmt"
	"math"
)

// The msgpack forms that the records use, appended in their shortest form and read in any form.
// Written by hand because the hot record passes here once for every push: the library's decoder
// reads through an io.Reader.

const (
	formFixMap  = 0x80 // low 4 bits: fields
	formFixArr  = 0x90 // low 4 bits: elements
	formFixStr  = 0xa0 // low 5 bits: bytes
	formNil     = 0xc0
	formFalse   = 0xc2
	formTrue    = 0xc3
	formBin8    = 0xc4
	formBin16   = 0xc5
	formBin32   = 0xc6
	formExt8    = 0xc7
	formExt16   = 0xc8
	formExt32   = 0xc9
	formFloat32 = 0xca
	formFloat64 = 0xcb
	formUint8   = 0xcc
	formUint16  = 0xcd
	formUint32  = 0xce
	formUint64  = 0xcf
	formInt8    = 0xd0
	formInt16   = 0xd1
	formInt32   = 0xd2
	formInt64   = 0xd3
	formFixExt1 = 0xd4
	formFixExtG = 0xd8 // fixext 16
	formStr8    = 0xd9
	formStr16   = 0xda
	formStr32   = 0xdb
	formArr16   = 0xdc
	formArr32   = 0xdd
	formMap16   = 0xde
	formMap32   = 0xdf
	formNegInt  = 0xe0 // and above: -32 … -1
)

// maxDepth bounds how deep a value of an unknown field may nest.
const maxDepth = 16

func appendUint(dst []byte, v uint64) []byte {
	switch {
	case v < 0x80:
		return append(dst, byte(v))
	case v <= math.MaxUint8:
		return append(dst, formUint8, byte(v))
	case v <= math.MaxUint16:
		return append(dst, formUint16, byte(v>>8), byte(v))
	case v <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(dst, formUint32), uint32(v))
	}
	return binary.BigEndian.AppendUint64(append(dst, formUint64), v)
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
		return append(dst, formInt16, byte(v>>8), byte(v))
	case v >= math.MinInt32:
		return binary.BigEndian.AppendUint32(append(dst, formInt32), uint32(v))
	}
	return binary.BigEndian.AppendUint64(append(dst, formInt64), uint64(v))
}

func appendBinHeader(dst []byte, n int) []byte {
	switch {
	case n <= math.MaxUint8:
		return append(dst, formBin8, byte(n))
	case n <= math.MaxUint16:
		return append(dst, formBin16, byte(n>>8), byte(n))
	}
	return binary.BigEndian.AppendUint32(append(dst, formBin32), uint32(n))
}

func appendBin(dst, b []byte) []byte {
	return append(appendBinHeader(dst, len(b)), b...)
}

func appendStr(dst []byte, s string) []byte {
	n := len(s)
	switch {
	case n < 32:
		dst = append(dst, formFixStr|byte(n))
	case n <= math.MaxUint8:
		dst = append(dst, formStr8, byte(n))
	case n <= math.MaxUint16:
		dst = append(dst, formStr16, byte(n>>8), byte(n))
	default:
		dst = binary.BigEndian.AppendUint32(append(dst, formStr32), uint32(n))
	}
	return append(dst, s...)
}

func appendArrayHeader(dst []byte, n int) []byte {
	return appendHeader(dst, n, formFixArr, formArr16, formArr32)
}

func appendMapHeader(dst []byte, n int) []byte {
	return appendHeader(dst, n, formFixMap, formMap16, formMap32)
}

func appendHeader(dst []byte, n int, fix, form16, form32 byte) []byte {
	switch {
	case n < 16:
		return append(dst, fix|byte(n))
	case n <= math.MaxUint16:
		return append(dst, form16, byte(n>>8), byte(n))
	}
	return binary.BigEndian.AppendUint32(append(dst, form32), uint32(n))
}

// reader walks one value. Its methods return false when the bytes are not what was asked for or end
// too early; they take no memory.
type reader struct {
	b   []byte
	pos int
}

func (r *reader) end() bool { return r.pos == len(r.b) }

func (r *reader) code() (byte, bool) {
	if r.pos >= len(r.b) {
		return 0, false
	}
	c := r.b[r.pos]
	r.pos++
	return c, true
}

// take returns the next n bytes; n comes from the input and is checked first.
func (r *reader) take(n uint64) ([]byte, bool) {
	if n > uint64(len(r.b)-r.pos) {
		return nil, false
	}
	b := r.b[r.pos : r.pos+int(n) : r.pos+int(n)]
	r.pos += int(n)
	return b, true
}

func (r *reader) number(bytes uint64) (uint64, bool) {
	b, ok := r.take(bytes)
	if !ok {
		return 0, false
	}
	switch len(b) {
	case 1:
		return uint64(b[0]), true
	case 2:
		return uint64(binary.BigEndian.Uint16(b)), true
	case 4:
		return uint64(binary.BigEndian.Uint32(b)), true
	}
	return binary.BigEndian.Uint64(b), true
}

// int reads any integer form that fits in an int64.
func (r *reader) int() (int64, bool) {
	c, ok := r.code()
	if !ok {
		return 0, false
	}
	switch {
	case c < 0x80 || c >= formNegInt:
		return int64(int8(c)), true
	case c >= formUint8 && c <= formUint64:
		v, ok := r.number(1 << (c - formUint8))
		return int64(v), ok && v <= math.MaxInt64
	case c >= formInt8 && c <= formInt64:
		size := c - formInt8
		v, ok := r.number(1 << size)
		shift := 64 - 8<<size
		return int64(v<<shift) >> shift, ok
	}
	return 0, false
}

// uint reads any integer form that is not negative.
func (r *reader) uint() (uint64, bool) {
	if r.pos < len(r.b) && r.b[r.pos] == formUint64 {
		r.pos++
		return r.number(8)
	}
	v, ok := r.int()
	return uint64(v), ok && v >= 0
}

func (r *reader) uint32() (uint32, bool) {
	v, ok := r.uint()
	return uint32(v), ok && v <= math.MaxUint32
}

// binHeader reads the length of a bin value and leaves its bytes unread.
func (r *reader) binHeader() (uint64, bool) {
	c, ok := r.code()
	if !ok || c < formBin8 || c > formBin32 {
		return 0, false
	}
	n, ok := r.number(1 << (c - formBin8))
	return n, ok && n <= uint64(len(r.b)-r.pos)
}

func (r *reader) bin() ([]byte, bool) {
	n, ok := r.binHeader()
	if !ok {
		return nil, false
	}
	return r.take(n)
}

func (r *reader) str() ([]byte, bool) {
	c, ok := r.code()
	if !ok {
		return nil, false
	}
	switch {
	case c >= formFixStr && c < formNil:
		return r.take(uint64(c & 0x1f))
	case c >= formStr8 && c <= formStr32:
		n, ok := r.number(1 << (c - formStr8))
		if !ok {
			return nil, false
		}
		return r.take(n)
	}
	return nil, false
}

// array reads the number of elements; each takes a byte at least.
func (r *reader) array() (int, bool) { return r.header(formFixArr, formArr16, 1) }

// fields reads the number of fields of a map; each takes two bytes at least.
func (r *reader) fields() (int, bool) { return r.header(formFixMap, formMap16, 2) }

// header reads a number of parts which take so many bytes each, at least. A number that cannot be
// true is refused here.
func (r *reader) header(fix, form16 byte, each int) (int, bool) {
	c, ok := r.code()
	if !ok {
		return 0, false
	}
	var n uint64
	switch {
	case c&0xf0 == fix:
		n = uint64(c & 0x0f)
	case c == form16 || c == form16+1:
		if n, ok = r.number(2 << (c - form16)); !ok {
			return 0, false
		}
	default:
		return 0, false
	}
	return int(n), n <= uint64((len(r.b)-r.pos)/each)
}

// eachField reads a map to the end of the record. For each field it calls fn, which reads the value
// or skips it, with the field's number and where it begins. The error wraps ErrRecord.
func (r *reader) eachField(fn func(field uint64, at int) bool) error {
	n, ok := r.fields()
	if !ok {
		return r.bad("no map of fields")
	}
	for ; n > 0; n-- {
		at := r.pos
		field, ok := r.uint()
		if !ok {
			return r.bad("no field number")
		}
		if !fn(field, at) {
			return r.bad("field value cut short or of a wrong form")
		}
	}
	if !r.end() {
		return r.bad("bytes after the last field")
	}
	return nil
}

// skip passes one value of any form.
func (r *reader) skip(depth int) bool {
	c, ok := r.code()
	if !ok || depth > maxDepth {
		return false
	}
	var n uint64
	switch {
	case c < formFixMap || c >= formNegInt || c == formNil || c == formFalse || c == formTrue:
		return true
	case c < formFixStr || c >= formArr16:
		r.pos--
		return r.skipNested(depth)
	case c < formNil:
		n = uint64(c & 0x1f)
	case c >= formBin8 && c <= formBin32:
		n, ok = r.number(1 << (c - formBin8))
	case c >= formStr8 && c <= formStr32:
		n, ok = r.number(1 << (c - formStr8))
	case c >= formExt8 && c <= formExt32:
		n, ok = r.number(1 << (c - formExt8))
		n++
	case c == formFloat32 || c == formFloat64:
		n = 4 << (c - formFloat32)
	case c >= formUint8 && c <= formUint64:
		n = 1 << (c - formUint8)
	case c >= formInt8 && c <= formInt64:
		n = 1 << (c - formInt8)
	case c >= formFixExt1 && c <= formFixExtG:
		n = 1<<(c-formFixExt1) + 1
	default:
		return false
	}
	if !ok {
		return false
	}
	_, ok = r.take(n)
	return ok
}

func (r *reader) skipNested(depth int) bool {
	c := r.b[r.pos]
	var n int
	var ok bool
	if c < formFixArr || c == formMap16 || c == formMap32 {
		n, ok = r.fields()
		n *= 2
	} else {
		n, ok = r.array()
	}
	for ; ok && n > 0; n-- {
		ok = r.skip(depth + 1)
	}
	return ok
}

// bad builds the error of a record that cannot be read.
func (r *reader) bad(what string) error {
	return fmt.Errorf("%w: %s at byte %d of %d", ErrRecord, what, r.pos, len(r.b))
}
