package dump

import (
	"errors"
	"fmt"

	"github.com/holdfast-queue/holdfast/storage"
)

// The limits of what a dump may hold.
const (
	// The u16 length fields of the pinpriq document: what is longer could never be asked for.
	maxNameLen = 0xffff
	maxKeyLen  = 0xffff
	// maxRecord is the longest full record: what every store takes that is not on a small disk.
	maxRecord = 1<<20 - 2048
	// maxRest bounds the unknown fields of a queue definition.
	maxRest = 64 << 10

	// Sequences begin in the middle of their range and no server lives long enough to hand out
	// half of it: marks nearer to the ends than this are wrong.
	sequenceMargin = 1 << 62
)

// checker judges the records of a dump in their order: what a single record cannot tell. What it
// accepts can be stored.
type checker struct {
	header  header
	newer   bool
	queue   *storage.Queue // the one that packets belong to; nil before the first
	last    storage.PacketID
	any     bool // last is a packet of queue
	hasher  nameHasher
	names   map[nameHash]struct{}
	bytes   int // of names
	packets uint64
	queues  uint64
	ended   bool

	scratch []byte
	batch   storage.Batch
}

func newChecker(first *entry) (*checker, error) {
	c := &checker{header: first.other.header, hasher: newNameHasher(), names: make(map[nameHash]struct{})}
	h := &c.header
	c.newer = h.version > Version
	if len(first.packet.Payload) > 0 {
		if string(first.packet.Payload) != None.String() {
			return nil, errors.New("the payload field of a header can only be none")
		}
		h.payload = None
	}
	switch m := h.marks; {
	case h.version == 0:
		return nil, errors.New("the dump has version 0: versions begin at 1")
	case m.LowSeq >= m.NextSeq:
		return nil, fmt.Errorf("the header's low_sequence %d is not below its next_sequence %d", m.LowSeq, m.NextSeq)
	case m.LowSeq < sequenceMargin || m.NextSeq > 1<<64-1-sequenceMargin:
		return nil, fmt.Errorf("the header's low_sequence %d or next_sequence %d is out of range: no store lives long enough to come below %d or above %d",
			m.LowSeq, m.NextSeq, uint64(sequenceMargin), uint64(1<<64-1-sequenceMargin))
	case m.NextQueue == 0:
		return nil, errors.New("the header's next_queue is 0: the numbers of queues begin at 1")
	}
	return c, nil
}

// check judges the next record. Its error says what is wrong with it, not where it is.
func (c *checker) check(e *entry) error {
	if c.ended {
		return errors.New("there is more after the end record: is it two dumps in one file")
	}
	switch e.kind {
	case entryHeader:
		return errors.New("a second header: is it two dumps in one file")
	case entryQueue:
		return c.checkQueue(e)
	case entryPacket:
		return c.checkPacket(e)
	case entryEnd:
		return c.checkEnd(e)
	}
	return nil // of a later version
}

// finish is called at the end of the input.
func (c *checker) finish() error {
	if !c.ended {
		return fmt.Errorf("the dump is cut short: after %d packets of %d queues it has no end record", c.packets, c.queues)
	}
	return nil
}

func (c *checker) checkQueue(e *entry) error {
	id, name, hash := e.id.Queue, e.name, c.hasher.of(e.name)
	_, twice := c.names[hash]
	switch {
	case id == 0 || id >= c.header.marks.NextQueue:
		return fmt.Errorf("queue %q has the id %d: expected 1 to %d, as the header's next_queue is %d",
			name, id, c.header.marks.NextQueue-1, c.header.marks.NextQueue)
	case c.queue != nil && id <= c.queue.ID:
		return fmt.Errorf("queue %q has the id %d, which does not follow that of the queue before it, %d: queues stand in the order of their ids",
			name, id, c.queue.ID)
	case len(name) > maxNameLen:
		return fmt.Errorf("a queue's name has %d bytes: at most %d", len(name), maxNameLen)
	case twice:
		return fmt.Errorf("two queues have the name %q", name)
	case c.queues >= storage.MaxQueues || c.bytes+len(name) > storage.MaxNameBytes:
		return fmt.Errorf("there are more than %d queues, or their names have more than %d bytes, and no server holds more: dump some of them at a time",
			storage.MaxQueues, storage.MaxNameBytes)
	}
	q := &storage.Queue{ID: id, Name: append([]byte{}, name...), Rest: append([]byte(nil), e.other.rest...), RestFields: int(min(e.other.restLen, maxRest))}
	if err := c.checkRest(q, e); err != nil {
		return err
	}
	c.names[hash] = struct{}{}
	c.bytes += len(name)
	c.queue, c.any = q, false
	c.queues++
	return nil
}

// checkRest makes sure that the store can read what it does not know.
func (c *checker) checkRest(q *storage.Queue, e *entry) error {
	if len(q.Rest) > maxRest {
		return fmt.Errorf("queue %q has %d bytes of unknown fields: at most %d", q.Name, len(q.Rest), maxRest)
	}
	if len(q.Rest) == 0 && e.other.restLen == 0 {
		return nil
	}
	c.batch.Reset()
	c.batch.PutQueue(*q)
	ok := false
	c.batch.Each(func(op storage.Op) {
		ok = op.Queue.RestFields == q.RestFields && string(op.Queue.Rest) == string(q.Rest) && uint64(q.RestFields) == e.other.restLen
	})
	if !ok {
		return fmt.Errorf("queue %q: unknown is not the %d fields of msgpack that unknown_fields says", q.Name, e.other.restLen)
	}
	return nil
}

func (c *checker) checkPacket(e *entry) error {
	if c.queue == nil || string(e.name) != string(c.queue.Name) {
		if c.queue == nil {
			return fmt.Errorf("a packet of queue %q: expected the record of the queue before its packets", e.name)
		}
		return fmt.Errorf("a packet of queue %q after the record of queue %q: the packets of a queue follow its record", e.name, c.queue.Name)
	}
	e.id.Queue = c.queue.ID
	m, id := &c.header.marks, e.id
	switch {
	case id.Seq <= m.LowSeq || id.Seq >= m.NextSeq:
		return fmt.Errorf("the packet has the sequence %d: expected one between the header's low_sequence %d and next_sequence %d",
			id.Seq, m.LowSeq, m.NextSeq)
	case c.any && c.last.Compare(id) >= 0:
		return fmt.Errorf("the packet of priority %d and sequence %d does not follow the one before it, of priority %d and sequence %d: "+
			"the packets of a queue stand in the order of priority, then sequence", id.Priority, id.Seq, c.last.Priority, c.last.Seq)
	case len(e.packet.Key) > maxKeyLen:
		return fmt.Errorf("the packet's key has %d bytes: at most %d", len(e.packet.Key), maxKeyLen)
	}
	if err := c.checkSize(&e.packet); err != nil {
		return err
	}
	c.last, c.any = id, true
	c.packets++
	return nil
}

// checkSize encodes only records whose length an estimate cannot tell to be small.
func (c *checker) checkSize(p *storage.Packet) error {
	n := recordBound(p)
	if n > maxRecord && n <= 2*maxRecord {
		c.scratch = storage.AppendRecord(c.scratch[:0], p)
		n = len(c.scratch)
	}
	if n > maxRecord {
		return fmt.Errorf("the packet has a record of %d bytes: at most %d", n, maxRecord)
	}
	return nil
}

// recordBound is at least the length of a packet's full record.
func recordBound(p *storage.Packet) int {
	const overhead, tagOverhead = 128, 10
	n := overhead + len(p.Key) + len(p.Payload) + len(p.Producer)
	for i := range p.Tags {
		n += tagOverhead + len(p.Tags[i].Name) + len(p.Tags[i].Value)
	}
	return n
}

func (c *checker) checkEnd(e *entry) error {
	end := &e.other.end
	switch {
	case end.packets != c.packets || end.queues != c.queues:
		return fmt.Errorf("the end record counts %d packets of %d queues, but there are %d of %d: some are missing or were added",
			end.packets, end.queues, c.packets, c.queues)
	case end.hashed && end.hash != e.other.want:
		return fmt.Errorf("the end record has the hash %016x, but that of what comes before it is %016x: the dump was changed; "+
			"leave hash out if that was on purpose", end.hash, e.other.want)
	}
	c.ended = true
	return nil
}
