package broker

import (
	"cmp"
	"slices"
	"sort"

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
	// Elements are moved to a new queue to be rid of the others where these are more than trimSlice,
	// and trimByMove for each of those: deletes of fewer cost less than to read and to write. Where
	// such a move is possible, nobody sees a part of the trim.
	trimByMove = 32
	// deleteSlice is how many elements are looked up, and then deleted, at a time.
	deleteSlice = 1 << 16
	// trimSlice is how many elements a trim deletes before others have their turn: some milliseconds.
	trimSlice = 2048
)

// Trim deletes all elements but the n from position from on, at once. ErrTooManyChanged, unless the
// whole queue goes, or nearly all of it does.
func (tx *Tx) Trim(name []byte, from, n int) error { return tx.trim(name, from, n, nil) }

// TrimInSlices is Trim that goes on with the next call while c says that there is more: then it
// goes by place. A crash leaves a prefix done. What is pushed meanwhile stays.
func (tx *Tx) TrimInSlices(name []byte, from, n int, c *ListCursor) error {
	if !c.More() {
		return tx.trim(name, from, n, c)
	}
	q, _, err := tx.m.findPlaces(name)
	if err = cmp.Or(err, tx.canTake()); err != nil || q != c.queue {
		c.End()
		return err
	}
	tx.m.trimSlice(q, c)
	return nil
}

// trim is Trim; with a c that is not nil it may begin slices.
func (tx *Tx) trim(name []byte, from, n int, c *ListCursor) error {
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
	// What is queued besides the elements must stay, and so must windows, and the queue that its dead
	// name. What shares have comes along.
	whole := m.ix.Counts(q.ix).Len() == length && !m.ix.HasWindow(q.ix) && !m.isOrigin(q)
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
	case whole && gone > trimSlice && gone >= trimByMove*n && n <= tx.MayChange() && tx.CanStore() == nil:
		kept := m.elements(q, from, n)
		if weightOf(kept) <= m.limits.MaxBytes && tx.mayMove(kept...) == nil {
			return m.trimByMove(q, kept)
		}
	}
	if c != nil && gone > trimSlice {
		m.beginTrim(q, from, n, length, c)
		return nil
	}
	if err := tx.change(gone); err != nil {
		return err
	}
	m.deleteElements(q, 0, from)
	m.deleteElements(q, n, gone-from)
	return nil
}

// beginTrim makes the first slice of a trim that deletes the elements before the n from position
// from on, and then those behind them.
func (m *Machine) beginTrim(q *queue, from, n, length int, c *ListCursor) {
	*c = ListCursor{queue: q, marks: m.marks}
	if n == 0 {
		from = length
	}
	if from+n < length {
		c.then = m.elements(q, from+n-1, 1)[0].Place()
	}
	if from > 0 {
		c.last = m.elements(q, from-1, 1)[0].Place()
	} else {
		c.trimBehind(m)
	}
	m.trimSlice(q, c)
}

// trimBehind goes on to what is behind the elements that a trim keeps.
func (c *ListCursor) trimBehind(m *Machine) {
	c.after, c.last, c.then = c.then, m.ix.Last(c.queue.ix).Place(), Place{}
}

// trimSlice makes the next slice of a trim.
func (m *Machine) trimSlice(q *queue, c *ListCursor) {
	found := m.ix.NextBehind(q.ix, Newest, c.after, trimSlice, m.scratch[:0])
	m.scratch = found
	upto := sort.Search(len(found), func(i int) bool { return behind(c.last, found[i]) })
	if upto > 0 {
		c.after = found[upto-1].Place()
	}
	m.dropNow(q, slices.DeleteFunc(found[:upto], c.isNew), EventDeleted)
	switch {
	case upto == trimSlice:
	case c.then.Priority == 0 || m.ix.Counts(q.ix).Ready == 0:
		c.End()
		return
	default:
		c.trimBehind(m)
	}
	c.keep(m)
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
