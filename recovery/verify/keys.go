package verify

import (
	"context"

	"github.com/holdfast-queue/holdfast/storage"
)

// checkKeys reads every head and field, with its value, and counts them.
func (v *verifier) checkKeys(ctx context.Context) error {
	names := make(map[string]uint64) // numbers of the keys that can be reached
	for i := range v.report.Queues {
		if q := &v.report.Queues[i]; !q.dropped && (q.settings || q.packets() > 0) {
			names[storage.FullName(q.Database, q.Name)] = 0
		}
	}
	hash := uint64(0)          // whose fields can be reached
	var fields map[string]bool // their names
	scanned := int64(0)
	return v.src.Items(func(id storage.ValueID, h *storage.Head, f *storage.Field, damage error) error {
		if scanned++; scanned&0xfff == 0 {
			v.Progress("keys", scanned, int64(v.control.Keys))
		}
		switch {
		case damage != nil && h == nil && f == nil:
			v.lost++
			v.unreadable(id.String(), "record", damage)
			return ctx.Err()
		case damage != nil:
			v.unreadable(id.String(), "value", damage)
		}
		switch {
		case f != nil:
			v.tally.AddItem(id, f.Version)
			v.checkNumber(id, f.ID, f.Version)
			if f.Hash != hash {
				v.report.LeftOver++
				break
			}
			if fields[string(f.Name)] {
				v.finding(storage.FindingOwner, id.String(), "it has the name %.100q, and so has another field: clients reach only one of them", f.Name)
			}
			fields[string(f.Name)] = true
		case h.Expired(v.Now) || v.flush.Drops(h):
			v.tally.AddItem(id, h.Version)
			v.report.LeftOver++
		default:
			v.tally.AddItem(id, h.Version)
			v.checkNumber(id, h.ID, h.Version)
			v.checkName(names, h)
			v.report.Keys++
			if h.Kind == storage.Hash {
				hash, fields = h.ID, make(map[string]bool)
			}
		}
		return ctx.Err()
	})
}

// checkUniques counts the ids of unique pushes. Those that are over, or of queues that are gone, a
// server deletes.
func (v *verifier) checkUniques(ctx context.Context) error {
	return v.src.Uniques(func(u *storage.Unique) error {
		v.tally.AddUnique(u.UniqueID)
		if v.hasControl() && (u.Identity >= v.control.NextSeq || u.Queue >= v.control.NextQueue) {
			v.finding(storage.FindingRecord, u.String(), "its numbers are not below %d, the next sequence, and %d, the next queue: another push may get the same",
				v.control.NextSeq, v.control.NextQueue)
		}
		if u.Expired(v.Now) {
			v.report.LeftOver++
		}
		return ctx.Err()
	})
}

// checkNumber finds a number or version that another key may get.
func (v *verifier) checkNumber(id storage.ValueID, number, version uint64) {
	if last := v.control.LastKey; v.hasControl() && max(number, version) > last {
		v.finding(storage.FindingRecord, id.String(), "its number %d or its version %d is above %d, the last that was given out: "+
			"another may get the same", number, version, last)
	}
}

// checkName finds two keys, or a key and a queue that lasts, of the same name.
func (v *verifier) checkName(names map[string]uint64, h *storage.Head) {
	name := storage.FullName(h.Database, h.Name)
	other, taken := names[name]
	switch {
	case taken && other == 0:
		v.finding(storage.FindingOwner, storage.ValueID{ID: h.ID}.String(), "it has the name %.100q, and so has a queue that is not empty or has settings", h.Name)
	case taken:
		v.finding(storage.FindingOwner, storage.ValueID{ID: h.ID}.String(),
			"it has the name %.100q, and so has head %d: clients reach only one of them", h.Name, other)
	}
	names[name] = h.ID
}
