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
	room     Room
}

// planInsert finds out on which side of the position fewer elements are to be moved.
func (b *Broker) planInsert(q *queue, length, at, size int) insertion {
	n := insertion{end: Newest, priority: ListPriority}
	from, count := 0, at
	if length-at < at {
		n.end, from, count = Oldest, at, length-at
	}
	if length == 0 {
		n.room = Room{Records: 1, Bytes: size}
		return n
	}
	if count > b.limits.MaxOps { // no batch takes so many
		n.room = Room{Records: count, Deletes: count}
		return n
	}
	b.scratch = b.ix.Next(q.ix, index.Selection{}, min(at, length-1), 1, b.scratch[:0])
	n.priority = b.scratch[0].Priority
	b.scratch = b.ix.Next(q.ix, index.Selection{}, from, count, b.scratch[:0])
	if n.end == Newest {
		slices.Reverse(b.scratch)
	}
	n.room = Room{Records: 1, Bytes: size}
	for i, p := range b.scratch {
		if p.Priority != n.priority {
			b.scratch = b.scratch[:i]
			break
		}
		n.room = n.room.Plus(Room{Records: 1, Bytes: weight(p), Deletes: 1})
	}
	n.moved = b.scratch
	return n
}

// InsertAt puts a value before the element at a position, or at the right end if at is the length.
// It moves the elements of the shorter side; InsertRoom tells what that brings. It returns the new
// length.
func (tx *Tx) InsertAt(name []byte, at int, value []byte) (length int, err error) {
	b := tx.b
	q, length, err := b.findList(name)
	if err != nil {
		return 0, err
	}
	at = max(0, min(at, length))
	if err := b.checkSize(name, len(value)); err != nil {
		return 0, err
	}
	plan := b.planInsert(q, length, at, len(value))
	if q, err = tx.useList(name, plan.room, load{packets: 1, bytes: int64(len(value))}); err != nil {
		return 0, err
	}
	p := Packet{Payload: value, EnqueuedAt: tx.now}
	b.insert(q, plan.priority, plan.end, &p, tx.now)
	for _, p := range plan.moved {
		b.move(q, p, q, p.Priority, plan.end)
	}
	b.deliverQueue(q)
	return length + 1, nil
}

// InsertRoom returns what an InsertAt of a value of so many bytes brings.
func (tx *Tx) InsertRoom(name []byte, at, value int) Room {
	b := tx.b
	q, length, err := b.findList(name)
	if err != nil {
		return Room{}
	}
	room := b.planInsert(q, length, max(0, min(at, length)), value).room
	return room.Plus(Room{Records: 1, Bytes: len(name)})
}

const (
	// trimByMove is the most elements that are moved to a new queue to be rid of the others, and
	// trimByDelete how many others there are at least: deletes of fewer cost less.
	trimByMove   = 1024
	trimByDelete = 4096
)

// trimming is how a list loses all but some neighbours.
type trimming struct {
	how     trimKind
	packets []index.Packet // to delete, or to keep
	room    Room
}

type trimKind uint8

const (
	trimNothing trimKind = iota
	trimDelete           // of packets
	trimDrop             // of the queue
	trimMove             // of packets, and then the queue is dropped
)

// planTrim finds the least costly way to keep the n elements from position from on.
func (b *Broker) planTrim(q *queue, length, from, n int) trimming {
	gone := length - n
	// What is queued besides the elements must stay, and windows as long as an element does.
	whole := b.ix.Counts(q.ix).Len() == length && (n == 0 || !b.ix.HasWindow(q.ix))
	switch {
	case gone == 0:
		return trimming{}
	case n == 0 && whole:
		t := trimming{how: trimDrop, room: b.dropRoom(q)}
		if q.settings != nil {
			t.room = t.room.Plus(SettingsRoom([]byte(q.entry.Name()), *q.settings))
		}
		return t
	case gone > b.limits.group && (n > trimByMove || !whole): // no batch takes so many
		return trimming{how: trimDelete, room: Room{Deletes: gone}}
	case gone > trimByDelete && n <= trimByMove && whole:
		t := trimming{how: trimMove, room: Room{Records: 2 + n, Deletes: n, Bytes: 2*len(q.entry.Name()) + settingsBytes(q)}}
		b.scratch = b.ix.Next(q.ix, index.Selection{}, from, n, b.scratch[:0])
		for _, p := range b.scratch {
			t.room.Bytes += weight(p)
		}
		if gone > b.limits.group || b.limits.check(t.room) == nil {
			t.packets = b.scratch
			return t
		}
	}
	b.scratch = b.ix.Next(q.ix, index.Selection{}, 0, from, b.scratch[:0])
	b.scratch = b.ix.Next(q.ix, index.Selection{}, from+n, gone-from, b.scratch)
	return trimming{how: trimDelete, packets: b.scratch, room: Room{Deletes: gone}}
}

// Trim deletes all elements but the n from position from on. TrimRoom tells what that brings.
func (tx *Tx) Trim(name []byte, from, n int) error {
	b := tx.b
	q, length, err := b.findList(name)
	if err != nil || length == 0 {
		return err
	}
	from = max(0, min(from, length))
	n = max(0, min(n, length-from))
	plan := b.planTrim(q, length, from, n)
	if plan.how == trimDelete {
		return tx.deleteElements(q, plan.packets)
	}
	if err := tx.begin(plan.room); err != nil {
		return err
	}
	switch plan.how {
	case trimDrop:
		if q.settings != nil {
			b.changed(b.replaceQueue(q))
			return nil
		}
		b.dropQueue(q)
	case trimMove:
		if err := tx.pushable(); err != nil {
			return err
		}
		fresh := b.replaceQueue(q)
		slices.Reverse(plan.packets)
		for _, p := range plan.packets {
			b.move(q, p, fresh, p.Priority, Newest)
		}
	}
	return nil
}

// TrimRoom returns what a Trim brings.
func (tx *Tx) TrimRoom(name []byte, from, n int) Room {
	b := tx.b
	q, length, err := b.findList(name)
	if err != nil || length == 0 {
		return Room{}
	}
	from = max(0, min(from, length))
	return b.planTrim(q, length, from, max(0, min(n, length-from))).room
}
