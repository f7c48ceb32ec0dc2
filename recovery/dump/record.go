package dump

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"

	"github.com/holdfast-queue/holdfast/recovery"
	"github.com/holdfast-queue/holdfast/recovery/jsonbytes"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// The types of records, the values of their first field.
const (
	TypeHeader = "holdfast"
	TypeQueue  = "queue"
	TypePacket = "packet"
	TypeWindow = "window"
	TypeShare  = "share"
	TypeString = "string"
	TypeHash   = "hash"
	TypeField  = "field"
	TypeEnd    = "end"
)

var types = []string{TypeHeader, TypeQueue, TypePacket, TypeWindow, TypeShare, TypeString, TypeHash, TypeField, TypeEnd}

// Record is any record of a dump, with the fields of DUMP.md in the order in which they are
// written. The tag "of" names the types that have the field; it is zero in all others. Numbers are
// as wide as the msgpack library reads them, which would cut others off in silence; check.go says
// which are in range.
type Record struct {
	Type string `json:"type" msgpack:"type"`

	Version      uint64   `json:"version" msgpack:"version,omitempty" of:"holdfast"`
	NextSequence sequence `json:"next_sequence" msgpack:"next_sequence,omitempty" of:"holdfast"`
	LowSequence  sequence `json:"low_sequence" msgpack:"low_sequence,omitempty" of:"holdfast"`
	NextQueue    uint64   `json:"next_queue" msgpack:"next_queue,omitempty" of:"holdfast"`

	Packets *uint64 `json:"packets" msgpack:"packets,omitempty" of:"end"`
	Queues  *uint64 `json:"queues" msgpack:"queues,omitempty" of:"end"`
	Keys    uint64  `json:"keys" msgpack:"keys,omitempty" of:"end"`

	Queue    data     `json:"queue" msgpack:"queue,omitempty" of:"queue packet"`
	ID       ident    `json:"id" msgpack:"id,omitempty" of:"queue packet"` // the number of a queue, the name of a packet
	Database uint64   `json:"database" msgpack:"database,omitempty" of:"queue string hash"`
	Hash     data     `json:"hash" msgpack:"hash,omitempty" of:"field end"` // of a field its hash, at the end digits
	Name     data     `json:"name" msgpack:"name,omitempty" of:"window share string hash field"`
	Priority *uint64  `json:"priority" msgpack:"priority,omitempty" of:"packet"`
	Sequence sequence `json:"sequence" msgpack:"sequence,omitempty" of:"packet"`
	Identity sequence `json:"identity" msgpack:"identity,omitempty" of:"packet window"` // 0: the sequence

	Key        data            `json:"key" msgpack:"key,omitempty" of:"packet"`
	Payload    data            `json:"payload" msgpack:"payload,omitempty" of:"holdfast packet"` // of a header "none": all are left out
	Value      data            `json:"value" msgpack:"value,omitempty" of:"string field"`
	Expires    millis          `json:"expires" msgpack:"expires,omitempty" of:"queue packet window string hash"`
	NotBefore  millis          `json:"not_before" msgpack:"not_before,omitempty" of:"packet"`
	Tags       jsonbytes.Pairs `json:"tags" msgpack:"tags,omitempty" of:"packet"` // name, value, name, value, …
	State      string          `json:"state" msgpack:"state,omitempty" of:"packet"`
	Attempts   uint64          `json:"attempts" msgpack:"attempts,omitempty" of:"packet"`
	EnqueuedAt millis          `json:"enqueued_at" msgpack:"enqueued_at,omitempty" of:"packet"`
	Producer   data            `json:"producer" msgpack:"producer,omitempty" of:"packet"`
	Weight     uint64          `json:"weight" msgpack:"weight,omitempty" of:"share"`
	MaxClaimed uint64          `json:"max_claimed" msgpack:"max_claimed,omitempty" of:"share"`
	Rate       data            `json:"rate" msgpack:"rate,omitempty" of:"share"`
	Lease      millis          `json:"lease" msgpack:"lease,omitempty" of:"packet"`
	Meta       data            `json:"meta" msgpack:"meta,omitempty" of:"packet"`
	Unique     data            `json:"unique" msgpack:"unique,omitempty" of:"packet"`
	UntilClaim string          `json:"unique_until" msgpack:"unique_until,omitempty" of:"packet"`

	// What was tried with a packet.
	Until        millis   `json:"until" msgpack:"until,omitempty" of:"packet share"`
	Token        sequence `json:"token" msgpack:"token,omitempty" of:"packet"`
	FirstClaim   millis   `json:"first_claim" msgpack:"first_claim,omitempty" of:"packet"`
	LastClaim    millis   `json:"last_claim" msgpack:"last_claim,omitempty" of:"packet"`
	Consumer     data     `json:"consumer" msgpack:"consumer,omitempty" of:"packet share"`
	Origin       data     `json:"origin" msgpack:"origin,omitempty" of:"packet"`
	OriginID     uint64   `json:"origin_id" msgpack:"origin_id,omitempty" of:"packet"`
	Reason       data     `json:"reason" msgpack:"reason,omitempty" of:"packet"`
	Progress     *uint64  `json:"progress" msgpack:"progress,omitempty" of:"packet"`
	ProgressNote data     `json:"progress_text" msgpack:"progress_text,omitempty" of:"packet"`
	Cancelled    bool     `json:"cancelled" msgpack:"cancelled,omitempty" of:"packet"`

	Settings      settings          `json:"settings" msgpack:"settings,omitempty" of:"queue"`
	Counters      *content.Counters `json:"counters" msgpack:"counters,omitempty" of:"queue"`
	UnknownFields uint64            `json:"unknown_fields" msgpack:"unknown_fields,omitempty" of:"queue share"`
	Unknown       data              `json:"unknown" msgpack:"unknown,omitempty" of:"queue share"`

	settings *content.Settings // Settings as the store has them
	queue    uint32            // the number of the queue that a packet or window belongs to
}

// data is the value of a field of bytes.
type data = jsonbytes.Bytes

// text is a field of bytes, and how many it may have.
type text struct {
	name string
	data *data
	max  int
}

func (r *Record) texts() [14]text {
	return [...]text{
		{"queue", &r.Queue, content.MaxName}, {"hash", &r.Hash, content.MaxName}, {"name", &r.Name, maxItem}, {"key", &r.Key, maxText},
		{"payload", &r.Payload, MaxRecord}, {"value", &r.Value, maxItem}, {"producer", &r.Producer, maxItem},
		{"meta", &r.Meta, maxMeta}, {"unique", &r.Unique, content.MaxUnique}, {"consumer", &r.Consumer, maxText}, {"origin", &r.Origin, content.MaxName},
		{"reason", &r.Reason, maxText}, {"progress_text", &r.ProgressNote, maxText - 1}, {"unknown", &r.Unknown, maxRest},
	}
}

// some is a value that is left out if it is empty.
func some[T string | []byte](b T) data {
	if len(b) == 0 {
		return nil
	}
	return data(b)
}

// notNil is a value that is never left out.
func notNil(b []byte) data {
	if b == nil {
		return data{}
	}
	return b
}

// millis is a time in Unix milliseconds.
type millis int64

// DecodeMsgpack refuses what the library would make a negative time.
func (m *millis) DecodeMsgpack(d *msgpack.Decoder) error {
	code, _ := d.PeekCode() // the next line has its error, too
	n, err := d.DecodeInt64()
	if *m = millis(n); n < 0 && code == msgpcode.Uint64 {
		return fmt.Errorf("the time %d is out of range: expected at most %d", uint64(n), int64(math.MaxInt64))
	}
	return err
}

// sequence is a packet's sequence. In JSON, whose numbers have no 64 bits, it is a string of
// digits.
type sequence uint64

// UnmarshalJSON reads a string of digits, or a number.
func (s *sequence) UnmarshalJSON(b []byte) error {
	digits := strings.Trim(string(b), `"`)
	n, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || len(digits) > 1 && digits[0] == '0' {
		return fmt.Errorf("sequence %s: expected a whole number from 0 to 18446744073709551615, as a string", b)
	}
	*s = sequence(n)
	return nil
}

// ident is the number of a queue, or the name of a packet. A field of any type would not do: the
// msgpack library panics where a record has it twice.
type ident string

// append appends it as JSON.
func (i ident) append(dst []byte) []byte {
	if strings.Contains(string(i), "/") {
		return append(append(append(dst, '"'), i...), '"')
	}
	return append(dst, i...)
}

// UnmarshalJSON takes any value, which number refuses later.
func (i *ident) UnmarshalJSON(b []byte) error {
	*i = ident(strings.Trim(string(b), `"`))
	return nil
}

// EncodeMsgpack is for the msgpack library.
func (i ident) EncodeMsgpack(e *msgpack.Encoder) error {
	if n, err := strconv.ParseUint(string(i), 10, 32); err == nil {
		return e.EncodeUint(n)
	}
	return e.EncodeString(string(i))
}

// DecodeMsgpack takes any value, which number refuses later.
func (i *ident) DecodeMsgpack(d *msgpack.Decoder) error {
	value, err := d.DecodeInterface()
	*i = ident(fmt.Sprint(value))
	return err
}

func headerRecord(m content.Marks, payload Encoding) Record {
	r := Record{
		Type: TypeHeader, Version: Version,
		NextSequence: sequence(m.NextSeq), LowSequence: sequence(m.LowSeq), NextQueue: uint64(m.NextQueue),
	}
	if payload == None {
		r.Payload = data(None)
	}
	return r
}

// Marks returns the marks of the dumped folder, from its header.
func (r *Record) Marks() content.Marks {
	return content.Marks{NextSeq: uint64(r.NextSequence), LowSeq: uint64(r.LowSequence), NextQueue: uint32(r.NextQueue)}
}

func queueRecord(q *content.Queue) Record {
	r := Record{
		Type: TypeQueue, ID: ident(fmt.Sprint(q.ID)), Queue: notNil(q.Name), Database: uint64(q.Database), Expires: millis(q.Expiry),
		settings: q.Settings, UnknownFields: uint64(q.Rest.Fields), Unknown: some([]byte(q.Rest.Bytes)),
	}
	if q.Counters != (content.Counters{}) {
		r.Counters = &q.Counters
	}
	return r
}

// number is the id of a queue, 0 if it is no number that a queue can have.
func (r *Record) number() uint32 {
	n, _ := strconv.ParseUint(string(r.ID), 10, 32)
	return uint32(n)
}

// Definition is the queue of a record of one.
func (r *Record) Definition() *content.Queue {
	q := &content.Queue{
		ID: r.number(), Database: uint8(r.Database), Name: r.Queue, Expiry: int64(r.Expires), Settings: r.settings,
		Rest: content.Rest{Bytes: string(r.Unknown), Fields: int(r.UnknownFields)},
	}
	if r.Counters != nil {
		q.Counters = *r.Counters
	}
	return q
}

func windowRecord(u *content.Unique) Record {
	return Record{Type: TypeWindow, Name: u.ID, Identity: sequence(u.Identity), Expires: millis(u.Until)}
}

// Window is the window of a record of one.
func (r *Record) Window() *content.Unique {
	return &content.Unique{UniqueID: content.UniqueID{Queue: r.queue, Identity: uint64(r.Identity)}, ID: r.Name, Until: int64(r.Expires)}
}

func shareRecord(s *content.Share) Record {
	return Record{
		Type: TypeShare, Name: notNil(s.Name), Weight: uint64(s.Weight), MaxClaimed: uint64(s.MaxClaimed), Rate: some(s.Rate), Until: millis(s.HeldUntil), Consumer: some(s.HeldBy),
		UnknownFields: uint64(s.Rest.Fields), Unknown: some([]byte(s.Rest.Bytes)),
	}
}

// Share is what the record of a share says, without a number.
func (r *Record) Share() *content.Share {
	return &content.Share{
		ShareID: content.ShareID{Queue: r.queue}, Name: r.Name, Weight: uint32(r.Weight), MaxClaimed: uint32(r.MaxClaimed), Rate: r.Rate, HeldUntil: int64(r.Until), HeldBy: string(r.Consumer),
		Rest: content.Rest{Bytes: string(r.Unknown), Fields: int(r.UnknownFields)},
	}
}

func headRecord(h *content.Head) Record {
	r := Record{Type: TypeString, Database: uint64(h.Database), Name: notNil(h.Name), Value: some(h.Value), Expires: millis(h.Expiry)}
	if h.Kind == content.Hash {
		r.Type = TypeHash
	}
	return r
}

// Head is the string or hash of a record of one, without a number and a version.
func (r *Record) Head() *content.Head {
	h := &content.Head{Kind: content.Hash, Database: uint8(r.Database), Name: r.Name, Expiry: int64(r.Expires)}
	if r.Type == TypeString {
		h.Kind, h.Value = content.String, notNil(r.Value)
	}
	return h
}

func fieldRecord(hash []byte, f *content.Field) Record {
	return Record{Type: TypeField, Hash: notNil(hash), Name: notNil(f.Name), Value: some(f.Value)}
}

// Field is the field of a record of one, as Head.
func (r *Record) Field() *content.Field {
	return &content.Field{Name: r.Name, Value: notNil(r.Value)}
}

func endRecord(c Counts, hash string) Record {
	return Record{Type: TypeEnd, Packets: new(uint64(c.Packets)), Queues: new(uint64(c.Queues)), Keys: uint64(c.Keys), Hash: data(hash)}
}

// Delivery is the delivery state of a packet with its notes, and with the name of its origin.
type Delivery struct {
	content.Delivery
	OriginName []byte // nil: it has no origin, or one that is not in the dump
}

// Leased reports whether somebody holds the packet. d may be nil.
func (d *Delivery) Leased(now int64) bool { return d != nil && d.Delivery.Leased(now) }

// untilClaim is the value of unique_until.
const untilClaim = "claim"

// packetRecord gets a nil delivery state if nothing was tried with the packet.
func packetRecord(queue []byte, id content.PacketID, p *content.Packet, d *Delivery, now int64) Record {
	r := Record{
		Type: TypePacket, Queue: notNil(queue), ID: ident(id.String()), Priority: new(uint64(id.Priority)), Sequence: sequence(id.Seq),
		Key: data(p.Key), Payload: some(p.Payload), Expires: millis(p.Expiry), NotBefore: millis(p.NotBefore),
		Attempts: uint64(p.Attempts), EnqueuedAt: millis(p.EnqueuedAt), Producer: some(p.Producer), Unique: some(p.Unique),
		Lease: millis(p.Lease), Meta: some(p.Meta),
	}
	if p.UntilClaim {
		r.UntilClaim = untilClaim
	}
	if p.Identity != id.Seq {
		r.Identity = sequence(p.Identity)
	}
	for i := range p.Tags {
		r.Tags = append(r.Tags, data(p.Tags[i].Name), data(p.Tags[i].Value))
	}
	tried, until := content.Ready, p.NotBefore
	if d != nil {
		tried, until = d.State, d.Until
		// A packet that QRUN has moved before its moment has only the delivery state. One that was never
		// claimed would have none, and that moment again, under a clock that is put back.
		if before := p.NotBefore > d.Until; p.NotBefore > now && (d.State == content.Claimed || before) || before && d.Token == 0 {
			r.NotBefore = 0
		}
		r.Attempts, r.Until, r.Token = uint64(d.Attempts), millis(d.Until), sequence(d.Token)
		r.FirstClaim, r.LastClaim, r.Consumer, r.Reason = millis(d.FirstClaim), millis(d.LastClaim), some(d.Consumer), some(d.Reason)
		r.Cancelled = d.Cancelled && d.State == content.Claimed
		if d.OriginName != nil {
			r.Origin, r.OriginID = d.OriginName, uint64(d.Origin)
		}
		if len(d.Progress) > 0 {
			r.Progress, r.ProgressNote = new(uint64(d.Progress[0])), some(d.Progress[1:])
		}
	}
	if state := recovery.StateOf(id.Priority, until, tried, now); int(state) < len(recovery.StateNames) {
		r.State = recovery.StateNames[state]
	} else {
		r.State = fmt.Sprint("state ", state)
	}
	return r
}

// Packet is the packet of a record of one, with its delivery state: nil if nothing was tried with
// it. Attempts alone stay with the packet.
func (r *Record) Packet() (content.PacketID, *content.Packet, *Delivery) {
	id := content.PacketID{Queue: r.queue, Priority: uint32(*r.Priority), Seq: uint64(r.Sequence)}
	p := &content.Packet{
		Key: r.Key, Payload: r.Payload, Expiry: int64(r.Expires), NotBefore: int64(r.NotBefore), Attempts: uint32(r.Attempts),
		EnqueuedAt: int64(r.EnqueuedAt), Producer: string(r.Producer), Identity: uint64(r.Identity), Unique: r.Unique, UntilClaim: r.UntilClaim != "",
		Lease: int64(r.Lease), Meta: r.Meta,
	}
	for i := 0; i < len(r.Tags); i += 2 {
		p.Tags = append(p.Tags, content.Tag{Name: string(r.Tags[i]), Value: string(r.Tags[i+1])})
	}
	slices.SortStableFunc(p.Tags, func(a, b content.Tag) int { return cmp.Compare(a.Name, b.Name) })
	d := &Delivery{OriginName: r.Origin, Delivery: content.Delivery{
		State: content.Ready, Identity: cmp.Or(p.Identity, id.Seq), Attempts: p.Attempts, Expiry: p.Expiry,
	}}
	nothing := d.Delivery
	if state := slices.Index(recovery.StateNames[:], r.State); state >= int(content.Claimed) {
		d.State = content.State(state)
	} else if r.Until > 0 {
		d.State = content.Delayed
	}
	d.Until, d.Token, d.Origin, d.Cancelled = int64(r.Until), uint64(r.Token), uint32(r.OriginID), r.Cancelled
	d.FirstClaim, d.LastClaim, d.Consumer, d.Reason = int64(r.FirstClaim), int64(r.LastClaim), string(r.Consumer), string(r.Reason)
	if r.Progress != nil {
		d.Progress = string(append([]byte{byte(*r.Progress)}, r.ProgressNote...))
	}
	if d.Delivery == nothing {
		return id, p, nil
	}
	p.Attempts = 0
	return id, p, d
}
