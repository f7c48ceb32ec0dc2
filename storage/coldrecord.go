package storage

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/vmihailenco/msgpack/v5"
)

// Rare records are written and read by the msgpack library: a map with small integers for names,
// each value in its shortest form. Those of packets, delivery states, heads and fields have codecs
// of their own, because one passes with every call of a client. So have records of numbers, below.

// appendMap appends a map of n fields, which fn writes.
func appendMap(dst []byte, n int, fn func(*msgpack.Encoder) error) []byte {
	buf := bytes.NewBuffer(dst)
	e := msgpack.GetEncoder()
	defer msgpack.PutEncoder(e)
	e.Reset(buf)
	e.UseCompactInts(true)
	err := e.EncodeMapLen(n)
	if err == nil {
		err = fn(e)
	}
	if err != nil {
		panic(err) // a buffer gives none
	}
	return buf.Bytes()
}

// eachField calls fn for each field of a map; fn reads its value. The error wraps ErrRecord unless
// rec is one whole map. The library makes room for any length that it reads, so rec is passed over
// first.
func eachField(rec []byte, fn func(field uint64, d *msgpack.Decoder) error) error {
	if r := (reader{b: rec}); !r.skip(0) {
		return r.bad("a value is cut short or of a wrong form")
	}
	src := bytes.NewReader(rec)
	d := msgpack.GetDecoder()
	d.Reset(src)
	n, err := d.DecodeMapLen()
	for ; err == nil && n > 0; n-- {
		var field uint64
		if field, err = d.DecodeUint64(); err == nil {
			err = fn(field, d)
		}
	}
	if err == nil && src.Len() > 0 {
		err = errors.New("bytes after the last field")
	}
	if err != nil { // the decoder may keep what it read, so nobody uses it again
		return fmt.Errorf("%w: at byte %d of %d: %w", ErrRecord, len(rec)-src.Len(), len(rec), err)
	}
	msgpack.PutDecoder(d)
	return nil
}

// appendNumbers begins a record whose fields are numbers, from 1 on. Those behind the first always
// ones are left out when they are 0. With more, the caller appends one field more.
func appendNumbers(dst []byte, always int, more bool, values ...uint64) []byte {
	n := 0
	for i, v := range values {
		if i < always || v != 0 {
			n++
		}
	}
	if more {
		n++
	}
	dst = appendMapHeader(dst, n)
	for i, v := range values {
		if i < always || v != 0 {
			dst = appendUint(append(dst, byte(i+1)), v)
		}
	}
	return dst
}

// decodeNumbers reads such a record, and says by bits which of the fields were there. Those without
// a place to go to are skipped.
func decodeNumbers(rec []byte, values ...*uint64) (seen uint64, err error) {
	r := reader{b: rec}
	err = r.eachField(func(field uint64, _ int) (ok bool) {
		if field == 0 || field > uint64(len(values)) || values[field-1] == nil {
			return r.skip(0)
		}
		seen |= 1 << field
		*values[field-1], ok = r.uint()
		return ok
	})
	return seen, err
}
