package dump

import (
	"errors"

	"github.com/holdfast-queue/holdfast/storage"
)

// packReader reads the maps of a dump.
type packReader struct {
	entryReader
	in packValues
}

// packValues is what an entryReader sees of the map.
type packValues struct{ unpacker }

// read makes an entry of one whole map. Its error says what is wrong with the map, not which it is.
func (r *packReader) read(record []byte, e *entry) error {
	r.entry = e
	r.in.unpacker = unpacker{b: record}
	n, ok := r.in.fields()
	if !ok {
		return errors.New("expected a map")
	}
	for ; n > 0; n-- {
		name, ok := r.in.unpacker.bytes()
		if !ok {
			return errors.New("expected the name of a field as a string")
		}
		if err := r.field(name, &r.in); err != nil {
			return err
		}
	}
	return r.finish()
}

// forget lets go of what was read.
func (r *packReader) forget() {
	r.in.unpacker = unpacker{}
	r.entry, r.arena = nil, nil
}

func (v *packValues) uint(bool) (uint64, bool) { return v.unpacker.uint() }

func (v *packValues) isText() bool { return !v.isNumber() }

func (v *packValues) isNumber() bool {
	if v.pos >= len(v.b) {
		return false
	}
	c := v.b[v.pos]
	return c < packFixMap || c >= packNegInt || c >= packUint8 && c < packFixExt
}

func (v *packValues) pass() bool { return v.skip() == passed }

// tags reads an array of names and values.
func (v *packValues) tags(dst []storage.Tag, _ Encoding) ([]storage.Tag, bool) {
	n, ok := v.array()
	if !ok || n%2 != 0 || n > 2*storage.MaxTags {
		return nil, false
	}
	for ; n > 0; n -= 2 {
		name, ok := v.bytes()
		if !ok {
			return nil, false
		}
		value, ok := v.bytes()
		if !ok {
			return nil, false
		}
		dst = append(dst, storage.Tag{Name: string(name), Value: string(value)})
	}
	return dst, true
}
