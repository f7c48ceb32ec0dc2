package broker

import (
	"math"
	"sort"

	"github.com/holdfast-queue/holdfast/index"
)

// A look that goes on in slices, with changes in between, goes by place: what is there from its
// begin to its end comes once, in order. What comes meanwhile does not come, and what goes may.

// More says that the look is not at its end.
func (c *ListCursor) More() bool { return c.left > 0 }

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

// passed returns how many of some elements each look at their list has passed. They are from left
// to right, and about to get other places: then follow brings the look there.
func (m *Machine) passed(q *queue, elements []index.Packet) (by map[*ListCursor]int) {
	for c := range m.cursors {
		if c.queue != q {
			continue
		}
		if by == nil {
			by = make(map[*ListCursor]int)
		}
		by[c] = sort.Search(len(elements), func(i int) bool { return behind(c.after, elements[i]) })
	}
	return by
}

// behind says that an element is to the right of a place.
func behind(at index.Place, p index.Packet) bool {
	return p.Priority > at.Priority || p.Priority == at.Priority && p.Seq < at.Seq
}

// follow has a look go on behind the last of some elements, or before all of its priority.
func (c *ListCursor) follow(q *queue, passed []index.Packet) {
	c.queue, c.after.Seq = q, math.MaxUint64
	if n := len(passed); n > 0 {
		c.after = passed[n-1].Place()
	}
}

// FieldCursor is where a look at a hash goes on.
type FieldCursor struct {
	hash uint64 // 0: it begins
	last uint64 // the last number given then
	slot uint64
}
