package broker

import (
	"slices"

	"github.com/holdfast-queue/holdfast/index"
)

// A list changes in its middle or loses most of itself: its elements are moved or their queue is
// dropped, whichever is less.

// insertion is how a value gets to a position of a list: it goes to an end of its neighbour's
// priority, and then all that are to be beyond it go there, too.
type insertion struct {
	priority uint32
	end      End
	moved    []index.Packet // in the order in which they go
}

// maxMoved is more elements than any insertion may move.
const maxMoved = MaxChanged + 1

// planInsert finds out on which side of the position fewer elements are to be moved.
func (m *Machine) planInsert(q *queue, length, at int) insertion {
	n := insertion{end: Newest, priority: ListPriority}
	count := min(at, maxMoved)
	from := at - count
	if length-at < at {
		n.end, from, count = Oldest, at, min(length-at, maxMoved)
	}
	if length == 0 {
		return n
	}
	n.priority = m.elements(q, min(at, length-1), 1)[0].Priority
	if n.moved = m.elements(q, from, count); n.end == Newest {
		slices.Reverse(n.moved)
	}
	if i := slices.IndexFunc(n.moved, func(p index.Packet) bool { return p.Priority != n.priority }); i >= 0 {
		n.moved = n.moved[:i]
	}
	return n
}

// InsertAt puts a value before the element at a position, or at the right end if at is the length.
// It moves the elements of the shorter side, and returns the new length. ErrTooManyChanged.
func (tx *Tx) InsertAt(name []byte, at int, value []byte) (length int, err error) {
	m := tx.m
	q, length, err := m.findPlaces(name)
	if err != nil {
		return 0, err
	}
	if err := checkSize(name, len(value), m.maxRecord); err != nil {
		return 0, err
	}
	plan := m.planInsert(q, length, max(0, min(at, length)))
	if err := tx.mayMove(plan.moved...); err != nil {
		return 0, err
	}
	records, err := m.fetchToMove(q, plan.moved)
	if err != nil {
		return 0, err
	}
	if q, err = tx.openToPush(name, load{packets: 1, bytes: int64(len(value))}, nil); err != nil {
		return 0, err
	}
	p := Packet{Payload: value, EnqueuedAt: tx.now}
	m.insert(q, plan.priority, plan.end, &p, Ready, 0)
	if plan.end == Newest { // from left to right
		slices.Reverse(plan.moved)
		slices.Reverse(records)
	}
	passed := m.passed(q, plan.moved)
	for i := range plan.moved {
		if plan.end == Newest {
			i = len(plan.moved) - 1 - i
		}
		p := plan.moved[i]
		plan.moved[i] = m.move(q, p, records[i], q, p.Priority, plan.end)
	}
	for at, n := range passed {
		stays := plan.end == Oldest && n == 0 || plan.end == Newest && n == len(plan.moved)
		if !stays && at.Priority == plan.priority {
			follow(at, plan.moved[:n])
		}
	}
	return length + 1, nil
}

const (
	// Elements are moved to a new queue to be rid of the others where these are more than
	// trimByDelete, and trimByMove for each of those: deletes of fewer cost less than to read and to
	// write.
	trimByMove   = 32
	trimByDelete = 4096
	// deleteSlice is how many elements are looked up, and then deleted, at a time.
	deleteSlice = 1 << 16
)

// Trim deletes all elements but the n from position from on.
func (tx *Tx) Trim(name []byte, from, n int) error {
	m := tx.m
	q, length, err := m.findPlaces(name)
	if err != nil || length == 0 {
		return err
	}
	if err := tx.canTake(); err != nil {
		return err
	}
	from = max(0, min(from, length))
	n = max(0, min(n, length-from))
	gone := length - n
	// What is queued besides the elements must stay, and windows as long as an element does. What
	// shares have comes along.
	whole := m.ix.Counts(q.ix).Len() == length && (n == 0 || !m.ix.HasWindow(q.ix))
	if whole && q.own != nil {
		if err := tx.change(len(q.shares.byName) - q.shares.rests); err != nil {
			return err
		}
	}
	switch {
	case n == 0 && whole && q.own != nil:
		m.changed(m.replaceQueue(q))
		return nil
	case n == 0 && whole:
		m.dropQueue(q)
		return nil
	case whole && gone > trimByDelete && gone >= trimByMove*n && n <= tx.MayChange() && tx.CanStore() == nil:
		kept := m.elements(q, from, n)
		if weightOf(kept) <= m.limits.MaxBytes && tx.mayMove(kept...) == nil {
			return m.trimByMove(q, kept)
		}
	}
	m.deleteElements(q, 0, from)
	m.deleteElements(q, n, gone-from)
	return nil
}

// trimByMove keeps some elements of a list only: they move to a new queue.
func (m *Machine) trimByMove(q *queue, kept []index.Packet) error {
	records, err := m.fetchToMove(q, kept)
	if err != nil {
		return err
	}
	passed := m.passed(q, kept)
	fresh := m.replaceQueue(q)
	for i, p := range slices.Backward(kept) {
		kept[i] = m.move(q, p, records[i], fresh, p.Priority, Newest)
	}
	for at, n := range passed {
		follow(at, kept[:n])
	}
	for c := range m.cursors {
		if c.queue == q {
			c.queue = fresh
		}
	}
	return nil
}

// deleteElements deletes count elements of a list, from a position on.
func (m *Machine) deleteElements(q *queue, from, count int) {
	for count > 0 {
		gone := m.elements(q, from, min(count, deleteSlice))
		m.dropNow(q, gone, EventDeleted)
		count -= len(gone)
	}
}
