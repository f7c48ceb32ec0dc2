package dump

import (
	"fmt"
	"slices"

	"github.com/holdfast-queue/holdfast/storage"
)

// jsonReader reads lines of a dump.
type jsonReader struct {
	scanner
	entryReader
}

// read makes an entry of one line. Its error says what is wrong with the line, not which it is.
func (r *jsonReader) read(line []byte, e *entry) error {
	r.entry = e
	r.scanner.b, r.pos, r.why = line, 0, ""
	var bad error
	ok := r.members(func(name []byte) bool {
		bad = r.field(name, r)
		return bad == nil
	})
	switch {
	case !ok && (bad == nil || r.why != "" && r.why != "unexpected value"):
		return fmt.Errorf("at byte %d: %s", r.pos+1, r.why)
	case !ok:
		return bad
	case !r.end():
		return fmt.Errorf("at byte %d: expected nothing more on the line", r.pos+1)
	}
	return r.finish()
}

// forget lets go of what was read.
func (r *jsonReader) forget() {
	r.scanner = scanner{}
	r.entry, r.entryReader.arena = nil, nil
}

func (r *jsonReader) bytes() ([]byte, bool) { return r.str() }

func (r *jsonReader) isText() bool { return r.peek() == '"' }

func (r *jsonReader) pass() bool { return r.skip(0) }

// tags reads an object, or with Base64 an array of pairs.
func (r *jsonReader) tags(dst []storage.Tag, e Encoding) ([]storage.Tag, bool) {
	if e != Text {
		return r.tagPairs(dst, e)
	}
	ok := r.members(func(name []byte) bool {
		value, ok := r.str()
		if !ok || len(dst) == storage.MaxTags ||
			slices.ContainsFunc(dst, func(t storage.Tag) bool { return t.Name == string(name) }) {
			return false
		}
		dst = append(dst, storage.Tag{Name: string(name), Value: string(value)})
		return true
	})
	return dst, ok
}

func (r *jsonReader) tagPairs(dst []storage.Tag, e Encoding) ([]storage.Tag, bool) {
	name, n := "", 0
	ok := r.elements(func() bool {
		b, err := r.entryReader.bytes(r, e)
		if err != nil || n == 2*storage.MaxTags {
			return false
		}
		if n++; n%2 == 1 {
			name = string(b)
		} else {
			dst = append(dst, storage.Tag{Name: name, Value: string(b)})
		}
		return true
	})
	return dst, ok && n%2 == 0
}
