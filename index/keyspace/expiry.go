package keyspace

import "container/heap"

// alarms is a heap of the entries of a database that expire, the earliest first. They are few
// beside the timers of packets.
type alarms []*Entry

// SetExpiry lets an entry expire at a moment in Unix milliseconds, 0 for never.
func (d *Directory) SetExpiry(e *Entry, at int64) {
	was := e.expiry
	if was == at {
		return
	}
	h := &d.databases[e.db].expiring
	switch e.expiry = at; {
	case was == 0:
		heap.Push(h, e)
	case at == 0:
		heap.Remove(h, int(e.place))
	default:
		heap.Fix(h, int(e.place))
	}
}

// Deadline is the earliest moment at which an entry expires; false when there is none.
func (d *Directory) Deadline() (at int64, ok bool) {
	if first := d.first(); first != nil {
		return first.expiry, true
	}
	return 0, false
}

// Due returns the entry that expires first, nil if that is not by now. It stays until the caller
// lets it stand for nothing.
func (d *Directory) Due(now int64) *Entry {
	if first := d.first(); first != nil && first.expiry <= now {
		return first
	}
	return nil
}

// first returns the entry that expires first, nil if none does.
func (d *Directory) first() (first *Entry) {
	for _, in := range d.databases {
		if len(in.expiring) > 0 && (first == nil || in.expiring[0].expiry < first.expiry) {
			first = in.expiring[0]
		}
	}
	return first
}

// Len is called by container/heap, as the methods below are.
func (h alarms) Len() int           { return len(h) }
func (h alarms) Less(i, j int) bool { return h[i].expiry < h[j].expiry }

func (h alarms) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = int32(i), int32(j)
}

// Push adds an entry.
func (h *alarms) Push(x any) {
	e := x.(*Entry)
	e.place = int32(len(*h))
	*h = append(*h, e)
}

// Pop removes the last entry.
func (h *alarms) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return e
}
