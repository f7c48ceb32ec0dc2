package dump

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/holdfast-queue/holdfast/recovery"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// The limits of what a dump may hold.
const (
	// maxText bounds the bytes of a key, a consumer's name, a reason and a progress: the length fields
	// of the pinpriq protocol have 16 bits, and what is longer could never be asked for.
	maxText = 0xffff
	// MaxRecord is the longest full record of a packet: what every store takes that is not on a
	// small disk. That of a string or a field is maxItem.
	MaxRecord = content.MaxRecord
	maxItem   = content.MaxItem
	// maxRest bounds the unknown fields of a queue definition.
	maxRest = 64 << 10
	// maxSetting bounds the times and the bounds in settings. It is far above the times that a server
	// takes: added to any time of day they are a time.
	maxSetting = 1 << 53
	// maxMeta is what every server takes.
	maxMeta = 4096
	// SequenceMargin is how near to the ends of their range sequences may come. They begin in the
	// middle, and no server lives long enough to hand out half of the rest.
	SequenceMargin = 1 << 62
	// recordOverhead is more than a record in the store has besides what a dump shows.
	recordOverhead = 128
)

// checker checks the records of a dump, in their order. What it accepts can be stored. It is the
// same for dumps that are written and dumps that are read; only settings and the counts of the end
// are checked by who reads.
type checker struct {
	begun, ended bool
	marks        content.Marks
	names        map[string]bool // of queues; true: it has packets or settings
	nameBytes    int
	queue        *Record          // a copy of the one that packets belong to; nil before the first
	last         content.PacketID // of queue
	numbers      recovery.Numbers
	shares       map[string]bool // of queue
	own          int             // of these that have more than a rest
	head         *Record         // a copy of the last string or hash; nil before the first
	keyNames     map[string]bool
	fields       map[string]bool // of head

	Counts // of what it accepted; who reads counts the bytes
}

// record checks the next record. It remembers what it accepts.
func (c *checker) record(r *Record) error {
	switch {
	case c.ended:
		return errors.New("there is more after the end record: is it two dumps in one file")
	case !c.begun && r.Type != TypeHeader:
		return errors.New("expected the header of a dump, a record of type holdfast")
	case c.begun && r.Type == TypeHeader:
		return errors.New("a second header: is it two dumps in one file")
	case c.emptyHash() && r.Type != TypeField:
		return fmt.Errorf("the hash %.100q has no fields: leave it out", c.head.Name)
	}
	if err := sizes(r); err != nil {
		return err
	}
	switch r.Type {
	case TypeHeader:
		return c.header(r)
	case TypeQueue:
		return c.definition(r)
	case TypePacket:
		return c.packet(r)
	case TypeWindow:
		return c.window(r)
	case TypeShare:
		return c.share(r)
	case TypeField:
		return c.field(r)
	case TypeEnd:
		c.ended = true
		return nil
	}
	return c.key(r)
}

// sizes checks the bytes of a record.
func sizes(r *Record) error {
	for _, f := range r.texts() {
		if len(*f.data) > f.max {
			return fmt.Errorf("field %q has %d bytes: at most %d", f.name, len(*f.data), f.max)
		}
	}
	if len(r.Tags)%2 != 0 || len(r.Tags) > 2*content.MaxTags {
		return fmt.Errorf("field \"tags\": expected names and values of at most %d tags", content.MaxTags)
	}
	n := recordOverhead + len(r.Key) + len(r.Payload) + len(r.Producer) + len(r.Meta) + len(r.Unique) + len(r.Name) + len(r.Value)
	for _, text := range r.Tags {
		n += len(text) + 5
	}
	if n > MaxRecord && r.Priority != nil { // of a packet, or a little less
		_, p, _ := r.Packet()
		n = len(content.AppendRecord(nil, p))
	}
	most := MaxRecord
	if r.Type != TypePacket {
		most = maxItem
	}
	if n > most {
		return fmt.Errorf("the %s has a record of %d bytes: at most %d", r.Type, n, most)
	}
	return nil
}

func (c *checker) header(r *Record) error {
	m := r.Marks()
	switch {
	case r.Payload != nil && string(r.Payload) != string(None):
		return errors.New("the payload field of a header can only be none")
	case r.Version == 0:
		return errors.New("the dump has version 0: versions begin at 1")
	case r.Version > Version:
		return errLater(r.Version)
	case m.LowSeq >= m.NextSeq:
		return fmt.Errorf("the header's low_sequence %d is not below its next_sequence %d", m.LowSeq, m.NextSeq)
	case m.LowSeq < SequenceMargin || m.NextSeq > math.MaxUint64-SequenceMargin:
		return fmt.Errorf("the header's low_sequence %d or next_sequence %d is out of range: no store comes below %d or above %d",
			m.LowSeq, m.NextSeq, uint64(SequenceMargin), uint64(math.MaxUint64-SequenceMargin))
	case r.NextQueue == 0 || r.NextQueue > math.MaxUint32:
		return fmt.Errorf("the header's next_queue is %d: expected 1 to %d", r.NextQueue, uint32(math.MaxUint32))
	}
	c.begun, c.marks = true, m
	c.names, c.keyNames, c.fields = make(map[string]bool), make(map[string]bool), make(map[string]bool)
	return nil
}

// between reports whether a store with these marks can have given a sequence.
func (c *checker) between(seq sequence) bool {
	return uint64(seq) > c.marks.LowSeq && uint64(seq) < c.marks.NextSeq
}

func (c *checker) definition(r *Record) error {
	name, id := content.FullName(uint8(r.Database), r.Queue), r.number()
	_, again := c.names[name]
	switch {
	case c.head != nil:
		return errors.New("a queue after strings and hashes: expected all queues before them")
	case r.Queue == nil:
		return errors.New(`a queue must have the field "queue"`)
	case id == 0 || id >= c.marks.NextQueue:
		return fmt.Errorf("queue %.100q has the id %v: expected 1 to %d, as the header's next_queue is %d", r.Queue, r.ID, c.marks.NextQueue-1, c.marks.NextQueue)
	case c.queue != nil && id <= c.queue.queue:
		return fmt.Errorf("queue %.100q has the id %d, which does not follow that of the queue before it, %d: queues stand in the order of their ids",
			r.Queue, id, c.queue.queue)
	case r.Database >= content.Databases:
		return fmt.Errorf("queue %.100q is in database %d: expected 0 to %d", r.Queue, r.Database, content.Databases-1)
	case again:
		return fmt.Errorf("two queues have the name %.100q", r.Queue)
	case c.Queues >= content.MaxQueues || c.nameBytes+len(r.Queue) > content.MaxNameBytes:
		return fmt.Errorf("there are more than %d queues, or their names have more than %d bytes, and no server holds more: dump some of them at a time",
			content.MaxQueues, content.MaxNameBytes)
	case !r.restIsSound():
		return fmt.Errorf("queue %.100q: unknown is not the %d fields of msgpack that unknown_fields says", r.Queue, r.UnknownFields)
	}
	r.queue = id
	c.queue, c.last, c.shares, c.own = new(*r), content.PacketID{}, make(map[string]bool), 0
	c.names[name] = r.settings != nil
	c.nameBytes += len(r.Queue)
	c.Queues++
	return nil
}

// restIsSound reports whether the store can read the unknown fields of a definition.
func (r *Record) restIsSound() bool {
	if len(r.Unknown) == 0 && r.UnknownFields == 0 {
		return true
	}
	q, read := r.Definition(), content.Queue{}
	return content.DecodeQueue(content.AppendQueue(nil, q), &read) == nil && read.Rest == q.Rest
}

// behindQueue checks that what belongs to a queue follows its record.
func (c *checker) behindQueue(r *Record) error {
	if c.queue == nil || c.head != nil {
		return fmt.Errorf("a %s of queue %.100q: expected the record of the queue before its packets, shares and windows", r.Type, r.Queue)
	}
	r.queue = c.queue.queue
	return nil
}

func (c *checker) packet(r *Record) error {
	if r.Queue == nil || r.Priority == nil {
		return errors.New(`a packet must have the fields "queue", "priority" and "sequence"`)
	}
	if err := c.behindQueue(r); err != nil {
		return err
	}
	id := content.PacketID{Queue: r.queue, Priority: uint32(*r.Priority), Seq: uint64(r.Sequence)}
	switch {
	case *r.Priority > math.MaxUint32 || r.Attempts > math.MaxUint32:
		return fmt.Errorf("the packet has the priority %d and %d attempts: expected 0 to %d", *r.Priority, r.Attempts, uint32(math.MaxUint32))
	case string(r.Queue) != string(c.queue.Queue):
		return fmt.Errorf("a packet of queue %.100q after the record of queue %.100q: the packets of a queue follow its record", r.Queue, c.queue.Queue)
	case !c.between(r.Sequence):
		return fmt.Errorf("the packet has the sequence %d: expected one between the header's low_sequence %d and next_sequence %d",
			r.Sequence, c.marks.LowSeq, c.marks.NextSeq)
	case c.last.Compare(id) >= 0:
		return fmt.Errorf("the packet of priority %d and sequence %d does not follow the one before it, of priority %d and sequence %d: "+
			"the packets of a queue stand in the order of priority, then sequence", id.Priority, id.Seq, c.last.Priority, c.last.Seq)
	}
	if err := c.tried(r); err != nil {
		return err
	}
	if err := c.once(r); err != nil {
		return err
	}
	c.numbers.Add(id.Seq, uint64(cmp.Or(r.Identity, r.Sequence)))
	if c.last.Queue == 0 { // the first one
		c.names[content.FullName(uint8(c.queue.Database), r.Queue)] = true
	}
	c.last = id
	c.Packets++
	return nil
}

// once checks that no packet before has the sequence or the identity of this one.
func (c *checker) once(r *Record) error {
	if identity := cmp.Or(r.Identity, r.Sequence); c.numbers.Taken(uint64(r.Sequence), uint64(identity)) {
		return fmt.Errorf("the packet has the sequence %d and the identity %d, and another packet has one of them: expected each once in a dump", r.Sequence, identity)
	}
	return nil
}

// parts checks what a packet may have besides its place.
func (c *checker) parts(r Record) error { return cmp.Or(sizes(&r), c.tried(&r), c.once(&r)) }

// tried checks what was tried with a packet.
func (c *checker) tried(r *Record) error {
	switch {
	case r.State != "" && !slices.Contains(recovery.StateNames[:], r.State):
		return fmt.Errorf("the packet has the state %q: expected ready, delayed, unselectable, claimed, dead or done", r.State)
	case r.Identity != 0 && !c.between(r.Identity) || uint64(r.Token) >= c.marks.NextSeq:
		return fmt.Errorf("the packet has the identity %d and the token %d: expected an identity between the marks %d and %d, and a token below the second",
			r.Identity, r.Token, c.marks.LowSeq, c.marks.NextSeq)
	case r.UntilClaim != "" && (r.UntilClaim != untilClaim || len(r.Unique) == 0):
		return fmt.Errorf("the packet has its unique id until %q: expected %s, beside an id", r.UntilClaim, untilClaim)
	case r.State == recovery.StateNames[content.Claimed] && (r.Token == 0 || r.Attempts == 0):
		return fmt.Errorf("the packet is claimed, with the token %d and after %d attempts: expected 1 or more, both", r.Token, r.Attempts)
	case r.Cancelled && r.State != recovery.StateNames[content.Claimed]:
		return errors.New("the packet is cancelled and not claimed: one that waits is deleted when it is cancelled")
	case r.State == recovery.StateNames[content.Done] && r.Expires == 0:
		return errors.New("the packet is done and never expires: one that was acknowledged is kept for a while")
	case r.Until < 0:
		return fmt.Errorf("the packet waits until %d: expected 0 or more milliseconds", r.Until)
	case r.Lease < 0 || r.Lease > content.MaxTime:
		return fmt.Errorf("the packet has the lease %d: expected 0 to %d milliseconds", r.Lease, int64(content.MaxTime))
	case r.OriginID >= uint64(c.marks.NextQueue), (r.OriginID == 0) != (r.Origin == nil):
		return fmt.Errorf("the packet has the origin %.100q and the origin_id %d: expected the name of a queue and its id, or neither", r.Origin, r.OriginID)
	case r.Progress == nil && r.ProgressNote != nil, r.Progress != nil && *r.Progress > math.MaxUint8:
		return errors.New("the packet's progress is not in percent")
	}
	return nil
}

// window checks a window of the last queue.
func (c *checker) window(r *Record) error {
	switch {
	case len(r.Name) == 0 || len(r.Name) > content.MaxUnique || r.Expires <= 0:
		return fmt.Errorf("a window must have a name of 1 to %d bytes and expires", content.MaxUnique)
	case !c.between(r.Identity):
		return fmt.Errorf("a window has the identity %d: expected one between the marks %d and %d", r.Identity, c.marks.LowSeq, c.marks.NextSeq)
	}
	return c.behindQueue(r)
}

// share checks what a share of the last queue has of its own.
func (c *checker) share(r *Record) error {
	if err := c.behindQueue(r); err != nil {
		return err
	}
	s, read, has := r.Share(), content.Share{ShareID: content.ShareID{Queue: r.queue}}, c.shares[string(r.Name)]
	_, badRate := content.ParseRate(r.Rate)
	switch {
	case r.Name == nil || len(r.Name) > content.MaxShareName || s.Empty():
		return fmt.Errorf("a share must have a name of at most %d bytes and something of its own, such as a weight from 2 on", content.MaxShareName)
	case r.Weight > content.MaxWeight:
		return fmt.Errorf("the share %.100q has the weight %d: at most %d", r.Name, r.Weight, content.MaxWeight)
	case r.MaxClaimed > math.MaxUint32:
		return fmt.Errorf("the share %.100q has max_claimed %d: at most %d", r.Name, r.MaxClaimed, uint32(math.MaxUint32))
	case badRate != nil:
		return fmt.Errorf("the share %.100q has the rate %.100q: %w", r.Name, r.Rate, badRate)
	case r.Until < 0:
		return fmt.Errorf("the share %.100q rests until %d: expected 0 or more milliseconds", r.Name, r.Until)
	case c.queue.settings == nil:
		return fmt.Errorf("the share %.100q is of a queue without settings: no server has that", r.Name)
	case has || c.own == content.MaxShares && !s.OnlyRests():
		return fmt.Errorf("the share %.100q is there twice, or is one of more than %d", r.Name, content.MaxShares)
	case content.DecodeShare(content.AppendShare(nil, s), &read) != nil || read.Rest != s.Rest:
		return fmt.Errorf("share %.100q: unknown is not the %d fields of msgpack that unknown_fields says", r.Name, r.UnknownFields)
	}
	if c.shares[string(r.Name)] = true; !s.OnlyRests() {
		c.own++
	}
	return nil
}

// key checks a string or a hash.
func (c *checker) key(r *Record) error {
	name := content.FullName(uint8(r.Database), r.Name)
	switch {
	case r.Name == nil:
		return fmt.Errorf("a %s must have the field \"name\"", r.Type)
	case len(r.Name) > content.MaxName:
		return fmt.Errorf("the name of a %s has %d bytes: at most %d", r.Type, len(r.Name), content.MaxName)
	case r.Database >= content.Databases:
		return fmt.Errorf("the %s %.100q is in database %d: expected 0 to %d", r.Type, r.Name, r.Database, content.Databases-1)
	case c.keyNames[name]:
		return fmt.Errorf("two strings or hashes have the name %.100q", r.Name)
	case c.names[name]:
		return fmt.Errorf("a %s and a queue with packets or settings have the name %.100q", r.Type, r.Name)
	}
	clear(c.fields)
	c.keyNames[name] = true
	c.head = new(*r)
	c.Keys++
	return nil
}

// field checks a field of the last hash.
func (c *checker) field(r *Record) error {
	switch {
	case c.head == nil || c.head.Type != TypeHash || r.Hash == nil || string(c.head.Name) != string(r.Hash):
		return fmt.Errorf("a field of the hash %.100q: the fields of a hash follow its record", r.Hash)
	case r.Name == nil:
		return errors.New(`a field must have the field "name"`)
	case c.fields[string(r.Name)]:
		return fmt.Errorf("two fields of the hash %.100q have the name %.100q", r.Hash, r.Name)
	}
	c.fields[string(r.Name)] = true
	c.Keys++
	return nil
}

// emptyHash reports whether the last record was a hash: a server makes none without a field.
func (c *checker) emptyHash() bool {
	return c.head != nil && c.head.Type == TypeHash && len(c.fields) == 0
}

// whole checks the counts and the hash of an end record; hash is over all bytes before it.
func (c *checker) whole(r *Record, hash string) error {
	count := func(n *uint64) uint64 {
		if n == nil {
			return 0
		}
		return *n
	}
	switch {
	case count(r.Packets) != uint64(c.Packets) || count(r.Queues) != uint64(c.Queues):
		return fmt.Errorf("the end record counts %d packets of %d queues, but there are %d of %d: some are missing or were added",
			count(r.Packets), count(r.Queues), c.Packets, c.Queues)
	case r.Keys != uint64(c.Keys):
		return fmt.Errorf("the end record counts %d strings, hashes and fields, but there are %d: some are missing or were added", r.Keys, c.Keys)
	case len(r.Hash) > 0 && !strings.EqualFold(string(r.Hash), hash):
		return fmt.Errorf("the end record has the hash %s, but that of what comes before it is %s: the dump was changed; "+
			"leave hash out if that was on purpose", r.Hash, hash)
	}
	return nil
}
