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

// salvagePass reads the whole folder before the first record is made, also where only some queues
// are dumped. It compares the packets with the control record and widens the marks until they hold
// every packet that a store can have.
func (d *dumper) salvagePass(m *content.Marks) error {
	if m.LowSeq >= m.NextSeq || m.LowSeq < SequenceMargin || m.NextSeq > math.MaxUint64-SequenceMargin {
		m.NextSeq, m.LowSeq = 1<<63, 1<<63-1 // those of an empty store
	}
	widenQueues := func(id uint32) {
		if id < math.MaxUint32 {
			m.NextQueue = max(m.NextQueue, id+1)
		}
	}
	widenQueues(0)
	for _, q := range d.queues {
		widenQueues(q.ID)
	}
	var p content.Packet
	var tally content.Tally
	unread := uint64(0)
	err := d.src.Records(storage.QueueRange{}, func(id content.PacketID, rec []byte, _ error) error {
		if rec == nil || content.DecodeRecord(rec, &p) != nil {
			unread++
			return nil
		}
		tally.Add(id, p.Expiry)
		widenQueues(id.Queue)
		widen(m, id.Seq)
		if id.Seq > SequenceMargin {
			m.LowSeq = min(m.LowSeq, id.Seq-1)
		}
		return nil
	})
	d.report.Compare(&d.control, d.control.Check(tally, unread))
	return d.tolerable("packets", err)
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

// tolerable is nil in place of an error that a salvage passes over.
func (d *dumper) tolerable(what string, err error) error {
	if err == nil || d.Salvage && errors.Is(err, storage.ErrDamaged) {
		return nil
	}
	return fmt.Errorf("read %s: %w", what, err)
}
