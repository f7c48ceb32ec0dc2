package dump

import (
	"bytes"
	"fmt"

	"github.com/holdfast-queue/holdfast/storage"
)

// allKeys makes the records of all strings and hashes that can be reached. A hash without fields
// has none.
func (d *dumper) allKeys() error {
	var hash *storage.Head // whose fields are wanted; nil: none
	begun := false         // its record is made
	flush, unread := d.src.Flush(), uint64(0)
	put := func(v storage.ValueID, r record) error {
		err := d.put(r)
		if refused(err) {
			return d.loseKey(v, err)
		}
		return err
	}
	err := d.src.Items(func(v storage.ValueID, h *storage.Head, f *storage.Field, damage error) error {
		if h != nil {
			d.tally.AddItem(v, h.Version)
			hash, begun = nil, false
			if h.Expired(d.Now) || flush.Drops(h) || !d.globs.match(h.Name) {
				return nil
			}
		}
		if f != nil {
			d.tally.AddItem(v, f.Version)
			if hash == nil || hash.ID != f.Hash {
				return nil
			}
		}
		if h == nil && f == nil {
			unread++
		}
		switch {
		case damage != nil:
			return d.loseKey(v, damage)
		case h != nil && h.Kind == storage.Hash:
			hash = &storage.Head{ID: h.ID, Kind: h.Kind, Database: h.Database, Name: bytes.Clone(h.Name), Expiry: h.Expiry}
			return nil
		case h != nil:
			h.Name, h.Value = bytes.Clone(h.Name), bytes.Clone(h.Value)
			return put(v, headRecord(h))
		}
		if !begun {
			if err := d.put(headRecord(hash)); refused(err) {
				id := storage.ValueID{ID: hash.ID}
				hash = nil
				return d.loseKey(id, err)
			} else if err != nil {
				return err
			}
			begun = true
		}
		f.Name, f.Value = bytes.Clone(f.Name), bytes.Clone(f.Value)
		return put(v, fieldRecord(hash.Name, f))
	})
	d.mismatch(d.control.CheckKeys(d.tally, unread))
	return d.tolerable("strings and hashes", err)
}

// loseKey leaves a string, a hash or a field out of a salvage, and ends any other dump.
func (d *dumper) loseKey(v storage.ValueID, err error) error {
	if !d.Salvage {
		return fmt.Errorf("%w: %v: %w", storage.ErrDamaged, v, err)
	}
	d.report.LostKeys++
	d.finding(storage.FindingRecord, v.String(), "it is left out: %v", err)
	return nil
}
