package dump

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/holdfast-queue/holdfast/storage"
)

// The limits of what a dump may hold.
const (
	// The length fields of the pinpriq protocol have 16 bits: what is longer could never be asked for.
	maxKeyLen = 0xffff
	// MaxRecord is the longest full record of a packet: what every store takes that is not on a
	// small disk.
	MaxRecord = storage.MaxRecord
	// maxRest bounds the unknown fields of a queue definition.
	maxRest = 64 << 10
	// maxSetting bounds the times and the bounds in settings. It is far above the times that a server
	// takes: added to any time of day they are a time.
	maxSetting = 1 << 53
	// SequenceMargin is how near to the ends of their range sequences may come. They begin in the
	// middle, and no server lives long enough to hand out half of the rest.
	SequenceMargin = 1 << 62
)

var errAfterEnd = errors.New("there is more after the end record: is it two dumps in one file")

// checker checks the records of a dump, in their order. What it accepts can be stored.
type checker struct {
	marks    storage.Marks
	payloads bool
	queue    *storage.Queue // the one that packets belong to; nil before the first
	last     storage.PacketID
	names    map[string]bool // of queues; true: it has packets or settings
	bytes    int             // of names
	packets  uint64
	queues   uint64
	keys     // of checkkeys.go
	ended    bool

	packet   storage.Packet // of the last record
	delivery Delivery       // as well
	scratch  []byte
	batch    storage.Batch
}

func newChecker(h *headerRecord) (*checker, error) {
	m := storage.Marks{NextSeq: uint64(h.NextSequence), LowSeq: uint64(h.LowSequence), NextQueue: uint32(h.NextQueue)}
	switch {
	case h.Payload != "" && h.Payload != string(None):
		return nil, errors.New("the payload field of a header can only be none")
	case h.Version == 0:
		return nil, errors.New("the dump has version 0: versions begin at 1")
	case m.LowSeq >= m.NextSeq:
		return nil, fmt.Errorf("the header's low_sequence %d is not below its next_sequence %d", m.LowSeq, m.NextSeq)
	case m.LowSeq < SequenceMargin || m.NextSeq > math.MaxUint64-SequenceMargin:
		return nil, fmt.Errorf("the header's low_sequence %d or next_sequence %d is out of range: no store comes below %d or above %d",
			m.LowSeq, m.NextSeq, uint64(SequenceMargin), uint64(math.MaxUint64-SequenceMargin))
	case h.NextQueue == 0 || h.NextQueue > math.MaxUint32:
		return nil, fmt.Errorf("the header's next_queue is %d: expected 1 to %d", h.NextQueue, uint32(math.MaxUint32))
	}
	return &checker{marks: m, payloads: h.Payload == "", names: make(map[string]bool)}, nil
}

// finish is called at the end of the input.
func (c *checker) finish() error {
	if !c.ended {
		return fmt.Errorf("the dump is cut short: after %d packets of %d queues it has no end record", c.packets, c.queues)
	}
	return nil
}

// queueRecord checks the definition of a queue and makes it the one that packets belong to.
func (c *checker) queueRecord(r *queueRecord) (*storage.Queue, error) {
	name := storage.FullName(uint8(r.Database), r.Queue)
	_, again := c.names[name]
	switch {
	case c.ended:
		return nil, errAfterEnd
	case c.head != nil:
		return nil, errors.New("a queue after strings and hashes: expected all queues before them")
	case r.Queue == nil:
		return nil, errors.New(`a queue must have the field "queue"`)
	case r.ID == 0 || r.ID >= uint64(c.marks.NextQueue):
		return nil, fmt.Errorf("queue %q has the id %d: expected 1 to %d, as the header's next_queue is %d",
			r.Queue, r.ID, c.marks.NextQueue-1, c.marks.NextQueue)
	case c.queue != nil && r.ID <= uint64(c.queue.ID):
		return nil, fmt.Errorf("queue %q has the id %d, which does not follow that of the queue before it, %d: queues stand in the order of their ids",
			r.Queue, r.ID, c.queue.ID)
	case len(r.Queue) > storage.MaxName:
		return nil, fmt.Errorf("a queue's name has %d bytes: at most %d", len(r.Queue), storage.MaxName)
	case r.Database >= storage.Databases:
		return nil, fmt.Errorf("queue %q is in database %d: expected 0 to %d", r.Queue, r.Database, storage.Databases-1)
	case again:
		return nil, fmt.Errorf("two queues have the name %q", r.Queue)
	case c.queues >= storage.MaxQueues || c.bytes+len(r.Queue) > storage.MaxNameBytes:
		return nil, fmt.Errorf("there are more than %d queues, or their names have more than %d bytes, and no server holds more: dump some of them at a time",
			storage.MaxQueues, storage.MaxNameBytes)
	}
	q := &storage.Queue{
		ID: uint32(r.ID), Database: uint8(r.Database), Name: r.Queue, Expiry: int64(r.Expires),
		Rest: r.Unknown, RestFields: int(min(r.UnknownFields, maxRest)),
	}
	if r.Settings != nil {
		q.Settings = &r.Settings.Settings
	}
	if r.Counters != nil {
		q.Counters = *r.Counters
	}
	if err := c.checkRest(q, r.UnknownFields); err != nil {
		return nil, err
	}
	c.names[name] = q.Settings != nil
	c.bytes += len(q.Name)
	c.queue, c.last = q, storage.PacketID{}
	c.queues++
	return q, nil
}

// checkRest makes sure that the store can read the unknown fields of a definition.
func (c *checker) checkRest(q *storage.Queue, fields uint64) error {
	if len(q.Rest) > maxRest {
		return fmt.Errorf("queue %q has %d bytes of unknown fields: at most %d", q.Name, len(q.Rest), maxRest)
	}
	if len(q.Rest) == 0 && fields == 0 {
		return nil
	}
	c.batch.Reset()
	c.batch.PutQueue(*q)
	ok := false
	c.batch.Each(func(op storage.Op) {
		ok = op.Queue.RestFields == q.RestFields && string(op.Queue.Rest) == string(q.Rest) && uint64(q.RestFields) == fields
	})
	if !ok {
		return fmt.Errorf("queue %q: unknown is not the %d fields of msgpack that unknown_fields says", q.Name, fields)
	}
	return nil
}

// packetRecord checks a packet. What it returns is valid until the next call; the delivery state is
// nil if nothing was tried with the packet.
func (c *checker) packetRecord(r *packetRecord) (storage.PacketID, *storage.Packet, *Delivery, error) {
	id, err := c.placeOf(r)
	if err != nil {
		return id, nil, nil, err
	}
	tags, err := tagsOf(r.Tags)
	if err != nil {
		return id, nil, nil, err
	}
	c.packet = storage.Packet{
		Key: r.Key, Payload: r.Payload, Expiry: int64(r.Expires), NotBefore: int64(r.NotBefore), Tags: tags,
		Attempts: uint32(r.Attempts), EnqueuedAt: int64(r.EnqueuedAt), Producer: string(r.Producer), Identity: uint64(r.Identity), Unique: r.Unique,
	}
	d, err := c.deliveryRecord(r, &c.packet, id.Seq)
	if err != nil {
		return id, nil, nil, err
	}
	if err := c.checkSize(); err != nil {
		return id, nil, nil, err
	}
	if c.last == (storage.PacketID{}) {
		c.names[storage.FullName(c.queue.Database, r.Queue)] = true
	}
	c.last = id
	c.packets++
	return id, &c.packet, d, nil
}

// placeOf checks that a packet stands where it belongs, and returns its place.
func (c *checker) placeOf(r *packetRecord) (id storage.PacketID, err error) {
	switch {
	case c.ended:
		return id, errAfterEnd
	case r.Queue == nil || r.Priority == nil:
		return id, errors.New(`a packet must have the fields "queue", "priority" and "sequence"`)
	case *r.Priority > math.MaxUint32 || r.Attempts > math.MaxUint32:
		return id, fmt.Errorf("the packet has the priority %d and %d attempts: expected 0 to %d",
			*r.Priority, r.Attempts, uint32(math.MaxUint32))
	case c.queue == nil || c.head != nil:
		return id, fmt.Errorf("a packet of queue %q: expected the record of the queue before its packets", r.Queue)
	case string(r.Queue) != string(c.queue.Name):
		return id, fmt.Errorf("a packet of queue %q after the record of queue %q: the packets of a queue follow its record", r.Queue, c.queue.Name)
	}
	id = storage.PacketID{Queue: c.queue.ID, Priority: uint32(*r.Priority), Seq: uint64(r.Sequence)}
	switch {
	case id.Seq <= c.marks.LowSeq || id.Seq >= c.marks.NextSeq:
		return id, fmt.Errorf("the packet has the sequence %d: expected one between the header's low_sequence %d and next_sequence %d",
			id.Seq, c.marks.LowSeq, c.marks.NextSeq)
	case c.last.Compare(id) >= 0:
		return id, fmt.Errorf("the packet of priority %d and sequence %d does not follow the one before it, of priority %d and sequence %d: "+
			"the packets of a queue stand in the order of priority, then sequence", id.Priority, id.Seq, c.last.Priority, c.last.Seq)
	case len(r.Key) > maxKeyLen:
		return id, fmt.Errorf("the packet's key has %d bytes: at most %d", len(r.Key), maxKeyLen)
	case len(r.Unique) > storage.MaxUnique:
		return id, fmt.Errorf("the packet's unique id has %d bytes: at most %d", len(r.Unique), storage.MaxUnique)
	}
	return id, nil
}

// tagsOf makes tags of names and values, sorted by name.
func tagsOf(pairs [][]byte) ([]storage.Tag, error) {
	if len(pairs)%2 != 0 || len(pairs) > 2*storage.MaxTags {
		return nil, fmt.Errorf("field \"tags\": expected names and values of at most %d tags", storage.MaxTags)
	}
	var tags []storage.Tag
	for ; len(pairs) > 0; pairs = pairs[2:] {
		tags = append(tags, storage.Tag{Name: string(pairs[0]), Value: string(pairs[1])})
	}
	slices.SortStableFunc(tags, func(a, b storage.Tag) int { return cmp.Compare(a.Name, b.Name) })
	return tags, nil
}

// checkSize encodes the packet only if an estimate cannot tell that its record is short.
func (c *checker) checkSize() error {
	n := RecordBound(&c.packet)
	if n > MaxRecord {
		c.scratch = storage.AppendRecord(c.scratch[:0], &c.packet)
		n = len(c.scratch)
	}
	if n > MaxRecord {
		return fmt.Errorf("the packet has a record of %d bytes: at most %d", n, MaxRecord)
	}
	return nil
}

// RecordBound is at least the length of a packet's full record.
func RecordBound(p *storage.Packet) int {
	const overhead = 128
	return overhead + len(p.Key) + len(p.Payload) + storage.ExtraBytes(p.Tags, p.Producer, p.Unique)
}

// endRecord checks the last record; hash is that of all bytes before it.
func (c *checker) endRecord(r *endRecord, hash uint64) error {
	switch want := hashDigits(hash); {
	case c.ended:
		return errAfterEnd
	case r.Packets != c.packets || r.Queues != c.queues:
		return fmt.Errorf("the end record counts %d packets of %d queues, but there are %d of %d: some are missing or were added",
			r.Packets, r.Queues, c.packets, c.queues)
	case r.Keys != c.keyCount:
		return fmt.Errorf("the end record counts %d strings, hashes and fields, but there are %d: some are missing or were added", r.Keys, c.keyCount)
	case c.emptyHash():
		return c.hashWithoutFields()
	case r.Hash != "" && !strings.EqualFold(r.Hash, want):
		return fmt.Errorf("the end record has the hash %s, but that of what comes before it is %s: the dump was changed; "+
			"leave hash out if that was on purpose", r.Hash, want)
	}
	c.ended = true
	return nil
}
