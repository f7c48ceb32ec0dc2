package tables

import (
	"bytes"
	"math"
	"runtime/debug"

	"github.com/dgraph-io/badger/v4/table"
	"github.com/dgraph-io/badger/v4/y"
)

// Iterator steps through the keys of a view that have a prefix, in order: the newest entry of each,
// if that is not deleted. It stands nowhere before its first Seek. One goroutine at a time may use
// it.
type Iterator struct {
	// Step, if not nil, is called each few thousand entries that it passes, shown or not. Its error
	// ends the iterator.
	Step func() error

	steps  int // entries that it passed
	prefix []byte
	merged y.Iterator // of all entries of the tables, by key, the newest first; nil without tables
	last   []byte     // the key that it stands at, or passed over last
	value  []byte     // a copy: nobody else meets a page of the table that cannot be read
	entry  Entry      // valid as long as it has a key
	err    error
}

// Iterator returns an iterator over the keys that have a prefix. It must be closed before the view.
func (v *View) Iterator(prefix []byte) *Iterator {
	return v.iterator(prefix, func(f *file) bool { return f.mayHave(prefix) })
}

// Between is Iterator for the keys from first to last, and may leave out all others. Keys that came
// one after the other are mostly in one table, which is then read without the others.
func (v *View) Between(prefix, first, last []byte) *Iterator {
	return v.iterator(prefix, func(f *file) bool {
		return bytes.Compare(y.ParseKey(f.read.Smallest()), last) <= 0 && bytes.Compare(y.ParseKey(f.read.Biggest()), first) >= 0
	})
}

func (v *View) iterator(prefix []byte, wanted func(*file) bool) *Iterator {
	var runs []y.Iterator // each a table of level 0, or those of a deeper level
	for rest := v.files; len(rest) > 0; {
		n := 1
		for rest[0].Level > 0 && n < len(rest) && rest[n].Level == rest[0].Level {
			n++
		}
		var read []*table.Table
		for _, f := range rest[:n] {
			if wanted(f) {
				read = append(read, f.read)
			}
		}
		if rest = rest[n:]; len(read) > 0 {
			runs = append(runs, table.NewConcatIterator(read, table.NOCACHE))
		}
	}
	return &Iterator{prefix: prefix, merged: table.NewMergeIterator(runs, false)}
}

// mayHave says whether keys with a prefix may lie in the table.
func (f *file) mayHave(prefix []byte) bool {
	first, last := y.ParseKey(f.read.Smallest()), y.ParseKey(f.read.Biggest())
	return bytes.Compare(last, prefix) >= 0 && (bytes.Compare(first, prefix) <= 0 || bytes.HasPrefix(first, prefix))
}

// Seek goes to the first key from one on that has the prefix.
func (i *Iterator) Seek(key []byte) {
	if i.merged == nil {
		return
	}
	defer catchDamage(&i.err, debug.SetPanicOnFault(true))
	i.last = i.last[:0]
	if bytes.Compare(key, i.prefix) < 0 {
		key = i.prefix
	}
	i.merged.Seek(y.KeyWithTs(key, math.MaxUint64))
	i.load()
}

// Next goes to the next key. It may be called only while Valid.
func (i *Iterator) Next() {
	defer catchDamage(&i.err, debug.SetPanicOnFault(true))
	i.merged.Next()
	i.load()
}

// nearSteps is how many steps are tried before a seek, which costs as much as some thirty of them.
const nearSteps = 16

// Advance is Seek to a key that is not before any that was asked for since the last Seek. It is
// quick where that is near.
func (i *Iterator) Advance(key []byte) {
	for n := 0; n < nearSteps && i.Valid() && bytes.Compare(i.entry.Key, key) < 0; n++ {
		i.Next()
	}
	if i.err == nil && (!i.Valid() || bytes.Compare(i.entry.Key, key) < 0) {
		i.Seek(key)
	}
}

// load goes on to the first entry that counts. All keys have a byte at least.
func (i *Iterator) load() {
	for i.entry = (Entry{}); i.merged.Valid(); i.merged.Next() {
		if i.steps++; i.steps&0xfff == 0 && i.Step != nil {
			if i.err = i.Step(); i.err != nil {
				return
			}
		}
		key := y.ParseKey(i.merged.Key())
		if !bytes.HasPrefix(key, i.prefix) {
			return
		}
		if bytes.Equal(key, i.last) {
			continue
		}
		i.last = append(i.last[:0], key...)
		e := entryOf(i.merged.Key(), i.merged.Value())
		if e.Deleted {
			continue
		}
		i.value = append(i.value[:0], e.Value...)
		i.entry, i.entry.Value = e, i.value
		return
	}
}

// Valid says whether the iterator stands at a key. It does not behind the last one, nor after an
// error.
func (i *Iterator) Valid() bool { return i.err == nil && i.entry.Key != nil }

// Entry returns what the iterator stands at. Its bytes are valid until Next or Seek.
func (i *Iterator) Entry() Entry { return i.entry }

// Last returns the key that the iterator stands at, or passed over last. It is valid until Next or
// Seek.
func (i *Iterator) Last() []byte { return i.last }

// Err returns an error that wraps ErrDamaged if a part of the tables could not be read, or that of
// Step.
func (i *Iterator) Err() error { return i.err }

// Close ends the iterator.
func (i *Iterator) Close() {
	if i.merged != nil {
		_ = i.merged.Close()
		i.merged, i.entry = nil, Entry{}
	}
}
