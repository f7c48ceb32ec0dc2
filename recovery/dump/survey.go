package dump

import (
	"errors"
	"fmt"

	"github.com/holdfast-queue/holdfast/storage"
)

// survey is what a salvage has to know of a whole folder before it writes the first record: whether
// the packets are those that the control record counts, and what has to be changed so that load
// takes the dump.
type survey struct {
	*dumper
	marks   *storage.Marks // of the dump, which the survey makes wide enough
	packet  storage.Packet
	tally   storage.Tally
	unread  uint64           // records that cannot be read
	outside uint64           // packets beyond the marks of the control record
	first   storage.PacketID // of these
}

// survey looks at all packets, also where only some queues are dumped: the control record does not
// count by queues. m are the marks of the control record, and become those of the dump.
func (d *dumper) survey(m *storage.Marks) error {
	s := &survey{dumper: d, marks: m}
	mendMarks(m)
	for _, q := range d.queues {
		m.NextQueue = max(m.NextQueue, q.ID+1)
	}
	if err := s.src.Records(storage.QueueRange{}, s.record); err != nil && !errors.Is(err, storage.ErrDamaged) {
		return fmt.Errorf("read packets: %w", err)
	}
	s.conclude()
	return nil
}

// mendMarks gives marks that no store has those of an empty one.
func mendMarks(m *storage.Marks) {
	if m.LowSeq >= m.NextSeq || m.LowSeq < sequenceMargin || m.NextSeq > 1<<64-1-sequenceMargin {
		m.NextSeq, m.LowSeq = 1<<63, 1<<63-1
	}
	m.NextQueue = max(m.NextQueue, 1)
}

func (s *survey) record(id storage.PacketID, rec []byte, _ error) error {
	if rec == nil || storage.DecodeRecord(rec, &s.packet) != nil {
		s.unread++
		return nil
	}
	s.tally.Add(id, s.packet.Expiry)
	if impossible(id) != nil {
		return nil
	}
	if c := s.src.Control(); id.Seq >= c.NextSeq || id.Seq <= c.LowSeq {
		if s.outside++; s.outside == 1 {
			s.first = id
		}
	}
	m := s.marks
	m.NextQueue = max(m.NextQueue, id.Queue+1)
	m.NextSeq = max(m.NextSeq, id.Seq+1)
	m.LowSeq = min(m.LowSeq, id.Seq-1)
	return nil
}

// conclude makes findings of what the scans met.
func (s *survey) conclude() {
	c := s.src.Control()
	if c.Epoch == 0 {
		return // nothing to hold it against, which the view has said
	}
	var mismatch *storage.MismatchError
	if errors.As(c.Check(s.tally, s.unread), &mismatch) {
		f := mismatch.Finding()
		s.finding(f.Kind, f.Key, "%s", f.What)
	}
	if s.outside > 0 {
		s.finding(storage.FindingControl, "control record",
			"packet %v has a sequence that is not between those of the next packets at the two ends, %d and %d (packets like this: %d); the dump has wider marks",
			s.first, c.LowSeq, c.NextSeq, s.outside)
	}
}

// impossible says why load would take no dump with a packet in it, whatever the marks are.
func impossible(id storage.PacketID) error {
	const least, most = sequenceMargin + 1, 1<<64 - 2 - sequenceMargin
	switch {
	case !possibleQueue(id.Queue):
		return fmt.Errorf("%w: packet %v: no queue has the number %d", storage.ErrDamaged, id, id.Queue)
	case id.Seq < least || id.Seq > most:
		return fmt.Errorf("%w: packet %v: its sequence is out of range: no store lives long enough to come below %d or above %d",
			storage.ErrDamaged, id, uint64(least), uint64(most))
	}
	return nil
}

func possibleQueue(id uint32) bool { return id > 0 && id < 1<<32-1 }
