package dump

import (
	"errors"
	"fmt"

	"github.com/holdfast-queue/holdfast/storage"
)

// salvagePass reads the whole folder before the first record is written, also where only some
// queues are dumped. It compares the packets with the control record and widens the marks until
// they hold every packet.
func (d *dumper) salvagePass(m *storage.Marks) error {
	repairMarks(m)
	for _, q := range d.queues {
		m.NextQueue = max(m.NextQueue, q.ID+1)
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
		if checkID(id) != nil {
			return nil
		}
		if !d.within(id) {
			if outside++; outside == 1 {
				firstOutside = id
			}
		}
		m.NextQueue = max(m.NextQueue, id.Queue+1)
		m.NextSeq = max(m.NextSeq, id.Seq+1)
		m.LowSeq = min(m.LowSeq, id.Seq-1)
		return nil
	})
	if err != nil && !errors.Is(err, storage.ErrDamaged) {
		return fmt.Errorf("read packets: %w", err)
	}
	if d.control.Epoch == 0 {
		return nil // there is no control record, which opening the folder has reported
	}
	var mismatch *storage.MismatchError
	if errors.As(d.control.Check(tally, unread), &mismatch) {
		f := mismatch.Finding()
		d.finding(f.Kind, f.Key, "%s", f.What)
	}
	if outside > 0 {
		d.finding(storage.FindingControl, "control record",
			"packet %v has a sequence that is not between those of the next packets at the two ends, %d and %d "+
				"(packets like this: %d); the dump has wider marks", firstOutside, d.control.LowSeq, d.control.NextSeq, outside)
	}
	return nil
}

// repairMarks replaces marks that no store has with those of an empty one.
func repairMarks(m *storage.Marks) {
	if m.LowSeq >= m.NextSeq || m.LowSeq < SequenceMargin || m.NextSeq > 1<<64-1-SequenceMargin {
		m.NextSeq, m.LowSeq = 1<<63, 1<<63-1
	}
	m.NextQueue = max(m.NextQueue, 1)
}

// within reports whether a packet's sequence is between the marks of the control record.
func (d *dumper) within(id storage.PacketID) bool {
	return d.control.LowSeq < id.Seq && id.Seq < d.control.NextSeq
}

// checkID says why no dump with this packet could be loaded, whatever the marks are.
func checkID(id storage.PacketID) error {
	const least, most = SequenceMargin + 1, 1<<64 - 2 - SequenceMargin
	switch {
	case !possibleQueue(id.Queue):
		return fmt.Errorf("%w: packet %v: no queue has the number %d", storage.ErrDamaged, id, id.Queue)
	case id.Seq < least || id.Seq > most:
		return fmt.Errorf("%w: packet %v: its sequence is out of range: no store comes below %d or above %d",
			storage.ErrDamaged, id, uint64(least), uint64(most))
	}
	return nil
}

func possibleQueue(id uint32) bool { return id > 0 && id < 1<<32-1 }

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
