package content

import (
	"fmt"
	"math"
	"slices"
)

// A packet's record is one msgpack map with small integers for names, in rising order but for the
// payload, which is always last:
//
//	8n | 01 bin key | 02 int expiry | 03 int not-before | 04 int enqueued-at |
//	     05 array of str tags | 06 uint attempts | 07 str producer | 10 uint hash | 11 uint identity |
//	     13 int lease | 14 bin meta | … | 08 uint size  or  09 bin payload
//
// A field without a value is left out. 08 stands where 09 would when the payload has a record of
// its own.
const (
	fieldKey        = 1
	fieldExpiry     = 2
	fieldNotBefore  = 3
	fieldEnqueuedAt = 4
	fieldTags       = 5 // name, value, name, value, …
	fieldAttempts   = 6
	fieldProducer   = 7
	fieldSize       = 8
	fieldPayload    = 9
	fieldHash       = 10 // before 8 or 9
	fieldIdentity   = 11 // before 8 or 9
	fieldLease      = 13 // before 8 or 9, as all that follow
	fieldMeta       = 14
)

// largePayload is the longest payload, in bytes, that stays in the packet's record. Past it the
// payload has a record of its own, so that a scan at start does not read it.
const largePayload = 1 << 10

// MaxTags is the most tags that a packet may have in this format.
const MaxTags = 1024

// AppendRecord appends the full record of p to dst and returns it. The caller keeps to MaxTags and
// to the length that Limits allows.
func AppendRecord(dst []byte, p *Packet) []byte {
	w := newWriter(dst)
	w.packet(p)
	if len(p.Payload) > 0 {
		w.bin(fieldPayload, p.Payload)
	}
	return w.end()
}

// DecodeRecord reads a full record into p, replacing all of it. Key, Payload and Meta alias rec;
// Unique is nil. The array of Tags is used again, and strings that are the same as before are kept,
// so a loop takes no memory. Fields of later versions are skipped. The error wraps ErrRecord when
// rec is anything but one whole full record; p is then undefined.
func DecodeRecord(rec []byte, p *Packet) error {
	m := Meta{Tags: p.Tags}
	var x MetaRest
	err := ReadRecord(rec, &m, &x, true)
	if err == nil && m.Large {
		err = fmt.Errorf("%w: the payload is not in it: field 8", ErrRecord)
	}
	if err != nil {
		return err
	}
	if p.Hash = 0; IsLarge(len(x.payload)) {
		p.Hash = m.Hash
	}
	p.Key, p.Payload, p.Tags, p.Identity, p.Unique, p.UntilClaim = m.Key, x.payload, m.Tags, m.Identity, nil, false
	p.Lease, p.Meta = x.lease, x.meta
	p.Expiry, p.NotBefore, p.EnqueuedAt, p.Attempts = m.Expiry, m.NotBefore, m.EnqueuedAt, m.Attempts
	if p.Producer != string(x.producer) {
		p.Producer = string(x.producer)
	}
	return nil
}

// DecodeMeta reads a stored record, full or without its payload, into m, with the hash of a payload
// that is there.
func DecodeMeta(rec []byte, m *Meta) error {
	var x MetaRest
	err := ReadRecord(rec, m, &x, true)
	if err == nil && m.Key == nil && !m.Large {
		m.Hash = ValueHash(x.payload)
	}
	m.Extra = uint32(ExtraBytes(&Packet{Tags: m.Tags, Lease: x.lease}) + len(x.producer) + x.unknown)
	return err
}

// MetaRest holds what a record has and Meta has not. Its byte slices alias the record.
type MetaRest struct {
	producer, payload, meta []byte
	lease                   int64
	Size                    uint64 // of the payload
	At                      int    // where field 8 or 9 begins
	unknown                 int    // bytes of fields of later versions
}

// ReadRecord reads a stored record, full or without its payload, into m and x, which is zero. It
// passes the tags over unless they are wanted, and touches no byte of the payload.
func ReadRecord(rec []byte, m *Meta, x *MetaRest, wanted bool) error {
	tags := m.Tags
	*m = Meta{Tags: tags[:0]}
	r := reader{b: rec}
	for r.next() {
		x.At = r.at
		switch r.field {
		case fieldKey:
			m.Key = r.bin()
		case fieldExpiry:
			m.Expiry = r.int()
		case fieldNotBefore:
			m.NotBefore = r.int()
		case fieldEnqueuedAt:
			m.EnqueuedAt = r.int()
		case fieldTags:
			if wanted {
				m.Tags = r.tags(tags)
			} else {
				r.skip(0)
			}
		case fieldAttempts:
			m.Attempts = r.uint32()
		case fieldProducer:
			x.producer = r.str()
		case fieldHash:
			m.Hash = r.uint()
		case fieldIdentity:
			m.Identity = r.uint()
		case fieldLease:
			x.lease = r.int()
		case fieldMeta:
			x.meta = r.bin()
			m.Beside = uint32(len(x.meta))
		case fieldSize:
			x.Size, m.Large = r.uint(), true
			r.check(r.left == 0)
		case fieldPayload:
			x.payload = r.bin()
			x.Size = uint64(len(x.payload))
			r.check(r.left == 0)
		default:
			r.skip(0)
			x.unknown += r.pos - r.at
		}
	}
	size := x.Size + uint64(len(m.Key))
	r.check(size <= math.MaxUint32)
	m.Size = uint32(size)
	return r.err()
}

// AppendChanged appends the full record rec with another expiry and identity to dst: what a packet
// has that is kept for a while, or that moves. A zero identity stands for the sequence. The error
// wraps ErrRecord.
func AppendChanged(dst, rec []byte, expiry int64, identity uint64) ([]byte, error) {
	r, w := reader{b: rec}, newWriter(dst)
	for r.next() {
		if r.field > fieldExpiry {
			w.int(fieldExpiry, expiry)
			expiry = 0
		}
		if r.field == fieldSize || r.field == fieldPayload || r.field > fieldIdentity {
			w.uint(fieldIdentity, identity)
			identity = 0
		}
		if r.skip(0); r.field != fieldExpiry && r.field != fieldIdentity {
			w.fields++
			w.b = append(w.b, rec[r.at:r.pos]...)
		}
	}
	if err := r.err(); err != nil {
		return dst, err
	}
	w.int(fieldExpiry, expiry)
	w.uint(fieldIdentity, identity)
	return w.end(), nil
}

// CutPayload returns the record that stands for a full one whose payload is kept apart.
func CutPayload(rec []byte) []byte {
	var m Meta
	var x MetaRest
	_ = ReadRecord(rec, &m, &x, false)
	return appendUint(append(slices.Clone(rec[:x.At]), fieldSize), x.Size)
}

// AppendJoined appends the full record made of a head, split at at, and its payload.
func AppendJoined(dst, head []byte, at int, payload []byte) []byte {
	return appendBin(append(append(dst, head[:at]...), fieldPayload), payload)
}

// packet adds all but the payload.
func (w *writer) packet(p *Packet) {
	if p.Key != nil {
		w.bin(fieldKey, p.Key)
	}
	w.int(fieldExpiry, p.Expiry)
	w.int(fieldNotBefore, p.NotBefore)
	w.int(fieldEnqueuedAt, p.EnqueuedAt)
	if len(p.Tags) > 0 {
		w.b = appendArray(w.field(fieldTags), 2*len(p.Tags))
		for i := range p.Tags {
			w.b = appendStr(appendStr(w.b, p.Tags[i].Name), p.Tags[i].Value)
		}
	}
	w.uint(fieldAttempts, uint64(p.Attempts))
	w.str(fieldProducer, p.Producer)
	if IsLarge(len(p.Payload)) {
		w.uint(fieldHash, p.Hash)
	}
	w.uint(fieldIdentity, p.Identity)
	w.int(fieldLease, p.Lease)
	if len(p.Meta) > 0 {
		w.bin(fieldMeta, p.Meta)
	}
}

// tags reads field 5 into dst's array, keeping strings that are the same.
func (r *reader) tags(dst []Tag) []Tag {
	n := r.array()
	if r.check(n%2 == 0 && n <= 2*MaxTags); r.bad {
		return nil
	}
	if cap(dst) < n/2 {
		dst = make([]Tag, n/2)
	}
	dst = dst[:n/2]
	for i := range dst {
		if name := r.str(); dst[i].Name != string(name) {
			dst[i].Name = string(name)
		}
		if value := r.str(); dst[i].Value != string(value) {
			dst[i].Value = string(value)
		}
	}
	return dst
}
