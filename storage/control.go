package storage

import (
	"fmt"
	"math"

	"github.com/holdfast-queue/holdfast/storage/tables"
)

// Marks are the counters that must not run backwards over a restart.
type Marks struct {
	NextSeq   uint64 // sequence of the next packet at the newest end; goes up
	LowSeq    uint64 // sequence of the next packet at the oldest end; goes down
	NextQueue uint32 // identity of the next queue
	LastKey   uint64 // the last number or version given to a string, a hash or a field; goes up from 1
}

// firstMarks are those of an empty store: the ends start in the middle of the range, so that
// neither can be used up.
func firstMarks() Marks {
	return Marks{NextSeq: 1 << 63, LowSeq: 1<<63 - 1, NextQueue: 1}
}

// Control is the control record, which every batch rewrites. It tells how far the store is and what
// a scan must find.
type Control struct {
	Epoch uint64 // one more at each start that writes
	Batch uint64 // one more with each batch
	Tally
	Marks
}

const controlFields = 8 // that every record has: FORMAT.md

func appendControl(dst []byte, c *Control) []byte {
	return appendNumbers(dst, controlFields, false,
		FormatVersion, c.Epoch, c.Batch, c.Live, c.Hash, c.NextSeq, c.LowSeq, uint64(c.NextQueue),
		0, c.Keys, c.KeyHash, c.LastKey, c.Deliveries, c.DeliveryHash)
}

// follow makes the record that of a batch, if it is of an earlier one: the table that had it is
// missing, which was accepted. Numbers that were given meanwhile are not given again.
func (c *Control) follow(batch uint64) {
	const skipped = 1 << 40
	if c.Batch < batch {
		c.Batch = batch
		c.NextSeq, c.LowSeq, c.LastKey = c.NextSeq+skipped, c.LowSeq-skipped, c.LastKey+skipped
		c.NextQueue += min(1<<20, (math.MaxUint32-c.NextQueue)/2)
	}
}

// controlOf reads the control record; that of an empty store is what a first batch starts from. The
// error wraps ErrDamaged.
func controlOf(v *tables.View) (Control, error) {
	c := Control{Marks: firstMarks()}
	err := readKey(v, controlKey, func(rec []byte) error { return decodeControl(rec, &c) })
	return c, err
}

// readKey calls fn with the value of a key, and not at all when it is not there. The error wraps
// ErrDamaged.
func readKey(v *tables.View, key string, fn func(rec []byte) error) error {
	e, ok, err := v.Get([]byte(key))
	if err == nil && ok {
		err = fn(e.Value)
	}
	if err != nil {
		return fmt.Errorf("%w: cannot read %s: %w", ErrDamaged, describeKey([]byte(key)), err)
	}
	return nil
}

func decodeControl(rec []byte, c *Control) error {
	*c = Control{}
	var format, nextQueue uint64
	seen, err := decodeNumbers(rec,
		&format, &c.Epoch, &c.Batch, &c.Live, &c.Hash, &c.NextSeq, &c.LowSeq, &nextQueue,
		nil, &c.Keys, &c.KeyHash, &c.LastKey, &c.Deliveries, &c.DeliveryHash)
	c.NextQueue = uint32(nextQueue)
	const all = 1<<(controlFields+1) - 2
	if err == nil && seen&all != all {
		err = fmt.Errorf("%w: a field of the control record is missing", ErrRecord)
	}
	return err
}
