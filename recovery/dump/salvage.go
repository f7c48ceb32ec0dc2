package dump

import (
	"errors"
	"fmt"
	"math"

	"github.com/holdfast-queue/holdfast/storage"
)

// salvagePass reads the whole folder before the first record is made, also where only some queues
// are dumped. It compares the packets with the control record and widens the marks until they hold
// every packet that a store can have.
func (d *dumper) salvagePass(m *storage.Marks) error {
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
	var p storage.Packet
	var tally storage.Tally
	var unread, outside uint64
	var firstOutside storage.PacketID
	err := d.src.Records(storage.QueueRange{}, func(id storage.PacketID, rec []byte, _ error) error {
		if rec == nil || storage.DecodeRecord(rec, &p) != nil {
			unread++
			return nil
		}
		tally.Add(id, p.Expiry)
		if id.Seq <= d.control.LowSeq || id.Seq >= d.control.NextSeq {
			if outside++; outside == 1 {
				firstOutside = id
			}
		}
		widenQueues(id.Queue)
		widen(m, id.Seq)
		if id.Seq > SequenceMargin {
			m.LowSeq = min(m.LowSeq, id.Seq-1)
		}
		return nil
	})
	if err != nil && !errors.Is(err, storage.ErrDamaged) {
		return fmt.Errorf("read packets: %w", err)
	}
	if d.control.Epoch == 0 {
		return nil // there is no control record, which opening the folder has reported
	}
	d.mismatch(d.control.Check(tally, unread))
	if outside > 0 {
		d.finding(storage.FindingControl, "control record",
			"packet %v has a sequence that is not between those of the next packets at the two ends, %d and %d "+
				"(packets like this: %d); the dump has wider marks", firstOutside, d.control.LowSeq, d.control.NextSeq, outside)
	}
	return nil
}

// widen raises the mark of the next sequence above n, unless no store comes there.
func widen(m *storage.Marks, n uint64) {
	if n < math.MaxUint64-SequenceMargin {
		m.NextSeq = max(m.NextSeq, n+1)
	}
}

// lostName is the name under which a queue is dumped that has none of its own: lost-queue-N, with
// dots behind it until no other queue has that name.
func (d *dumper) lostName(id uint32) []byte {
	if d.names == nil {
		d.names = make(map[string]bool)
		for _, q := range d.queues {
			d.names[string(q.Name)] = true
		}
	}
	name := fmt.Sprintf("lost-queue-%d", id)
	for d.names[name] {
		name += "."
	}
	d.names[name] = true
	return []byte(name)
}
