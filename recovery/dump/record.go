package dump

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"

	"github.com/holdfast-queue/holdfast/recovery"
	"github.com/holdfast-queue/holdfast/storage"
)

// The types of records, the values of their first field.
const (
	TypeHeader = "holdfast"
	TypeQueue  = "queue"
	TypePacket = "packet"
	TypeWindow = "window"
	TypeString = "string"
	TypeHash   = "hash"
	TypeField  = "field"
	TypeEnd    = "end"
)

var types = []string{TypeHeader, TypeQueue, TypePacket, TypeWindow, TypeString, TypeHash, TypeField, TypeEnd}

// Record is any record of a dump, with the fields of DUMP.md in the order in which they are
// written. The tag "of" names the types that have the field; it is zero in all others. Bytes have
// two fields: msgpack and base64 use the first, text the one whose name ends in Text. Numbers are
// as wide as the msgpack library reads them, which would cut others off in silence; check.go says
// which are in range.
type Record struct {
	Type string `json:"type" msgpack:"type"`

	Version      uint64   `json:"version,omitzero" msgpack:"version,omitempty" of:"holdfast"`
	NextSequence sequence `json:"next_sequence,omitzero" msgpack:"next_sequence,omitempty" of:"holdfast"`
	LowSequence  sequence `json:"low_sequence,omitzero" msgpack:"low_sequence,omitempty" of:"holdfast"`
	NextQueue    uint64   `json:"next_queue,omitzero" msgpack:"next_queue,omitempty" of:"holdfast"`

	Packets *uint64 `json:"packets,omitzero" msgpack:"packets,omitempty" of:"end"`
	Queues  *uint64 `json:"queues,omitzero" msgpack:"queues,omitempty" of:"end"`
	Keys    uint64  `json:"keys,omitzero" msgpack:"keys,omitempty" of:"end"`

	QueueText *string  `json:"queue,omitzero" msgpack:"-"`
	Queue     data     `json:"queue_base64,omitempty" msgpack:"queue,omitempty" of:"queue packet"`
	ID        ident    `json:"id,omitzero" msgpack:"id,omitempty" of:"queue packet"` // the number of a queue, the name of a packet
	Database  uint64   `json:"database,omitzero" msgpack:"database,omitempty" of:"queue string hash"`
	HashText  *string  `json:"hash,omitzero" msgpack:"-"`
	Hash      data     `json:"hash_base64,omitempty" msgpack:"hash,omitempty" of:"field end"` // of a field its hash, at the end digits
	NameText  *string  `json:"name,omitzero" msgpack:"-"`
	Name      data     `json:"name_base64,omitempty" msgpack:"name,omitempty" of:"window string hash field"`
	Priority  *uint64  `json:"priority,omitzero" msgpack:"priority,omitempty" of:"packet"`
	Sequence  sequence `json:"sequence,omitzero" msgpack:"sequence,omitempty" of:"packet"`
	Identity  sequence `json:"identity,omitzero" msgpack:"identity,omitempty" of:"packet window"` // 0: the sequence

	KeyText      *string           `json:"key,omitzero" msgpack:"-"`
	Key          data              `json:"key_base64,omitempty" msgpack:"key,omitempty" of:"packet"`
	PayloadText  *string           `json:"payload,omitzero" msgpack:"-"`
	Payload      data              `json:"payload_base64,omitempty" msgpack:"payload,omitempty" of:"holdfast packet"` // of a header "none": all are left out
	ValueText    *string           `json:"value,omitzero" msgpack:"-"`
	Value        data              `json:"value_base64,omitempty" msgpack:"value,omitempty" of:"string field"`
	Expires      millis            `json:"expires,omitzero" msgpack:"expires,omitempty" of:"queue packet window string hash"`
	NotBefore    millis            `json:"not_before,omitzero" msgpack:"not_before,omitempty" of:"packet"`
	TagsText     map[string]string `json:"tags,omitzero" msgpack:"-"`
	Tags         [][]byte          `json:"tags_base64,omitempty" msgpack:"tags,omitempty" of:"packet"` // name, value, name, value, …
	State        string            `json:"state,omitzero" msgpack:"state,omitempty" of:"packet"`
	Attempts     uint64            `json:"attempts,omitzero" msgpack:"attempts,omitempty" of:"packet"`
	EnqueuedAt   millis            `json:"enqueued_at,omitzero" msgpack:"enqueued_at,omitempty" of:"packet"`
	ProducerText *string           `json:"producer,omitzero" msgpack:"-"`
	Producer     data              `json:"producer_base64,omitempty" msgpack:"producer,omitempty" of:"packet"`
	UniqueText   *string           `json:"unique,omitzero" msgpack:"-"`
	Unique       data              `json:"unique_base64,omitempty" msgpack:"unique,omitempty" of:"packet"`

	// What was tried with a packet.
	Until            millis   `json:"until,omitzero" msgpack:"until,omitempty" of:"packet"`
	Token            sequence `json:"token,omitzero" msgpack:"token,omitempty" of:"packet"`
	FirstClaim       millis   `json:"first_claim,omitzero" msgpack:"first_claim,omitempty" of:"packet"`
	LastClaim        millis   `json:"last_claim,omitzero" msgpack:"last_claim,omitempty" of:"packet"`
	ConsumerText     *string  `json:"consumer,omitzero" msgpack:"-"`
	Consumer         data     `json:"consumer_base64,omitempty" msgpack:"consumer,omitempty" of:"packet"`
	OriginText       *string  `json:"origin,omitzero" msgpack:"-"`
	Origin           data     `json:"origin_base64,omitempty" msgpack:"origin,omitempty" of:"packet"`
	OriginID         uint64   `json:"origin_id,omitzero" msgpack:"origin_id,omitempty" of:"packet"`
	ReasonText       *string  `json:"reason,omitzero" msgpack:"-"`
	Reason           data     `json:"reason_base64,omitempty" msgpack:"reason,omitempty" of:"packet"`
	Progress         *uint64  `json:"progress,omitzero" msgpack:"progress,omitempty" of:"packet"`
	ProgressNoteText *string  `json:"progress_text,omitzero" msgpack:"-"`
	ProgressNote     data     `json:"progress_text_base64,omitempty" msgpack:"progress_text,omitempty" of:"packet"`

	Settings      settings          `json:"settings,omitzero" msgpack:"settings,omitempty" of:"queue"`
	Counters      *storage.Counters `json:"counters,omitzero" msgpack:"counters,omitempty" of:"queue"`
	UnknownFields uint64            `json:"unknown_fields,omitzero" msgpack:"unknown_fields,omitempty" of:"queue"`
	UnknownText   *string           `json:"unknown,omitzero" msgpack:"-"`
	Unknown       data              `json:"unknown_base64,omitempty" msgpack:"unknown,omitempty" of:"queue"`

	settings *storage.Settings // Settings as the store has them
	queue    uint32            // the number of the queue that a packet or window belongs to
}

// text is a field of bytes and its form as text.
type text struct {
	name string
	text **string
	data *data
	max  int // bytes
}

func (r *Record) texts() [13]text {
	return [...]text{
		{"queue", &r.QueueText, &r.Queue, storage.MaxName}, {"hash", &r.HashText, &r.Hash, storage.MaxName},
		{"name", &r.NameText, &r.Name, maxItem}, {"key", &r.KeyText, &r.Key, maxText},
		{"payload", &r.PayloadText, &r.Payload, MaxRecord}, {"value", &r.ValueText, &r.Value, maxItem},
		{"producer", &r.ProducerText, &r.Producer, maxItem}, {"unique", &r.UniqueText, &r.Unique, storage.MaxUnique},
		{"consumer", &r.ConsumerText, &r.Consumer, maxText}, {"origin", &r.OriginText, &r.Origin, storage.MaxName},
		{"reason", &r.ReasonText, &r.Reason, maxText}, {"progress_text", &r.ProgressNoteText, &r.ProgressNote, maxText - 1},
		{"unknown", &r.UnknownText, &r.Unknown, maxRest},
	}
}

// split moves bytes into their fields of text, where the encoding of payloads has text for them.
func (r *Record) split(payload Encoding) {
	for _, f := range r.texts() {
		e := Text
		if f.data == &r.Payload && r.Type != TypeHeader || f.data == &r.Value {
			e = payload
		}
		if *f.data != nil && e.isText(*f.data) {
			*f.text, *f.data = new(string(*f.data)), nil
		}
	}
	if r.plainTags() {
		r.TagsText = make(map[string]string)
		for i := 0; i < len(r.Tags); i += 2 {
			r.TagsText[string(r.Tags[i])] = string(r.Tags[i+1])
		}
		r.Tags = nil
	}
}

// join undoes split.
func (r *Record) join() error {
	for _, f := range r.texts() {
		if *f.text == nil {
			continue
		}
		if *f.data != nil {
			return errTwice(f.name)
		}
		*f.data = data(**f.text)
	}
	if r.TagsText != nil && r.Tags != nil {
		return errTwice("tags")
	}
	for name, value := range r.TagsText {
		r.Tags = append(r.Tags, []byte(name), []byte(value))
	}
	return nil
}

func errTwice(name string) error { return fmt.Errorf("field %q is there in two encodings", name) }

// plainTags reports whether there are tags that an object can hold: each name once, and all UTF-8.
func (r *Record) plainTags() bool {
	for i, text := range r.Tags {
		if !utf8.Valid(text) || i > 1 && i%2 == 0 && string(text) <= string(r.Tags[i-2]) {
			return false
		}
	}
	return r.Tags != nil
}

// data is the value of a field of bytes: nil where there is no such field.
type data []byte

// IsZero tells the msgpack library what to leave out. In JSON empty bytes are text.
func (d data) IsZero() bool { return d == nil }

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

// MarshalJSON is for encoding/json.
func (s sequence) MarshalJSON() ([]byte, error) {
	return append(strconv.AppendUint([]byte{'"'}, uint64(s), 10), '"'), nil
}

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

// MarshalJSON is for encoding/json.
func (i ident) MarshalJSON() ([]byte, error) {
	if _, err := strconv.ParseUint(string(i), 10, 32); err == nil {
		return []byte(i), nil
	}
	return json.Marshal(string(i))
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

func headerRecord(m storage.Marks, payload Encoding) Record {
	r := Record{
		Type: TypeHeader, Version: Version,
		NextSequence: sequence(m.NextSeq), LowSequence: sequence(m.LowSeq), NextQueue: uint64(m.NextQueue),
	}
	if payload == None {
		r.Payload = data(None)
	}
	return r
}

// Marks are those of the dumped folder, of its header.
func (r *Record) Marks() storage.Marks {
	return storage.Marks{NextSeq: uint64(r.NextSequence), LowSeq: uint64(r.LowSequence), NextQueue: uint32(r.NextQueue)}
}

func queueRecord(q *storage.Queue) Record {
	r := Record{
		Type: TypeQueue, ID: ident(fmt.Sprint(q.ID)), Queue: notNil(q.Name), Database: uint64(q.Database), Expires: millis(q.Expiry),
		settings: q.Settings, UnknownFields: uint64(q.RestFields), Unknown: some(q.Rest),
	}
	if q.Counters != (storage.Counters{}) {
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
func (r *Record) Definition() *storage.Queue {
	q := &storage.Queue{
		ID: r.number(), Database: uint8(r.Database), Name: r.Queue, Expiry: int64(r.Expires), Settings: r.settings,
		Rest: r.Unknown, RestFields: int(r.UnknownFields),
	}
	if r.Counters != nil {
		q.Counters = *r.Counters
	}
	return q
}

func windowRecord(u *storage.Unique) Record {
	return Record{Type: TypeWindow, Name: u.ID, Identity: sequence(u.Identity), Expires: millis(u.Until)}
}

// Window is the window of a record of one.
func (r *Record) Window() *storage.Unique {
	return &storage.Unique{UniqueID: storage.UniqueID{Queue: r.queue, Identity: uint64(r.Identity)}, ID: r.Name, Until: int64(r.Expires)}
}

func headRecord(h *storage.Head) Record {
	r := Record{Type: TypeString, Database: uint64(h.Database), Name: notNil(h.Name), Value: some(h.Value), Expires: millis(h.Expiry)}
	if h.Kind == storage.Hash {
		r.Type = TypeHash
	}
	return r
}

// Head is the string or hash of a record of one, without a number and a version.
func (r *Record) Head() *storage.Head {
	h := &storage.Head{Kind: storage.Hash, Database: uint8(r.Database), Name: r.Name, Expiry: int64(r.Expires)}
	if r.Type == TypeString {
		h.Kind, h.Value = storage.String, notNil(r.Value)
	}
	return h
}

func fieldRecord(hash []byte, f *storage.Field) Record {
	return Record{Type: TypeField, Hash: notNil(hash), Name: notNil(f.Name), Value: some(f.Value)}
}

// Field is the field of a record of one, as Head.
func (r *Record) Field() *storage.Field {
	return &storage.Field{Name: r.Name, Value: notNil(r.Value)}
}

func endRecord(c Counts, hash string) Record {
	return Record{Type: TypeEnd, Packets: new(uint64(c.Packets)), Queues: new(uint64(c.Queues)), Keys: uint64(c.Keys), Hash: data(hash)}
}

// Delivery is the delivery state of a packet with its notes, and with the name of its origin.
type Delivery struct {
	storage.Delivery
	OriginName []byte // nil: it has no origin, or one that is not in the dump
}

// Leased reports whether somebody holds the packet. d may be nil.
func (d *Delivery) Leased(now int64) bool { return d != nil && d.Delivery.Leased(now) }

// packetRecord gets a nil delivery state if nothing was tried with the packet.
func packetRecord(queue []byte, id storage.PacketID, p *storage.Packet, d *Delivery, now int64) Record {
	r := Record{
		Type: TypePacket, Queue: notNil(queue), ID: ident(id.String()), Priority: new(uint64(id.Priority)), Sequence: sequence(id.Seq),
		Key: data(p.Key), Payload: some(p.Payload), Expires: millis(p.Expiry), NotBefore: millis(p.NotBefore),
		Attempts: uint64(p.Attempts), EnqueuedAt: millis(p.EnqueuedAt), Producer: some(p.Producer), Unique: some(p.Unique),
	}
	if p.Identity != id.Seq {
		r.Identity = sequence(p.Identity)
	}
	for i := range p.Tags {
		r.Tags = append(r.Tags, []byte(p.Tags[i].Name), []byte(p.Tags[i].Value))
	}
	tried := storage.Ready
	if d != nil {
		tried = d.State
		r.Attempts, r.Until, r.Token = uint64(d.Attempts), millis(d.Until), sequence(d.Token)
		r.FirstClaim, r.LastClaim, r.Consumer, r.Reason = millis(d.FirstClaim), millis(d.LastClaim), some(d.Consumer), some(d.Reason)
		if d.OriginName != nil {
			r.Origin, r.OriginID = d.OriginName, uint64(d.Origin)
		}
		if len(d.Progress) > 0 {
			r.Progress, r.ProgressNote = new(uint64(d.Progress[0])), some(d.Progress[1:])
		}
	}
	if state := recovery.StateOf(id.Priority, max(p.NotBefore, int64(r.Until)), tried, now); int(state) < len(recovery.StateNames) {
		r.State = recovery.StateNames[state]
	} else {
		r.State = fmt.Sprint("state ", state)
	}
	return r
}

// Packet is the packet of a record of one, with its delivery state: nil if nothing was tried with
// it. Attempts alone stay with the packet.
func (r *Record) Packet() (storage.PacketID, *storage.Packet, *Delivery) {
	id := storage.PacketID{Queue: r.queue, Priority: uint32(*r.Priority), Seq: uint64(r.Sequence)}
	p := &storage.Packet{
		Key: r.Key, Payload: r.Payload, Expiry: int64(r.Expires), NotBefore: int64(r.NotBefore), Attempts: uint32(r.Attempts),
		EnqueuedAt: int64(r.EnqueuedAt), Producer: string(r.Producer), Identity: uint64(r.Identity), Unique: r.Unique,
	}
	for i := 0; i < len(r.Tags); i += 2 {
		p.Tags = append(p.Tags, storage.Tag{Name: string(r.Tags[i]), Value: string(r.Tags[i+1])})
	}
	slices.SortStableFunc(p.Tags, func(a, b storage.Tag) int { return cmp.Compare(a.Name, b.Name) })
	d := &Delivery{OriginName: r.Origin, Delivery: storage.Delivery{
		State: storage.Ready, Identity: cmp.Or(p.Identity, id.Seq), Attempts: p.Attempts, Expiry: p.Expiry,
	}}
	nothing := d.Delivery
	if state := slices.Index(recovery.StateNames[:], r.State); state >= int(storage.Claimed) {
		d.State = storage.State(state)
	} else if r.Until > 0 {
		d.State = storage.Delayed
	}
	d.Until, d.Token, d.Origin = int64(r.Until), uint64(r.Token), uint32(r.OriginID)
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
