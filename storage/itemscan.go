package storage

import "fmt"

// Heads calls fn for every head on disk, in the order of their IDs; what it gets is valid during
// the call. Those that have expired or are dropped (Flush) are shown like the others. A large value
// is not read. It stops at the first error of fn.
func (s *Store) Heads(fn func(*Head) error) error {
	var h Head
	return s.scan(headPrefix, func(key, rec []byte) error {
		err := giveHead(key, rec, &h, fn, nil)
		if h.Value == nil {
			s.scanned.Add(int64(h.Size))
		}
		return err
	})
}

// Fields calls fn for every field on disk, those of a hash together, as Heads does for heads. The
// head of a field may be gone: then the field is left over.
func (s *Store) Fields(fn func(*Field) error) error {
	var f Field
	return s.scan(fieldPrefix, func(key, rec []byte) error {
		err := giveField(key, rec, &f, fn, nil)
		if f.Value == nil {
			s.scanned.Add(int64(f.Size))
		}
		return err
	})
}

// ReadValues calls fn with the large value of each of ids, valid during the call; i says which of
// ids it is. The value is nil when it is not there or damaged. ReadValues stops at the first error
// of fn and returns it. An error of its own is about the store as a whole.
func (s *Store) ReadValues(ids []ValueID, fn func(i int, value []byte) error) error {
	return readEach(s, ids, appendValueKey, fn)
}

// readEach calls fn with the record of each id, nil where there is none or it is damaged.
func readEach[I any](s *Store, ids []I, appendKey func([]byte, I) []byte, fn func(i int, rec []byte) error) error {
	var state readState
	state.begin(s)
	defer state.end()
	for i, id := range ids {
		state.key = appendKey(state.key[:0], id)
		rec, ok, err := state.get(state.key, false)
		if err != nil || !ok {
			rec = nil
		} else if rec == nil {
			rec = []byte{}
		}
		if err := fn(i, rec); err != nil {
			return err
		}
	}
	return nil
}

// giveHead calls fn with a head as it is stored.
func giveHead(key, rec []byte, h *Head, fn func(*Head) error, tolerate func(Finding)) error {
	v, i, err := readItem(key, rec)
	if err != nil {
		return tolerated(err, keyOfItem(key), tolerate)
	}
	*h = Head{ID: v.ID, Kind: i.kind, Database: i.db, Name: i.name, Version: i.version, Expiry: i.expiry, Value: i.value, Size: i.bytes()}
	return fn(h)
}

// giveField calls fn with a field as it is stored.
func giveField(key, rec []byte, f *Field, fn func(*Field) error, tolerate func(Finding)) error {
	v, i, err := readItem(key, rec)
	if err != nil {
		return tolerated(err, keyOfItem(key), tolerate)
	}
	*f = Field{Hash: v.ID, ID: v.Field, Name: i.name, Version: i.version, Value: i.value, Size: i.bytes()}
	return fn(f)
}

// readItem reads a head or a field as it is stored. The error wraps ErrDamaged.
func readItem(key, rec []byte) (v ValueID, i item, err error) {
	if v, err = decodeItemKey(key); err != nil {
		return v, i, err
	}
	if err := decodeItem(rec, &i); err != nil {
		return v, i, fmt.Errorf("%w: %v: %w", ErrDamaged, v, err)
	}
	if !v.IsField && i.kind != String && i.kind != Hash {
		return v, i, fmt.Errorf("%w: %v: the unknown kind %d", ErrDamaged, v, i.kind)
	}
	return v, i, nil
}

// keyOfItem names what a key is that should be one of a head or a field.
func keyOfItem(key []byte) string {
	if v, err := decodeItemKey(key); err == nil {
		return v.String()
	}
	return fmt.Sprintf("%x", key)
}
