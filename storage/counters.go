package storage

import (
	"fmt"

	"github.com/vmihailenco/msgpack/v5"
)

// Counters are what a queue has done since it was made. They do not run backwards over a restart
// but by what was counted in the second before a kill. They have a record of their own: a
// definition with all its settings is not written anew each second.
type Counters struct {
	Pushed, Popped, Acked, Nacked, Expired, Dead uint64

	Dropped uint64 // by a full queue
}

// all returns the counters in the order of the record's fields, which are numbered from 1.
func (c *Counters) all() [7]*uint64 {
	return [...]*uint64{&c.Pushed, &c.Popped, &c.Acked, &c.Nacked, &c.Expired, &c.Dead, &c.Dropped}
}

// countersRoom is at least what the record takes.
const countersRoom = 80

func appendCounters(dst []byte, c *Counters) []byte {
	start := len(dst)
	dst = append(dst, formFixMap)
	for i, v := range c.all() {
		if *v != 0 {
			dst[start]++
			dst = appendUint(append(dst, byte(i+1)), *v)
		}
	}
	return dst
}

func decodeCounters(rec []byte, c *Counters) error {
	*c = Counters{}
	all, r := c.all(), reader{b: rec}
	return r.eachField(func(field uint64, _ int) (ok bool) {
		if field == 0 || field > uint64(len(all)) {
			return r.skip(0)
		}
		*all[field-1], ok = r.uint()
		return ok
	})
}

// decodeOld reads the six counters that a definition of before version 5 has in one field.
func (c *Counters) decodeOld(d *msgpack.Decoder) error {
	const old = 6
	n, err := d.DecodeArrayLen()
	if err == nil && n != old {
		err = fmt.Errorf("%d counters instead of %d", n, old)
	}
	for i := 0; err == nil && i < n; i++ {
		*c.all()[i], err = d.DecodeUint64()
	}
	return err
}

// queueWalk joins the definition of each queue with its counters, which lie behind it.
type queueWalk struct {
	fn       func(Queue) error
	tolerate func(Finding)

	q    Queue
	held bool   // q is to be given
	rec  []byte // its definition
}

// take is for scan.
func (w *queueWalk) take(key, rec []byte) error {
	id, counters, err := decodeQueueKey(key)
	if err != nil {
		return tolerated(err, fmt.Sprintf("%x", key), w.tolerate)
	}
	name := fmt.Sprintf("queue %d", id)
	if counters {
		if w.q.ID != id || !w.held {
			return nil // nobody asks for the counters of a queue without a definition
		}
		if err := decodeCounters(rec, &w.q.Counters); err != nil {
			return tolerated(fmt.Errorf("%w: counters of queue %d: %w", ErrDamaged, id, err), name, w.tolerate)
		}
		return nil
	}
	if err := w.end(nil); err != nil {
		return err
	}
	w.q, w.rec = Queue{ID: id}, append(w.rec[:0], rec...)
	if err := decodeQueue(w.rec, &w.q); err != nil {
		return tolerated(fmt.Errorf("%w: queue %d: %w", ErrDamaged, id, err), name, w.tolerate)
	}
	w.held = true
	return nil
}

// end gives the queue that was read last, unless the scan had an error.
func (w *queueWalk) end(err error) error {
	if err != nil || !w.held {
		return err
	}
	w.held = false
	return w.fn(w.q)
}
