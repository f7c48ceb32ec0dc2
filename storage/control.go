package storage

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/dgraph-io/badger/v4"
)

// Marks are the counters that must not run backwards over a restart.
type Marks struct {
	NextSeq   uint64 // sequence of the next packet at the newest end; goes up
	LowSeq    uint64 // sequence of the next packet at the oldest end; goes down
	NextQueue uint32 // identity of the next queue
}

// firstMarks are those of an empty store: the ends start in the middle of the
// range, so that neither can be used up.
func firstMarks() Marks {
	return Marks{NextSeq: 1 << 63, LowSeq: 1<<63 - 1, NextQueue: 1}
}

// Control is the control record, rewritten by every batch in the same
// transaction. It tells how far the store is and what a scan must find.
type Control struct {
	Epoch uint64 // one more at each start that writes
	Batch uint64 // one more with each batch
	Tally
	Marks
}

const (
	fieldFormat    = 1
	fieldEpoch     = 2
	fieldBatch     = 3
	fieldLive      = 4
	fieldHash      = 5
	fieldNextSeq   = 6
	fieldLowSeq    = 7
	fieldNextQueue = 8
	fieldSecret    = 9

	controlFields = 8 // those that every record has
)

// appendControl writes the secret last, where bears looks for it; of records
// from before there were secrets it is nil.
func appendControl(dst []byte, c *Control, secret []byte) []byte {
	fields := byte(controlFields)
	if secret != nil {
		fields++
	}
	dst = append(dst, formFixMap|fields)
	for i, v := range [controlFields]uint64{
		FormatVersion, c.Epoch, c.Batch, c.Live, c.Hash, c.NextSeq, c.LowSeq, uint64(c.NextQueue),
	} {
		dst = append(dst, byte(i+1))
		dst = appendUint(dst, v)
	}
	if secret != nil {
		dst = appendBin(append(dst, fieldSecret), secret)
	}
	return dst
}

// bears reports whether a control record carries the secret.
func bears(rec, secret []byte) bool {
	rest, ok := bytes.CutSuffix(rec, secret)
	return ok && len(secret) == secretLen && bytes.HasSuffix(rest, []byte{fieldSecret, formBin8, secretLen})
}

// controlOf reads the control record; that of an empty store is what a first
// batch starts from. The error wraps ErrDamaged.
func controlOf(txn *badger.Txn) (Control, error) {
	c := Control{Marks: firstMarks()}
	err := readKey(txn, controlKey, func(rec []byte) error { return decodeControl(rec, &c) })
	if err != nil {
		return c, fmt.Errorf("%w: cannot read the control record: %w", ErrDamaged, err)
	}
	return c, nil
}

// readKey calls fn with the value of a key, and not at all when it is not there.
func readKey(txn *badger.Txn, key string, fn func(rec []byte) error) (err error) {
	defer recoverBlock(&err)()
	item, err := txn.Get([]byte(key))
	if errors.Is(err, badger.ErrKeyNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return item.Value(fn)
}

func decodeControl(rec []byte, c *Control) error {
	*c = Control{}
	r := reader{b: rec}
	n, ok := r.fields()
	if !ok {
		return r.bad("no map of fields")
	}
	seen := uint64(0)
	for ; n > 0; n-- {
		field, ok := r.uint()
		if !ok {
			return r.bad("no field number")
		}
		if field == 0 || field > controlFields {
			if !r.skip(0) {
				return r.bad("field value cut short or of a wrong form")
			}
			continue
		}
		v, ok := r.uint()
		if !ok {
			return r.bad("a field of the control record is not a number")
		}
		seen |= 1 << field
		switch field {
		case fieldEpoch:
			c.Epoch = v
		case fieldBatch:
			c.Batch = v
		case fieldLive:
			c.Live = v
		case fieldHash:
			c.Hash = v
		case fieldNextSeq:
			c.NextSeq = v
		case fieldLowSeq:
			c.LowSeq = v
		case fieldNextQueue:
			c.NextQueue = uint32(v)
		}
	}
	if !r.end() {
		return r.bad("bytes after the last field")
	}
	if seen != 1<<(controlFields+1)-2 {
		return r.bad("a field of the control record is missing")
	}
	return nil
}
