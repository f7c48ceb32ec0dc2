package broker

import (
	"math"
	"sort"

	"github.com/holdfast-queue/holdfast/index"
)

// A look that goes on in slices, with changes in between, goes by place: what is there from its
// begin to its end comes once, in order. What comes meanwhile does not come, and what goes may. It
// ends at the place of its last element, so it has an end whatever comes and goes; a search ends
// where the list does.

// Place is where a List goes on.
type Place = index.Place

// More says that the look is not at its end.
func (c *ListCursor) More() bool { return c.queue != nil }

// keep has the machine know of the look, as there are changes before it goes on.
func (c *ListCursor) keep(m *Machine) {
	c.machine = m
	m.cursors[c] = struct{}{}
}

// End ends the look, wherever it is.
func (c *ListCursor) End() {
	if c.machine != nil {
		delete(c.machine.cursors, c)
	}
	*c = ListCursor{}
}

// isNew says that an element came after the look began.
func (c *ListCursor) isNew(p index.Packet) bool {
	return p.Identity >= c.marks.NextSeq || p.Identity <= c.marks.LowSeq
}

// passed returns how many of some elements are up to each place that the looks at their list keep.
// They are from left to right, and about to get other places: then follow brings it there.
func (m *Machine) passed(q *queue, elements []index.Packet) (by map[*index.Place]int) {
	for c := range m.cursors {
		if c.queue != q {
			continue
		}
		if by == nil {
			by = make(map[*index.Place]int)
		}
		for _, at := range []*index.Place{&c.after, &c.last, &c.then} {
			by[at] = sort.Search(len(elements), func(i int) bool { return behind(*at, elements[i]) })
		}
	}
	return by
}

// behind says that an element is to the right of a place.
func behind(at index.Place, p index.Packet) bool {
	return p.Priority > at.Priority || p.Priority == at.Priority && p.Seq < at.Seq
}

// follow moves a place to the last of some elements, or before all of its priority.
func follow(at *index.Place, passed []index.Packet) {
	at.Seq = math.MaxUint64
	if n := len(passed); n > 0 {
		*at = passed[n-1].Place()
	}
}

// FieldCursor is where a look at a hash goes on.
type FieldCursor struct {
	hash uint64 // 0: it begins
	last uint64 // the last number given then
	slot uint64
}
