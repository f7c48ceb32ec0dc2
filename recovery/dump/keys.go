package dump

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-queue/holdfast/storage"
)

// keyWriter writes strings and hashes.
type keyWriter struct {
	*dumper
	enc    encoder
	flush  storage.Flush
	hash   *storage.Head // whose fields are wanted; nil: none
	begun  bool          // the record of hash is written: a hash without fields has none
	names  map[string]bool
	fields map[string]bool // names of those of hash
	out    []byte
	tally  storage.Tally
	unread uint64
	told   time.Time
}

// keys writes all strings and hashes that can be reached.
func (d *dumper) keys() error {
	if d.Format == CSV || d.Limit > 0 {
		d.report.OmittedKeys = int64(d.control.Keys - d.tally.Keys)
		return nil
	}
	w := keyWriter{dumper: d, enc: newEncoder(d.Format, d.Payload), flush: d.src.Flush(), names: make(map[string]bool), tally: d.tally}
	err := d.src.Items(w.item)
	if err != nil && !(d.Salvage && errors.Is(err, storage.ErrDamaged)) {
		return fmt.Errorf("read strings and hashes: %w", err)
	}
	if d.Salvage && d.control.Epoch != 0 {
		var mismatch *storage.MismatchError
		if errors.As(d.control.CheckKeys(w.tally, w.unread), &mismatch) {
			f := mismatch.Finding()
			d.finding(f.Kind, f.Key, "%s", f.What)
		}
	}
	return d.write(w.out)
}

func (w *keyWriter) item(v storage.ValueID, h *storage.Head, f *storage.Field, damage error) error {
	var err error
	switch {
	case h != nil:
		w.tally.AddItem(v, h.Version)
		w.hash = nil
		if h.Expired(w.Now) || w.flush.Drops(h) || !w.globs.match(h.Name) {
			return nil
		}
		err = w.head(h, damage)
	case f != nil:
		w.tally.AddItem(v, f.Version)
		if w.hash == nil || w.hash.ID != f.Hash {
			return nil
		}
		err = w.field(f, damage)
	default:
		w.unread++
		err = damage
	}
	if err != nil {
		return w.lost(v, err)
	}
	return w.hand()
}

// head writes a string, or makes a hash the one whose fields are wanted.
func (w *keyWriter) head(h *storage.Head, damage error) error {
	switch name := storage.FullName(h.Database, h.Name); {
	case damage != nil:
		return damage
	case KeyBound(h.Name, h.Value) > MaxRecord || len(h.Name) > storage.MaxName:
		return fmt.Errorf("name and value have %d bytes, which no dump holds", len(h.Name)+len(h.Value))
	case w.names[name]:
		return fmt.Errorf("it has the name %.100q, and so has another string or hash", h.Name)
	case w.filled[name]:
		return fmt.Errorf("it has the name %.100q, and so has a queue with packets or settings", h.Name)
	default:
		w.names[name] = true
	}
	if h.Kind == storage.Hash {
		w.hash, w.begun = &storage.Head{ID: h.ID, Kind: h.Kind, Database: h.Database, Name: bytes.Clone(h.Name), Expiry: h.Expiry}, false
		w.fields = make(map[string]bool)
		return nil
	}
	w.out = w.enc.head(w.out, h)
	w.report.Keys++
	return nil
}

// field writes a field, behind the record of its hash.
func (w *keyWriter) field(f *storage.Field, damage error) error {
	switch {
	case damage != nil:
		return damage
	case KeyBound(f.Name, f.Value) > MaxRecord:
		return fmt.Errorf("name and value have %d bytes, which no dump holds", len(f.Name)+len(f.Value))
	case w.fields[string(f.Name)]:
		return fmt.Errorf("it has the name %.100q, and so has another field", f.Name)
	}
	w.fields[string(f.Name)] = true
	if !w.begun {
		w.out = w.enc.head(w.out, w.hash)
		w.begun = true
		w.report.Keys++
	}
	w.out = w.enc.field(w.out, w.hash, f)
	w.report.Keys++
	return nil
}

// lost leaves an item out of a salvage, and ends any other dump.
func (w *keyWriter) lost(v storage.ValueID, err error) error {
	if !w.Salvage {
		return fmt.Errorf("%w: %v: %w", storage.ErrDamaged, v, err)
	}
	w.report.LostKeys++
	w.finding(storage.FindingRecord, v.String(), "it is left out: %v", err)
	return nil
}

// hand writes what was encoded when it is worth a write.
func (w *keyWriter) hand() error {
	if len(w.out) < runBytes {
		return nil
	}
	err := w.write(w.out)
	w.out = w.out[:0]
	if now := time.Now(); w.Progress != nil && now.Sub(w.told) > progressEvery {
		w.told = now
		w.Progress(w.progress())
	}
	return err
}

// typeOf is the type of the record of a string or a hash.
func typeOf(h *storage.Head) string {
	if h.Kind == storage.Hash {
		return typeHash
	}
	return typeString
}
