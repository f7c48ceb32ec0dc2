package verify

import (
	"context"

	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// checkKeys reads ids of unique pushes, and every head and field, with its value, and counts them.
func (v *verifier) checkKeys(ctx context.Context) error {
	names := make(map[string]uint64) // of keys that can be reached, with their numbers
	hash := uint64(0)                // whose fields can be reached
	var fields map[string]bool       // their names
	scanned := int64(0)
	return v.walk(storage.Visitor{Unique: v.unique(ctx), Item: func(id content.ValueID, h *content.Head, f *content.Field, damage error) error {
		same := func(other string, name []byte) {
			v.report.Add(storage.FindingOwner, id.String(), "it has the name %.100q, and so has "+other, name)
		}
		switch {
		case h == nil && f == nil:
			v.unreadable(id.String(), "record", damage)
		case damage != nil:
			v.unreadable(id.String(), "value", damage)
		}
		switch {
		case f != nil:
			v.checkNumber(id, f.ID, f.Version)
			if f.Hash != hash {
				v.report.LeftOver++
				break
			}
			if fields[string(f.Name)] {
				same("another field: clients reach only one of them", f.Name)
			}
			fields[string(f.Name)] = true
		case h == nil:
		case h.Expired(v.Now) || v.flush.Drops(h):
			v.report.LeftOver++
		default:
			v.checkNumber(id, h.ID, h.Version)
			name := content.FullName(h.Database, h.Name)
			if at, there := v.names[name]; there && v.report.Queues[at].lasts() {
				same("a queue that is not empty or has settings", h.Name)
			}
			if other := names[name]; other != 0 {
				same(content.ValueID{ID: other}.String()+": clients reach only one of them", h.Name)
			}
			names[name] = h.ID
			v.report.Keys++
			if h.Kind == content.Hash {
				hash, fields = h.ID, make(map[string]bool)
			}
		}
		return v.tell(ctx, "keys", &scanned, v.control.Keys)
	}})
}

// checkNumber finds a number or version that another key may get.
func (v *verifier) checkNumber(id content.ValueID, number, version uint64) {
	if last := v.control.LastKey; max(number, version) > last {
		v.report.Add(storage.FindingRecord, id.String(), "its number %d or its version %d is above %d, the last that was given out: "+
			"another may get the same", number, version, last)
	}
}

// unique checks the record of a unique push. Those that are over, or of queues that are gone, a
// server deletes.
func (v *verifier) unique(ctx context.Context) func(*content.Unique) error {
	return func(u *content.Unique) error {
		if c := &v.control; u.Identity >= c.NextSeq || u.Queue >= c.NextQueue {
			v.report.Add(storage.FindingRecord, u.String(), "its numbers are not below %d, the next sequence, and %d, the next queue: another push may get the same",
				c.NextSeq, c.NextQueue)
		}
		if u.Expired(v.Now) {
			v.report.LeftOver++
		}
		return ctx.Err()
	}
}
