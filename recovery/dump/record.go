package dump

import (
	"fmt"
	"math"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"

	"github.com/holdfast-queue/holdfast/storage"
)

// The records of a dump, with the fields of DUMP.md in the order in which they are written. The
// msgpack format is these structs as the library writes them. JSON has some fields in two
// encodings, see decode.go. Numbers are as wide as the msgpack library reads them, which would
// cut others off in silence; the checker says which are in range.

// headerRecord begins a dump.
type headerRecord struct {
	Type         string   `json:"type" msgpack:"type"`
	Version      uint64   `json:"version" msgpack:"version"`
	NextSequence sequence `json:"next_sequence" msgpack:"next_sequence"`
	LowSequence  sequence `json:"low_sequence" msgpack:"low_sequence"`
	NextQueue    uint64   `json:"next_queue" msgpack:"next_queue"`
	Payload      string   `json:"payload" msgpack:"payload,omitempty"`
}

// queueRecord is a queue's definition.
type queueRecord struct {
	Type          string            `json:"type" msgpack:"type"`
	ID            uint64            `json:"id" msgpack:"id"`
	Queue         []byte            `json:"-" msgpack:"queue"`
	Database      uint64            `json:"database" msgpack:"database,omitempty"`
	Expires       millis            `json:"expires" msgpack:"expires,omitempty"`
	Settings      *settingsRecord   `json:"settings" msgpack:"settings,omitempty"`
	Counters      *storage.Counters `json:"counters" msgpack:"counters,omitempty"`
	UnknownFields uint64            `json:"unknown_fields" msgpack:"unknown_fields,omitempty"`
	Unknown       []byte            `json:"-" msgpack:"unknown,omitempty"`
}

// packetRecord is one packet.
type packetRecord struct {
	Type       string        `json:"type" msgpack:"type"`
	Queue      []byte        `json:"-" msgpack:"queue"`
	ID         string        `json:"id" msgpack:"id"`
	Priority   *uint64       `json:"priority" msgpack:"priority"`
	Sequence   sequence      `json:"sequence" msgpack:"sequence"`
	Identity   sequence      `json:"identity" msgpack:"identity,omitempty"` // 0: the sequence
	Key        optionalBytes `json:"-" msgpack:"key,omitempty"`
	Payload    []byte        `json:"-" msgpack:"payload,omitempty"`
	Expires    millis        `json:"expires" msgpack:"expires,omitempty"`
	NotBefore  millis        `json:"not_before" msgpack:"not_before,omitempty"`
	Tags       [][]byte      `json:"tags_base64" msgpack:"tags,omitempty"` // name, value, name, value, …
	State      string        `json:"state" msgpack:"state"`
	Attempts   uint64        `json:"attempts" msgpack:"attempts,omitempty"`
	EnqueuedAt millis        `json:"enqueued_at" msgpack:"enqueued_at,omitempty"`
	Producer   []byte        `json:"-" msgpack:"producer,omitempty"`
	Unique     []byte        `json:"-" msgpack:"unique,omitempty"`
	deliveryRecord
}

// deliveryRecord is the part of a packetRecord that tells what was tried with the packet.
type deliveryRecord struct {
	Until        millis        `json:"until" msgpack:"until,omitempty"`
	Token        sequence      `json:"token" msgpack:"token,omitempty"`
	FirstClaim   millis        `json:"first_claim" msgpack:"first_claim,omitempty"`
	LastClaim    millis        `json:"last_claim" msgpack:"last_claim,omitempty"`
	Consumer     []byte        `json:"-" msgpack:"consumer,omitempty"`
	Origin       optionalBytes `json:"-" msgpack:"origin,omitempty"` // a queue may have an empty name
	OriginID     uint64        `json:"origin_id" msgpack:"origin_id,omitempty"`
	Reason       []byte        `json:"-" msgpack:"reason,omitempty"`
	Progress     *uint64       `json:"progress" msgpack:"progress,omitempty"`
	ProgressText []byte        `json:"-" msgpack:"progress_text,omitempty"`
}

// keyRecord is a string, a hash, a field of the hash before it, or a window of the queue before it:
// its name is the id of the unique push.
type keyRecord struct {
	Type     string        `json:"type" msgpack:"type"`
	Hash     optionalBytes `json:"-" msgpack:"hash,omitempty"`            // of a field
	Database uint64        `json:"database" msgpack:"database,omitempty"` // not of a field
	Name     []byte        `json:"-" msgpack:"name"`
	Identity sequence      `json:"identity" msgpack:"identity,omitempty"` // of the packet of a window
	Value    []byte        `json:"-" msgpack:"value,omitempty"`
	Expires  millis        `json:"expires" msgpack:"expires,omitempty"`
}

// endRecord ends a dump.
type endRecord struct {
	Type    string `json:"type" msgpack:"type"`
	Packets uint64 `json:"packets" msgpack:"packets"`
	Queues  uint64 `json:"queues" msgpack:"queues"`
	Keys    uint64 `json:"keys" msgpack:"keys,omitempty"` // strings, hashes and fields
	Hash    string `json:"hash" msgpack:"hash"`           // xxhash64 of all bytes before the record, 16 digits
}

// The types of records, the values of their first field.
const (
	typeHeader = "holdfast"
	typeQueue  = "queue"
	typePacket = "packet"
	typeWindow = "window"
	typeString = "string"
	typeHash   = "hash"
	typeField  = "field"
	typeEnd    = "end"
)

// newRecord makes an empty record of a type, nil if there is no such type.
func newRecord(recordType string) any {
	switch recordType {
	case typeHeader:
		return &headerRecord{}
	case typeQueue:
		return &queueRecord{}
	case typePacket:
		return &packetRecord{}
	case typeString, typeHash, typeField, typeWindow:
		return &keyRecord{}
	case typeEnd:
		return &endRecord{}
	}
	return nil
}

// optionalBytes is nil where the field is not there. Empty bytes are there.
type optionalBytes []byte

// IsZero tells the msgpack library what omitempty leaves out.
func (b optionalBytes) IsZero() bool { return b == nil }

// millis is a time in Unix milliseconds.
type millis int64

// DecodeMsgpack refuses what the library would make a negative time.
func (m *millis) DecodeMsgpack(d *msgpack.Decoder) error {
	if code, err := d.PeekCode(); err != nil || code != msgpcode.Uint64 {
		n, err := d.DecodeInt64()
		*m = millis(n)
		return err
	}
	n, err := d.DecodeUint64()
	if n > math.MaxInt64 {
		return fmt.Errorf("the time %d is out of range: expected at most %d", n, int64(math.MaxInt64))
	}
	*m = millis(n)
	return err
}

// sequence is a packet's sequence. In JSON, whose numbers have no 64 bits, it is a string of
// digits.
type sequence uint64

func newHeader(marks storage.Marks, payload Encoding) *headerRecord {
	h := &headerRecord{
		Type: typeHeader, Version: Version,
		NextSequence: sequence(marks.NextSeq), LowSequence: sequence(marks.LowSeq), NextQueue: uint64(marks.NextQueue),
	}
	if payload == None {
		h.Payload = string(None)
	}
	return h
}

// ownIdentity is a packet's identity, 0 if that is its sequence.
func ownIdentity(id storage.PacketID, p *storage.Packet) uint64 {
	if p.Identity == id.Seq {
		return 0
	}
	return p.Identity
}
