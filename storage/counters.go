package storage

import (
	"fmt"

	"github.com/vmihailenco/msgpack/v5"
)

// Counters are what a queue has done since it was made. They do not run backwards over a restart
// but by what was counted in the second before a kill. They have a record of their own: a
// definition with all its settings is not written anew each second.
type Counters struct { // with the names that dumps have for them
	Pushed  uint64 `json:"pushed" msgpack:"pushed"`
	Popped  uint64 `json:"popped" msgpack:"popped"`
	Acked   uint64 `json:"acked" msgpack:"acked"`
	Nacked  uint64 `json:"nacked" msgpack:"nacked"`
	Expired uint64 `json:"expired" msgpack:"expired"`
	Dead    uint64 `json:"dead" msgpack:"dead"`
	Dropped uint64 `json:"dropped,omitempty" msgpack:"dropped,omitempty"` // by a full queue
}

// countersRoom is at least what the record takes.
const countersRoom = 80

func appendCounters(dst []byte, c *Counters) []byte {
	return appendNumbers(dst, 0, false, c.Pushed, c.Popped, c.Acked, c.Nacked, c.Expired, c.Dead, c.Dropped)
}

func decodeCounters(rec []byte, c *Counters) error {
	_, err := decodeNumbers(rec, &c.Pushed, &c.Popped, &c.Acked, &c.Nacked, &c.Expired, &c.Dead, &c.Dropped)
	return err
}

// decodeOld reads the six counters that a definition of before version 5 has in one field.
func (c *Counters) decodeOld(d *msgpack.Decoder) error {
	var old []uint64
	if err := d.Decode(&old); err != nil {
		return err
	}
	if len(old) != 6 {
		return fmt.Errorf("%d counters instead of 6", len(old))
	}
	c.Pushed, c.Popped, c.Acked, c.Nacked, c.Expired, c.Dead = old[0], old[1], old[2], old[3], old[4], old[5]
	return nil
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
		w.q.Counters = Counters{}
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
