package broker

import (
	"cmp"
	"fmt"
	"slices"
	"sort"

	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// ListPriority is the priority of a list's packets: the middle of what pinpriq can say.
const ListPriority = 128

// A list is a queue whose packets are seen in order: the best priority first, the newest of it at
// the left. Only packets that a pop can select are its elements. Every call below is made inside
// Atomic. Any of them returns ErrWrongType if a string or hash has the name.

// findList returns the queue called name and how many elements it has. It is nil if there is none.
func (m *Machine) findList(name []byte) (q *queue, length int, err error) {
	if q, err = m.findQueue(name); q == nil || err != nil {
		return nil, 0, err
	}
	return q, m.ix.Counts(q.ix).Ready, nil
}

// findPlaces is findList for calls that name places. ErrByShares.
func (m *Machine) findPlaces(name []byte) (q *queue, length int, err error) {
	q, length, err = m.findList(name)
	if q != nil && m.sharedOut(q) {
		return nil, 0, ErrByShares
	}
	return q, length, err
}

// Len returns the number of elements; 0 for an unknown name.
func (tx *Tx) Len(name []byte) (int, error) {
	_, n, err := tx.m.findList(name)
	return n, err
}

// PushEnd adds values at an end of the list, one after the other, and returns the new length.
// Waiters get them after the Atomic.
func (tx *Tx) PushEnd(name []byte, end End, values [][]byte) (length int, err error) {
	m, comes := tx.m, load{packets: len(values), priority: ListPriority}
	for _, v := range values {
		if err := checkSize(name, len(v), m.maxRecord); err != nil {
			return 0, err
		}
		comes.bytes += int64(len(v))
		comes.addWidth(content.IsWide(0, len(v)))
	}
	q, err := tx.openToPush(name, comes, nil)
	if err != nil {
		return 0, err
	}
	for _, v := range values {
		m.insert(q, ListPriority, end, &Packet{Payload: v, EnqueuedAt: tx.now}, Ready, 0)
	}
	length = m.ix.Counts(q.ix).Ready
	return length, nil
}

// Elements begins a look at the n elements from position from on, counted from the left. It takes
// none. The list has that many: Len tells. NextElements follows at once.
func (tx *Tx) Elements(name []byte, from, n int, c *ListCursor) error {
	m := tx.m
	q, length, err := m.findPlaces(name)
	if err != nil {
		return err
	}
	if from < 0 || from+n > length {
		return fmt.Errorf("%w: %d elements from %d on, the list has %d", ErrNoElement, n, from, length)
	}
	c.End()
	if n == 0 {
		return nil
	}
	// Of a few one walk finds both ends: the way to a position may be long.
	found := m.elements(q, from, min(n, LookSlice))
	first, last := found[0].Place(), found[len(found)-1].Place()
	switch {
	case n <= LookSlice:
	case from+n == length:
		last = m.ix.Last(q.ix).Place()
	default:
		last = m.elements(q, from+n-1, 1)[0].Place()
	}
	*c = ListCursor{queue: q, marks: m.marks, after: Place{Priority: first.Priority, Seq: first.Seq + 1}, last: last, n: n}
	return nil
}

// NextElements finds the next elements of a look: at most n, fewer where they are large, maybe none
// though there are more. ErrChanged if some cannot be read: they are no elements any more, and the
// look goes on with the others.
func (tx *Tx) NextElements(name []byte, c *ListCursor, n int) (Found, error) {
	m := tx.m
	m.found.Packets, m.found.Details = m.found.Packets[:0], m.found.Details[:0]
	q, _, err := m.findPlaces(name)
	if err != nil {
		return Found{}, err
	}
	if q == nil || q != c.queue {
		c.End()
		return Found{}, nil
	}
	n = min(n, c.n)
	found := m.ix.NextBehind(q.ix, Newest, c.after, n, m.scratch[:0])
	m.scratch = found
	upto := sort.Search(len(found), func(i int) bool { return behind(c.last, found[i]) })
	ends := upto < n
	if fit := fitting(found[:upto], lookSliceBytes, weight); fit < upto {
		upto, ends = fit, false
	}
	after := c.after
	if upto > 0 {
		after = found[upto-1].Place()
	}
	found = slices.DeleteFunc(found[:upto], c.isNew)
	bytes := weightOf(found)
	tx.lookedAt(len(found), bytes)
	if err := tx.useReply(bytes + len(found)*packetOverhead); err != nil {
		return Found{}, err
	}
	records, err := m.fetch(q, found, nil)
	if err != nil {
		c.keep(m)
		return Found{}, ErrChanged
	}
	if c.after = after; ends || after == c.last {
		c.End()
	} else {
		c.keep(m)
	}
	return m.finding(records), nil
}

// Element finds the element at a position, counted from the left. ErrChanged if it cannot be read:
// it is none any more.
func (tx *Tx) Element(name []byte, at int) (f Found, err error) {
	var c ListCursor
	if err = tx.Elements(name, at, 1, &c); err == nil {
		f, err = tx.NextElements(name, &c, 1)
		c.End()
	}
	return f, err
}

// SetAt puts a value in the place of the element at a position; ok is false if there is none. The
// value has no key and the element's expiry.
func (tx *Tx) SetAt(name []byte, at int, value []byte) (ok bool, err error) {
	m := tx.m
	q, length, err := m.findPlaces(name)
	if err != nil || at < 0 || at >= length {
		return false, err
	}
	p := m.elements(q, at, 1)[0]
	if err := checkSize(name, len(value), m.maxRecord); err != nil {
		return false, err
	}
	if err := tx.CanStore(); err != nil {
		return false, err
	}
	if err := tx.makeRoom(q, load{bytes: int64(len(value)) - int64(p.Size)}); err != nil {
		return false, err
	}
	m.replace(q, p, &Packet{Payload: value, Expiry: p.Expiry, EnqueuedAt: tx.now}, tx.now)
	return true, nil
}

// replace puts a packet in the place of another, whose expiry it has.
func (m *Machine) replace(q *queue, old index.Packet, p *Packet, now int64) {
	m.leaveConsumer(old)
	if old.HasUnique {
		m.endUnique(q, old.Identity)
	}
	m.ix.Replace(old.ID, m.putInPlace(q, old, p), now) // there is room: one has just gone
	m.changed(q)
}

// putInPlace puts a packet in the place of another. It returns the entry that the index is to have
// for it.
func (m *Machine) putInPlace(q *queue, old index.Packet, p *Packet) index.Entry {
	id, op := q.packet(old), 0
	setHash(p)
	m.tail(q, index.Packet{Identity: old.Identity, Priority: old.Priority, Size: uint32(len(p.Key) + len(p.Payload) + len(p.Meta))}, EventReplaced)
	if at, ok := m.open.puts.find(id); ok {
		m.open.ops.Cancel(at)
		m.deleteDelivery(old)
		op = m.open.ops.Put(id, p)
	} else {
		op = m.open.ops.Replace(id, p, removed(old))
	}
	m.open.puts.add(id, op)
	return m.entry(q, id, p, op)
}

// Find appends to dst the positions of the next elements that equal value, at most n, from an end
// on. It begins a look behind the first skip ones, or goes on with the one of c, and may find fewer
// though there are more. Positions count from the left, as they are at this call. An element with a
// key is passed over. ErrTooManyLooks, ErrTooManyEqual.
func (tx *Tx) Find(name, value []byte, end End, skip, n int, c *ListCursor, dst []int) ([]int, error) {
	m := tx.m
	if !c.More() {
		*c = ListCursor{marks: m.marks, skip: skip}
	}
	n = min(c.skip+n, findSlice)
	q, found, err := tx.findValue(name, value, end, c.after, n)
	if err == nil && c.passed >= MaxLooks {
		err = ErrTooManyLooks
	}
	if err != nil || q == nil || c.More() && q != c.queue {
		c.End()
		return dst, err
	}
	c.queue = q
	begun, looked, at := m.ix.Passed(), 0, -1
	for ; looked < len(found) && m.ix.Passed()-begun < findPassed; looked++ {
		p := found[looked]
		here := p.Place()
		if end == Oldest {
			here.Seq++
		}
		switch {
		case c.skip > 0:
		case at < 0: // each slice goes this way anew, so it is free up to findPassed
			before := m.ix.Passed()
			at = m.ix.Position(p.ID)
			c.passed -= min(m.ix.Passed()-before, findPassed)
		case end == Oldest:
			at -= m.ix.Distance(q.ix, here, c.after)
		default:
			at += m.ix.Distance(q.ix, c.after, here)
		}
		c.after = here
		switch {
		case int(p.Size) < len(value), c.isNew(p): // another value may have the hash
		case c.skip > 0:
			c.skip--
		default:
			dst = append(dst, at)
		}
	}
	c.passed += m.ix.Passed() - begun
	tx.lookedAt(looked, 0)
	if looked == len(found) && looked < n {
		c.End()
	} else {
		c.keep(m)
	}
	return dst, nil
}

// PrepareSearch does a slice of what a search by value needs, of at most PrepareSlice packets. It
// returns how many that were, and true if there is more to do. A search does what is left at once,
// or is refused.
func (tx *Tx) PrepareSearch(name []byte) (done int, more bool) {
	q := tx.m.queueNamed(name)
	if q == nil || tx.m.sharedOut(q) {
		return 0, false
	}
	return tx.m.ix.BuildValues(q.ix, PrepareSlice)
}

// findValue returns the elements of a list that have the hash of value, at most max if that is not
// 0, from an end on, as index.FindValue, and the queue, nil if there is none.
func (tx *Tx) findValue(name, value []byte, end End, from Place, max int) (q *queue, found []index.Packet, err error) {
	m, ok := tx.m, false
	if q, _, err = m.findPlaces(name); q == nil {
		return nil, nil, err
	}
	if !tx.mayPass(lookSearch * m.ix.Unsearched(q.ix)) {
		return nil, nil, ErrTooManyLooks
	}
	if found, ok = m.ix.FindValue(q.ix, content.ValueHash(value), end, from, max, m.scratch[:0]); !ok {
		return nil, nil, ErrTooManyEqual
	}
	m.scratch = found
	return q, found, nil
}

// RemoveValue deletes elements that equal value, at most max if that is not 0, from an end on, and
// returns how many. An element with a key is passed over. ErrTooManyChanged,
// ErrTooManyLooks, ErrTooManyEqual.
func (tx *Tx) RemoveValue(name, value []byte, end End, max int) (int, error) {
	m := tx.m
	if most := tx.MayChange() + 1; max == 0 || max > most {
		max = most
	}
	q, found, err := tx.findValue(name, value, end, Place{}, max)
	found = slices.DeleteFunc(found, func(p index.Packet) bool { return int(p.Size) < len(value) })
	if err == nil && len(found) > 0 {
		err = cmp.Or(tx.canTake(), tx.change(len(found)))
	}
	if err != nil || len(found) == 0 {
		return 0, err
	}
	m.dropNow(q, found, EventDeleted)
	return len(found), nil
}

// MoveEnd takes the element at one end of a list, and adds it at an end of another list, or the
// same. It finds nothing if from has no element.
func (tx *Tx) MoveEnd(from []byte, fromEnd End, to []byte, toEnd End) (Found, error) {
	m := tx.m
	t, err := tx.take(from, Selection{End: fromEnd}, 1)
	if len(t.packets) == 0 || err != nil {
		return Found{}, err
	}
	q, p := t.q, t.packets[0]
	if err := tx.change(written(p) - 1); err != nil { // take has counted one
		return Found{}, err
	}
	other, err := m.makeQueue(to)
	if err == nil && other != q {
		err = cmp.Or(m.checkMove(q, other, p), tx.CanStore(), tx.checkOpen(other, 1), m.checkBoundOfMoves(other, p))
	}
	if err != nil {
		return Found{}, err
	}
	comes := load{packets: 1, bytes: int64(p.Size), moves: true}
	if string(to) == q.entry.Name() {
		comes = load{}
	}
	target, err := tx.openToPush(to, comes, nil)
	if err != nil {
		return Found{}, err
	}
	tx.useRole(q, consumerRole)
	m.ix.Take(p.ID)
	moved := m.move(q, p, t.records[0], target, ListPriority, toEnd)
	m.found.Details, m.fetched = m.found.Details[:0], append(m.fetched[:0], m.known(target.packet(moved), moved.Ref))
	return m.finding(m.fetched), nil
}
