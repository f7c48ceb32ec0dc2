package dump

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-queue/holdfast/storage"
)

// entryKind is the type of one record of a dump.
type entryKind uint8

const (
	entryUnknown entryKind = iota // of a later version
	entryHeader
	entryQueue
	entryPacket
	entryEnd
)

// entry is one record of a dump as it was read. Bytes alias the input or an arena beside it.
type entry struct {
	kind   entryKind
	at     int64  // line, or number of the record in a dump of msgpack
	name   []byte // of the queue
	id     storage.PacketID
	packet storage.Packet
	other  *otherEntry // of every kind but packets

	seen fieldSet
}

// otherEntry is what only the rare records have.
type otherEntry struct {
	header  header
	rest    []byte // fields of a queue definition that this version does not know
	restLen uint64
	end     trailer
	want    uint64 // what the hash of an end record must be
}

// fieldSet says which fields a record had.
type fieldSet uint32

const (
	hasType fieldSet = 1 << iota
	hasQueue
	hasID
	hasPriority
	hasSequence
	hasKey
	hasPayload
	hasExpires
	hasNotBefore
	hasTags
	hasState
	hasAttempts
	hasEnqueuedAt
	hasProducer
	hasVersion
	hasNextSeq
	hasLowSeq
	hasNextQueue
	hasUnknown
	hasUnknownFields
	hasPackets
	hasQueues
	hasHash
)

// fieldNames are in the order of the bits above.
func fieldNames() []string {
	return []string{
		"type", "queue", "id", "priority", "sequence", "key", "payload", "expires", "not_before", "tags", "state",
		"attempts", "enqueued_at", "producer", "version", "next_sequence", "low_sequence", "next_queue", "unknown",
		"unknown_fields", "packets", "queues", "hash",
	}
}

func (s fieldSet) String() string {
	var names []string
	for i, name := range fieldNames() {
		if s&(1<<i) != 0 {
			names = append(names, fmt.Sprintf("%q", name))
		}
	}
	return strings.Join(names, ", ")
}

// fieldsOf says which fields a kind of record must and may have.
func fieldsOf(k entryKind) (must, may fieldSet) {
	switch k {
	case entryHeader:
		must = hasType | hasVersion | hasNextSeq | hasLowSeq | hasNextQueue
		return must, must | hasPayload
	case entryQueue:
		must = hasType | hasID | hasQueue
		return must, must | hasUnknown | hasUnknownFields
	case entryPacket:
		must = hasType | hasQueue | hasPriority | hasSequence
		return must, must | hasID | hasKey | hasPayload | hasExpires | hasNotBefore | hasTags | hasState |
			hasAttempts | hasEnqueuedAt | hasProducer
	case entryEnd:
		must = hasType | hasPackets | hasQueues
		return must, must | hasHash
	}
	return 0, ^fieldSet(0)
}

// values reads the values of one record: numbers, bytes that may be written as text, and tags.
// The methods return false when a value is something else; problem then says what was expected.
type values interface {
	int() (int64, bool)
	uint(quoted bool) (uint64, bool)
	bytes() ([]byte, bool)
	tags(dst []storage.Tag, e Encoding) ([]storage.Tag, bool)
	isText() bool
	pass() bool
}

// entryReader makes entries of the fields that a format finds. One goroutine uses it at a time.
type entryReader struct {
	newer bool // the dump is of a later version: what is unknown is passed over
	*entry
	arena   []byte // decoded bytes; only appended to while entries refer to it
	ignored int64  // fields and records of a later version that were passed over
}

// field reads the value of one field. Its error says what is wrong with it.
func (r *entryReader) field(name []byte, v values) error {
	bit, encoding := fieldBit(name), Text
	if bit == 0 {
		if bit, encoding = encodedBit(name); !mayBeEncoded(bit) {
			bit = 0
		}
	}
	if bit == 0 {
		if !r.newer {
			return fmt.Errorf("field %q is not known in a dump of version %d", name, Version)
		}
		r.ignored++
		return wrong(v.pass(), "a value that can be passed over")
	}
	if r.seen&bit != 0 {
		return fmt.Errorf("field %q is there twice, or in two encodings", name)
	}
	r.seen |= bit
	if err := r.value(bit, encoding, v); err != nil {
		return fmt.Errorf("field %q: %w", name, err)
	}
	return nil
}

func wrong(ok bool, want string) error {
	if ok {
		return nil
	}
	return fmt.Errorf("expected %s", want)
}

const (
	wantNumber = "a whole number from 0 on"
	wantTime   = "a whole number of milliseconds"
)

func (r *entryReader) value(bit fieldSet, e Encoding, v values) (err error) {
	p, ok := &r.packet, false
	switch bit {
	case hasType:
		return r.setKind(v)
	case hasQueue:
		r.name, err = r.bytes(v, e)
	case hasID:
		if v.isText() { // of a packet: for people to read
			return wrong(v.pass(), "a string")
		}
		r.id.Queue, err = small(v)
		r.seen |= hasNumber
	case hasPriority:
		r.id.Priority, err = small(v)
	case hasSequence:
		r.id.Seq, ok = v.uint(true)
		return wrong(ok, "a whole number from 0 on, in JSON as a string")
	case hasKey:
		p.Key, err = r.bytes(v, e)
		if p.Key == nil {
			p.Key = []byte{}
		}
	case hasPayload:
		p.Payload, err = r.bytes(v, e)
	case hasExpires:
		p.Expiry, ok = v.int()
		return wrong(ok, wantTime)
	case hasNotBefore:
		p.NotBefore, ok = v.int()
		return wrong(ok, wantTime)
	case hasEnqueuedAt:
		p.EnqueuedAt, ok = v.int()
		return wrong(ok, wantTime)
	case hasTags:
		return r.setTags(v, e)
	case hasState:
		return checkState(v)
	case hasAttempts:
		p.Attempts, err = small(v)
	case hasProducer:
		b, err := r.bytes(v, e)
		p.Producer = string(b)
		return err
	default:
		return r.rare(bit, e, v)
	}
	return err
}

// hasNumber marks an id that is a number: that of a queue.
const hasNumber = hasHash << 1

// rare reads the fields of records other than packets.
func (r *entryReader) rare(bit fieldSet, e Encoding, v values) (err error) {
	if r.other == nil {
		r.other = &otherEntry{}
	}
	o, ok := r.other, true
	switch bit {
	case hasVersion:
		o.header.version, ok = v.uint(false)
	case hasNextSeq:
		o.header.marks.NextSeq, ok = v.uint(true)
	case hasLowSeq:
		o.header.marks.LowSeq, ok = v.uint(true)
	case hasNextQueue:
		o.header.marks.NextQueue, err = small(v)
	case hasUnknown:
		o.rest, err = r.bytes(v, e)
	case hasUnknownFields:
		o.restLen, ok = v.uint(false)
	case hasPackets:
		o.end.packets, ok = v.uint(false)
	case hasQueues:
		o.end.queues, ok = v.uint(false)
	case hasHash:
		b, there := v.bytes()
		var hash [8]byte
		n := 0
		if there && len(b) == 2*len(hash) {
			n, err = hex.Decode(hash[:], b)
		}
		for _, c := range hash {
			o.end.hash = o.end.hash<<8 | uint64(c)
		}
		o.end.hashed = true
		return wrong(n == len(hash) && err == nil, "16 hexadecimal digits")
	}
	if err != nil {
		return err
	}
	return wrong(ok, wantNumber)
}

// finish judges a record whose fields are all read.
func (r *entryReader) finish() error {
	if r.seen&hasType == 0 {
		return fmt.Errorf("field \"type\" is missing: it must be there in every record")
	}
	must, may := fieldsOf(r.kind)
	if r.kind == entryUnknown {
		r.ignored++
		return nil
	}
	if missing := must &^ r.seen; missing != 0 {
		return fmt.Errorf("a record of its type must have the field %v", missing)
	}
	if more := r.seen &^ may &^ hasNumber; more != 0 && !r.newer {
		return fmt.Errorf("a record of its type cannot have the field %v", more)
	}
	if isNumber := r.seen&hasNumber != 0; r.seen&hasID != 0 && isNumber != (r.kind == entryQueue) {
		return fmt.Errorf("field \"id\": expected a number in the record of a queue and a string in that of a packet")
	}
	if r.other == nil && r.kind != entryPacket {
		r.other = &otherEntry{}
	}
	return nil
}

func (r *entryReader) setKind(v values) error {
	b, ok := v.bytes()
	if !ok {
		return wrong(false, "a string")
	}
	switch string(b) {
	case "holdfast":
		r.kind = entryHeader
	case "queue":
		r.kind = entryQueue
	case "packet":
		r.kind = entryPacket
	case "end":
		r.kind = entryEnd
	default:
		if !r.newer {
			return fmt.Errorf("%q is not holdfast, queue, packet or end", b)
		}
	}
	return nil
}

func checkState(v values) error {
	b, ok := v.bytes()
	if ok {
		switch string(b) {
		case stateReady, stateDelayed, stateUnselectable:
			return nil
		}
	}
	return wrong(false, "ready, delayed or unselectable")
}

func (r *entryReader) setTags(v values, e Encoding) error {
	tags, ok := v.tags(nil, e)
	if !ok {
		return wrong(false, fmt.Sprintf("names and values of at most %d tags, each name once", storage.MaxTags))
	}
	slices.SortStableFunc(tags, func(a, b storage.Tag) int { return strings.Compare(a.Name, b.Name) })
	r.packet.Tags = tags
	return nil
}

// small reads a number of 32 bits.
func small(v values) (uint32, error) {
	n, ok := v.uint(false)
	return uint32(n), wrong(ok && n < 1<<32, "a whole number from 0 to 4294967295")
}

func (r *entryReader) bytes(v values, e Encoding) ([]byte, error) {
	b, ok := v.bytes()
	if !ok {
		return nil, wrong(false, "text")
	}
	if e == Text {
		return b, nil
	}
	from := len(r.arena)
	var err error
	if e == Base64 {
		r.arena, err = base64.StdEncoding.Strict().AppendDecode(r.arena, b)
	} else {
		r.arena, err = hex.AppendDecode(r.arena, b)
	}
	if err != nil {
		return nil, fmt.Errorf("not %s: %w", e, err)
	}
	return r.arena[from:len(r.arena):len(r.arena)], nil
}

// encodedBit knows a field by a name to which its encoding is added.
func encodedBit(name []byte) (fieldSet, Encoding) {
	if plain, ok := bytes.CutSuffix(name, []byte("_base64")); ok {
		return fieldBit(plain), Base64
	}
	if plain, ok := bytes.CutSuffix(name, []byte("_hex")); ok {
		return fieldBit(plain), Hex
	}
	return 0, Text
}

func mayBeEncoded(bit fieldSet) bool {
	return bit&(hasQueue|hasKey|hasPayload|hasProducer|hasTags|hasUnknown) != 0
}

// fieldBit looks the fields of packets up without a loop: they are most of a dump.
func fieldBit(name []byte) fieldSet {
	switch string(name) {
	case "type":
		return hasType
	case "queue":
		return hasQueue
	case "id":
		return hasID
	case "priority":
		return hasPriority
	case "sequence":
		return hasSequence
	case "key":
		return hasKey
	case "payload":
		return hasPayload
	case "expires":
		return hasExpires
	case "not_before":
		return hasNotBefore
	case "tags":
		return hasTags
	case "state":
		return hasState
	case "attempts":
		return hasAttempts
	case "enqueued_at":
		return hasEnqueuedAt
	case "producer":
		return hasProducer
	}
	for i, known := range fieldNames() {
		if string(name) == known {
			return 1 << i
		}
	}
	return 0
}
