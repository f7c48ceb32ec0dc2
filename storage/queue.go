package storage

import (
	"errors"
	"fmt"

	"github.com/vmihailenco/msgpack/v5"
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

	// New says that no definition of ID is on disk, so that taking the queue back in the same batch
	// needs no write. When in doubt leave it false. It is not stored.
	New bool

	// Rest holds the fields that this version does not know, as msgpack (number, value, number,
	// value, …). What Queues returned must be given back to PutQueue, or a newer version's settings
	// are lost.
	Rest []byte
	// RestFields counts the fields in Rest.
	RestFields int
}

// Expired reports whether the time of the queue has passed at now, as that of a Packet.
func (q *Queue) Expired(now int64) bool { return q.Expiry != 0 && q.Expiry <= now }

const (
	fieldName        = 1
	fieldQueueExpiry = 2
	fieldDropped     = 3
	// 4 to 9, and 11 to 19, are settings: SettingsTable.

	// Counters, in definitions from before version 5.
	fieldCounters     = 10 // array of uint: all but one
	fieldDroppedCount = 20

	fieldDatabase = 30 // left out where it is 0
)

// queueRoom is at least what the definition of a queue takes.
func queueRoom(q *Queue) int {
	n := 96 + len(q.Name) + len(q.Rest)
	if q.Settings != nil {
		n += q.Settings.room()
	}
	return n
}

func appendQueue(dst []byte, q *Queue) []byte {
	var settings []*Setting
	if q.Settings != nil {
		settings = q.Settings.written()
	}
	n := 1 + len(settings) + q.RestFields
	if q.Expiry != 0 {
		n++
	}
	if q.Dropped {
		n++
	}
	if q.Database != 0 {
		n++
	}
	dst = appendMap(dst, n, func(e *msgpack.Encoder) error {
		err := errors.Join(e.EncodeUint(fieldName), e.EncodeBytes(append([]byte{}, q.Name...))) // never nil
		if q.Expiry != 0 {
			err = errors.Join(err, e.EncodeUint(fieldQueueExpiry), e.EncodeInt(q.Expiry))
		}
		if q.Dropped {
			err = errors.Join(err, e.EncodeUint(fieldDropped), e.EncodeBool(true))
		}
		for _, k := range settings {
			err = errors.Join(err, k.encode(e, q.Settings))
		}
		if q.Database != 0 {
			err = errors.Join(err, e.EncodeUint(fieldDatabase), e.EncodeUint(uint64(q.Database)))
		}
		return err
	})
	return append(dst, q.Rest...)
}

// decodeQueue reads a definition, whose first field is the name.
func decodeQueue(rec []byte, q *Queue) error {
	*q = Queue{ID: q.ID}
	return eachField(rec, func(field uint64, d *msgpack.Decoder) (err error) {
		if (field == fieldName) != (q.Name == nil) {
			return errors.New("the name of a queue is not the first field, or not the only one of its number")
		}
		switch field {
		case fieldName:
			if q.Name, err = d.DecodeBytes(); err == nil && q.Name == nil {
				err = errors.New("a queue without a name")
			}
		case fieldQueueExpiry:
			q.Expiry, err = d.DecodeInt64()
		case fieldDropped:
			q.Dropped, err = d.DecodeBool()
		case fieldCounters:
			err = q.Counters.decodeOld(d)
		case fieldDroppedCount:
			q.Counters.Dropped, err = d.DecodeUint64()
		case fieldDatabase:
			if q.Database, err = d.DecodeUint8(); err == nil && q.Database >= Databases {
				err = fmt.Errorf("queue in database %d, the last one is %d", q.Database, Databases-1)
			}
		default:
			var ok bool
			if ok, err = q.decodeSetting(field, d); !ok {
				err = q.keep(field, d)
			}
		}
		return err
	})
}

// keep adds a field that this version does not know to Rest.
func (q *Queue) keep(field uint64, d *msgpack.Decoder) error {
	value, err := d.DecodeRaw()
	q.Rest = append(appendUint(q.Rest, field), value...)
	q.RestFields++
	return err
}
