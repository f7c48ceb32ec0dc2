package netproto

import (
	"container/list"
	"math"
)

// timeline is connections that must do something in time. Each has as long as the others of its
// server, so the list is nearly in order: one of a server with a shorter time, or one that waited
// for its turn, may be late by the longer one.
type timeline struct{ all list.List }

// deadline is when a connection must have done something; the zero value is none.
type deadline struct {
	at int64 // on the loop's steady clock, in milliseconds
	in *list.Element
}

// set gives c the deadline d at a moment.
func (t *timeline) set(c *conn, d *deadline, at int64) {
	t.clear(d)
	d.at, d.in = at, t.all.PushBack(timed{c, d})
}

// timed is one entry of a timeline.
type timed struct {
	c *conn
	d *deadline
}

// clear ends a deadline, if there is one.
func (t *timeline) clear(d *deadline) {
	if d.in != nil {
		t.all.Remove(d.in)
		d.in = nil
	}
}

// next is the first moment at which a deadline may be due.
func (t *timeline) next() int64 {
	if first := t.all.Front(); first != nil {
		return first.Value.(timed).d.at
	}
	return math.MaxInt64
}

// due returns a connection whose deadline is due, which then has none; nil if there is no such. Who
// waits for its turn may have done what it must, and the loop has not seen it: it gets more time.
func (t *timeline) due(now int64) *conn {
	for t.next() <= now {
		first := t.all.Front().Value.(timed)
		if t.clear(first.d); !first.c.listed {
			return first.c
		}
		t.set(first.c, first.d, now+turnTime.Milliseconds())
	}
	return nil
}
