package content

import (
	"fmt"
	"math"
)

// FormatVersion is the version of the data folders that this program writes, and the newest it
// reads; each control record has it. FORMAT.md says what may change without a new one.
const FormatVersion = 7

// FormatBefore is the oldest version that who only looks at a folder reads.
const FormatBefore = 6

// Marks are the counters that must not run backwards over a restart.
type Marks struct {
	NextSeq   uint64 // sequence of the next packet at the newest end; goes up
	LowSeq    uint64 // sequence of the next packet at the oldest end; goes down
	NextQueue uint32 // identity of the next queue
	LastKey   uint64 // the last number or version given to a string, a hash or a field; goes up from 1
}

// FirstSeq is the first sequence at the newest end: the middle of the range, so that neither end
// can be used up.
const FirstSeq uint64 = 1 << 63

// FirstMarks returns the marks of an empty store.
func FirstMarks() Marks {
	return Marks{NextSeq: FirstSeq, LowSeq: FirstSeq - 1, NextQueue: 1}
}

// Control is the control record, which every batch rewrites. It tells how far the store is and what
// a scan must find.
type Control struct {
	Epoch uint64 // one more at each start that writes
	Batch uint64 // one more with each batch
	Time  int64  // of the batch, in Unix milliseconds; it runs back at a start only
	Tally
	Marks
	Hides uint64 // bytes of tables that the batch hides, about, for who follows; 0 on a single machine
}

const controlFields = 8 // that every record has: FORMAT.md

// AppendControl appends the record of c to dst.
func AppendControl(dst []byte, c *Control) []byte {
	return appendNumbers(dst, controlFields,
		FormatVersion, c.Epoch, c.Batch, c.Live, c.Hash, c.NextSeq, c.LowSeq, uint64(c.NextQueue),
		uint64(c.Time), c.Keys, c.KeyHash, c.LastKey, c.Deliveries, c.DeliveryHash, c.Hides)
}

// Follow makes an earlier control record follow a batch whose own is lost: the table that had it is
// missing, and that was accepted. Numbers that were given meanwhile are not given again.
func (c *Control) Follow(batch uint64) (late bool) {
	const skipped = 1 << 40
	if c.Batch >= batch {
		return false
	}
	c.Batch = batch
	c.NextSeq, c.LowSeq, c.LastKey = c.NextSeq+skipped, c.LowSeq-skipped, c.LastKey+skipped
	c.NextQueue += min(1<<20, (math.MaxUint32-c.NextQueue)/2)
	return true
}

// DecodeControl reads a record into c. The error wraps ErrRecord, also where another node of a cell
// wrote the record with a later version.
func DecodeControl(rec []byte, c *Control) error {
	*c = Control{}
	var format, nextQueue, at uint64
	seen, err := decodeNumbers(rec,
		&format, &c.Epoch, &c.Batch, &c.Live, &c.Hash, &c.NextSeq, &c.LowSeq, &nextQueue,
		&at, &c.Keys, &c.KeyHash, &c.LastKey, &c.Deliveries, &c.DeliveryHash, &c.Hides)
	c.NextQueue, c.Time = uint32(nextQueue), int64(at)
	const all = 1<<(controlFields+1) - 2
	if err == nil && seen&all != all {
		err = fmt.Errorf("%w: a field of the control record is missing", ErrRecord)
	}
	if err == nil && format > FormatVersion {
		err = fmt.Errorf("%w: it has format %d, and this program knows up to %d: install the newer version", ErrRecord, format, FormatVersion)
	}
	return err
}
