package tree

import "math"

// End is the end from which places are taken: by priority, and of one priority from one side.
type End uint8

const (
	Newest End = iota // the highest sequence first
	Oldest            // the lowest sequence first
	Worst             // the reverse of Oldest: the highest priority first
)

// Earlier is the order in which an end takes places.
func (end End) Earlier(a, b Place) bool {
	if end == Worst {
		return b.Before(a)
	}
	if a.Priority != b.Priority || end == Oldest {
		return a.Before(b)
	}
	return a.Seq > b.Seq
}

// Behind is the first place that an end takes behind another; false if there is none.
func (end End) Behind(a Place) (Place, bool) {
	switch {
	case end == Newest && a.Seq > 0:
		return Place{a.Priority, a.Seq - 1}, true
	case end == Newest:
		return Place{a.Priority + 1, math.MaxUint64}, a.Priority < math.MaxUint32
	}
	from := a.PlusOne()
	return from, from != Place{}
}
