package content

import (
	"bytes"
	"math"
)

// Queue is the definition of a queue.
type Queue struct {
	ID       uint32
	Database uint8
	Name     []byte
	// Expiry is when the queue expires with all that is in it, in Unix milliseconds; 0 is never.
	Expiry int64
	// Dropped says that the queue is gone: nobody can name it, and its packets are being deleted.
	Dropped bool
	// Settings are nil if none was ever set: then the queue ends when it is empty.
	Settings *Settings
	Counters Counters // have a record of their own
	// Due and DueGap are of its own rate, as those of a Share.
	Due, DueGap int64
	// SharesFrom is when shares without a rate of their own give again, by a slow rate, in Unix
	// milliseconds; 0: one has since, it is not known, or there is no such rate.
	SharesFrom int64

	// New says that no definition of ID is on disk, so that taking the queue back in the same batch
	// needs no write. When in doubt leave it false. It is not stored.
	New bool

	Rest Rest
}

// Expired reports whether the time of the queue has passed at now, as Packet.Expired does.
func (q *Queue) Expired(now int64) bool { return q.Expiry != 0 && q.Expiry <= now }

const (
	fieldName        = 1
	fieldQueueExpiry = 2
	fieldDropped     = 3
	// 4 to 9, 11 to 19, 21, 24 to 29 and 31 to 33 are settings: SettingsTable.
	fieldDatabase = 30 // left out where it is 0
	fieldDue      = 40 // left out with the next where it is 0
	fieldDueGap   = 41
	fieldFrom     = 42 // left out where it is 0
)

// AppendQueue appends the definition of a queue to dst; its number is in the key.
func AppendQueue(dst []byte, q *Queue) []byte {
	w := newWriter(dst)
	w.bin(fieldName, q.Name)
	w.int(fieldQueueExpiry, q.Expiry)
	if q.Dropped {
		w.b = append(w.field(fieldDropped), formTrue)
	}
	q.Settings.write(&w, 0, fieldDatabase)
	w.uint(fieldDatabase, uint64(q.Database))
	q.Settings.write(&w, fieldDatabase, math.MaxUint8)
	if q.Due != 0 {
		w.int(fieldDue, q.Due)
		w.int(fieldDueGap, q.DueGap)
	}
	if q.SharesFrom != 0 {
		w.int(fieldFrom, q.SharesFrom)
	}
	w.rest(q.Rest)
	return w.end()
}

// DecodeQueue reads a definition, whose first field is the name. Nothing of it aliases rec.
func DecodeQueue(rec []byte, q *Queue) error {
	*q = Queue{ID: q.ID}
	r := reader{b: rec}
	for r.next() {
		r.check((r.field == fieldName) == (q.Name == nil)) // it is there once
		switch r.field {
		case fieldName:
			q.Name = bytes.Clone(r.bin())
		case fieldQueueExpiry:
			q.Expiry = r.int()
		case fieldDropped:
			q.Dropped = r.bool()
		case fieldDatabase:
			q.Database = r.database()
		case fieldDue:
			q.Due = r.int()
		case fieldDueGap:
			q.DueGap = r.int()
		case fieldFrom:
			q.SharesFrom = r.int()
		default:
			if !q.readSetting(&r) { // a later version knows it
				r.keep(&q.Rest)
			}
		}
	}
	return r.err()
}
