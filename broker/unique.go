package broker

import (
	"strconv"

	"github.com/holdfast-queue/holdfast/broker/keyspace"
	"github.com/holdfast-queue/holdfast/index"
)

// A unique push adds a packet unless an earlier one has its id. Without a window the index says
// that (index.Holder), and the packet's record keeps the id. With a window a string says it: its
// value is the packet's id, and it expires with the window, whatever becomes of the packet.

// windowOverhead is what a window brings besides the name of the queue and the id of the push:
// "unique:", a length, two colons and the id of a packet.
const windowOverhead = 7 + 5 + 2 + 20

// WindowRoom is what the Window of a Push to a queue brings, at most.
func WindowRoom(queue []byte) Room {
	return Room{Records: 1, Bytes: windowOverhead + len(queue) + MaxUnique}
}

// windowName appends the name of the string of a window.
func windowName(dst []byte, r *PushRequest) []byte {
	dst = strconv.AppendInt(append(dst, "unique:"...), int64(len(r.Queue)), 10)
	dst = append(append(dst, ':'), r.Queue...)
	return append(append(dst, ':'), r.Unique...)
}

// first returns the packet that a unique push finds in the place of its own.
func (b *Broker) first(r *PushRequest) (id ID, ok bool, err error) {
	if len(r.Unique) == 0 {
		return 0, false, nil
	}
	if r.Window > 0 {
		return b.window(r)
	}
	q, err := b.findQueue(r.Queue)
	if q == nil || err != nil {
		return 0, false, err
	}
	p, ok := b.ix.Holder(q.ix, r.Unique)
	return idOf(p.Identity), ok, nil
}

// window returns the packet that was pushed last with a window that is not over.
func (b *Broker) window(r *PushRequest) (id ID, ok bool, err error) {
	b.windowName = windowName(b.windowName[:0], r)
	if err := b.checkName(b.windowName, windowOverhead); err != nil {
		return 0, false, err
	}
	k, err := b.findKey(b.windowName, keyspace.String)
	if k == nil || err != nil {
		return 0, false, err
	}
	n, err := strconv.ParseInt(string(k.Small), 10, 64)
	if err != nil { // a client wrote it
		return 0, false, ErrWrongType
	}
	return ID(n), true, nil
}

// beginWindow begins the window of a packet that was pushed. Nothing has the name.
func (tx *Tx) beginWindow(r *PushRequest, id ID) {
	b := tx.b
	b.windowName = windowName(b.windowName[:0], r)
	k := b.addValue(b.windowName, keyspace.String)
	b.names.SetExpiry(k, tx.now+r.Window)
	b.putString(k, strconv.AppendInt(nil, int64(id), 10))
}

// unique returns the id that a packet keeps, nil if it has none. It is valid until the next call.
func (b *Broker) unique(p index.Packet) []byte {
	unique, ok := b.ix.Unique(p.ID, b.uniqueScratch[:0])
	if !ok {
		return nil
	}
	b.uniqueScratch = unique
	return unique
}
