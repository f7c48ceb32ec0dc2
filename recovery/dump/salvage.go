package dump

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// salvagePass has the first walk read the whole folder, also where only some queues are dumped. It
// widens the marks until they hold every packet that a store can have.
func (d *dumper) salvagePass(v *storage.Visitor, m *content.Marks) {
	if m.LowSeq >= m.NextSeq || m.LowSeq < SequenceMargin || m.NextSeq > math.MaxUint64-SequenceMargin {
		m.NextSeq, m.LowSeq = 1<<63, 1<<63-1 // as in an empty store
	}
	widenQueues := func(id uint32) {
		if id < math.MaxUint32 {
			m.NextQueue = max(m.NextQueue, id+1)
		}
	}
	widenQueues(0)
	v.Whole, v.Queue = true, func(q content.Queue) error {
		widenQueues(q.ID)
		return d.readQueue(q)
	}
	var p content.Packet
	v.Packet = func(id content.PacketID, _ *content.Meta, rec []byte, _ error) error {
		if rec == nil || content.DecodeRecord(rec, &p) != nil {
			return nil
		}
		widenQueues(id.Queue)
		widen(m, id.Seq)
		if id.Seq > SequenceMargin {
			m.LowSeq = min(m.LowSeq, id.Seq-1)
		}
		return nil
	}
}

// widen raises the mark of the next sequence above n, unless no store comes there.
func widen(m *content.Marks, n uint64) {
	if n < math.MaxUint64-SequenceMargin {
		m.NextSeq = max(m.NextSeq, n+1)
	}
}

// lostName is the name under which a queue is dumped that has none of its own: lost-queue-N, with
// dots behind it until no other queue has that name.
func (d *dumper) lostName(id uint32) []byte {
	name := fmt.Appendf(nil, "lost-queue-%d", id)
	for slices.ContainsFunc(d.queues, func(q *content.Queue) bool { return bytes.Equal(q.Name, name) }) {
		name = append(name, '.')
	}
	return name
}

// leaveOut notes what a salvage leaves out. In any other dump it is an error.
func (d *dumper) leaveOut(kind, key string, err error) error {
	if !d.Salvage {
		return fmt.Errorf("%w: %s: %w", storage.ErrDamaged, key, err)
	}
	d.report.Add(kind, key, "it is left out: %v", err)
	return nil
}

// wrong passes over, in a salvage, what ended a scan early, and notes how the folder differs from
// its control record.
func (d *dumper) wrong(err error) error {
	if !d.Salvage || !errors.Is(err, storage.ErrDamaged) && !errors.Is(err, storage.ErrLoss) {
		return err
	}
	d.report.Compare(&d.control, err)
	return nil
}
