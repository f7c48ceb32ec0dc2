package storage

import (
	"fmt"
	"math"
)

// A packet's record is one msgpack map with small integers for names, in rising order but for the
// payload, which is always last:
//
//	8n | 01 bin key | 02 int expiry | 03 int not-before | 04 int enqueued-at |
//	     05 array of str tags | 06 uint attempts | 07 str producer | 10 uint hash | 11 uint identity |
//	     12 bin unique | … | 08 uint size  or  09 bin payload
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
	fieldUnique     = 12 // before 8 or 9
)

// largePayload is the longest payload, in bytes, that stays in the packet's record. Past it the
// payload has a record of its own, so that a scan at start does not read it.
const largePayload = 1 << 10

// MaxTags is the most tags that a packet may have in this format.
const MaxTags = 1024

// AppendRecord appends the full record of p to dst and returns it. The caller keeps to MaxTags and
// to the length that Limits allows.
func AppendRecord(dst []byte, p *Packet) []byte {
	dst, head := appendFields(dst, p)
	if len(p.Payload) > 0 {
		dst[head]++
		dst = append(dst, fieldPayload)
		dst = appendBin(dst, p.Payload)
	}
	return dst
}

// DecodeRecord reads a full record into p, replacing all of it. Key, Payload and Unique alias
// rec. The array of Tags is used again, and strings that are the same as before are kept, so a loop
// takes no memory. Fields of later versions are skipped. The error wraps ErrRecord when rec is
// anything but one whole full record; p is then undefined.
func DecodeRecord(rec []byte, p *Packet) error {
	m := Meta{Tags: p.Tags}
	var x metaRest
	err := readRecord(rec, &m, &x, true)
	if err == nil && m.Large {
		err = fmt.Errorf("%w: the payload is not in it: field 8", ErrRecord)
	}
	if err != nil {
		return err
	}
	if p.Hash = 0; IsLarge(len(x.payload)) {
		p.Hash = m.Hash
	}
	p.Key, p.Payload, p.Tags, p.Identity, p.Unique = m.Key, x.payload, m.Tags, m.Identity, m.Unique
	p.Expiry, p.NotBefore, p.EnqueuedAt, p.Attempts = m.Expiry, m.NotBefore, m.EnqueuedAt, m.Attempts
	if p.Producer != string(x.producer) {
		p.Producer = string(x.producer)
	}
	return nil
}

// decodeMeta reads a stored record, full or without its payload, into m, with the hash of a payload
// that is there.
func decodeMeta(rec []byte, m *Meta) error {
	var x metaRest
	err := readRecord(rec, m, &x, true)
	if err == nil && m.Key == nil && !m.Large {
		m.Hash = ValueHash(x.payload)
	}
	m.Extra = uint32(ExtraBytes(m.Tags, "", m.Unique) + len(x.producer) + x.unknown)
	return err
}

// metaRest is what a record holds and Meta does not. What is bytes aliases the record.
type metaRest struct {
	producer, payload []byte
	size              uint64 // of the payload
	at                int    // where field 8 or 9 begins
	unknown           int    // bytes of fields of later versions
}

// readRecord reads a stored record, full or without its payload, into m and x, which is zero. It
// passes the tags over unless they are wanted, and touches no byte of the payload.
func readRecord(rec []byte, m *Meta, x *metaRest, wanted bool) error {
	tags := m.Tags
	*m = Meta{Tags: tags[:0]}
	r := reader{b: rec}
	n, ok := r.fields()
	if !ok {
		return r.bad("no map of fields")
	}
	for ; n > 0; n-- {
		x.at = r.pos
		field, ok := r.uint()
		if !ok {
			return r.bad("no field number")
		}
		switch field {
		case fieldKey:
			m.Key, ok = r.bin()
		case fieldExpiry:
			m.Expiry, ok = r.int()
		case fieldNotBefore:
			m.NotBefore, ok = r.int()
		case fieldEnqueuedAt:
			m.EnqueuedAt, ok = r.int()
		case fieldTags:
			if wanted {
				m.Tags, ok = r.tags(tags)
			} else {
				ok = r.skip(0)
			}
		case fieldAttempts:
			m.Attempts, ok = r.uint32()
		case fieldProducer:
			x.producer, ok = r.str()
		case fieldHash:
			m.Hash, ok = r.uint()
		case fieldIdentity:
			m.Identity, ok = r.uint()
		case fieldUnique:
			m.Unique, ok = r.bin()
		case fieldSize:
			x.size, ok = r.uint()
			m.Large, ok = true, ok && n == 1
		case fieldPayload:
			x.payload, ok = r.bin()
			x.size, ok = uint64(len(x.payload)), ok && n == 1
		default:
			ok = r.skip(0)
			x.unknown += r.pos - x.at
		}
		if !ok {
			return r.bad("field value cut short, of a wrong form, or behind the payload")
		}
	}
	if !r.end() {
		return r.bad("bytes after the last field")
	}
	size := x.size + uint64(len(m.Key))
	if size > math.MaxUint32 {
		return r.bad("a size over 4 GiB")
	}
	m.Size = uint32(size)
	return nil
}

// appendHead appends the record that stands for p when its payload is kept apart.
func appendHead(dst []byte, p *Packet) []byte {
	dst, head := appendFields(dst, p)
	dst[head]++
	dst = append(dst, fieldSize)
	return appendUint(dst, uint64(len(p.Payload)))
}

// appendJoined appends the full record made of a head, split at at, and its payload.
func appendJoined(dst, head []byte, at int, payload []byte) []byte {
	dst = append(dst, head[:at]...)
	dst = append(dst, fieldPayload)
	return appendBin(dst, payload)
}

// appendFields appends all but the payload and returns where the byte that counts the fields is.
func appendFields(dst []byte, p *Packet) (rec []byte, head int) {
	head = len(dst)
	n := byte(0)
	dst = append(dst, formFixMap)
	if p.Key != nil {
		n++
		dst = append(dst, fieldKey)
		dst = appendBin(dst, p.Key)
	}
	if p.Expiry != 0 {
		n++
		dst = append(dst, fieldExpiry)
		dst = appendInt(dst, p.Expiry)
	}
	if p.NotBefore != 0 {
		n++
		dst = append(dst, fieldNotBefore)
		dst = appendInt(dst, p.NotBefore)
	}
	if p.EnqueuedAt != 0 {
		n++
		dst = append(dst, fieldEnqueuedAt)
		dst = appendInt(dst, p.EnqueuedAt)
	}
	if len(p.Tags) > 0 {
		n++
		dst = append(dst, fieldTags)
		dst = appendArrayHeader(dst, 2*len(p.Tags))
		for i := range p.Tags {
			dst = appendStr(dst, p.Tags[i].Name)
			dst = appendStr(dst, p.Tags[i].Value)
		}
	}
	if p.Attempts != 0 {
		n++
		dst = append(dst, fieldAttempts)
		dst = appendUint(dst, uint64(p.Attempts))
	}
	if p.Producer != "" {
		n++
		dst = append(dst, fieldProducer)
		dst = appendStr(dst, p.Producer)
	}
	if p.Hash != 0 && IsLarge(len(p.Payload)) {
		n++
		dst = append(dst, fieldHash)
		dst = appendUint(dst, p.Hash)
	}
	if p.Identity != 0 {
		n++
		dst = append(dst, fieldIdentity)
		dst = appendUint(dst, p.Identity)
	}
	dst[head] |= n
	return dst, head
}

// tags reads field 5 into dst's array, keeping strings that are the same.
func (r *reader) tags(dst []Tag) ([]Tag, bool) {
	n, ok := r.array()
	if !ok || n%2 != 0 || n > 2*MaxTags {
		return nil, false
	}
	if cap(dst) < n/2 {
		dst = make([]Tag, n/2)
	}
	dst = dst[:n/2]
	for i := range dst {
		name, ok := r.str()
		if !ok {
			return nil, false
		}
		value, ok := r.str()
		if !ok {
			return nil, false
		}
		if dst[i].Name != string(name) {
			dst[i].Name = string(name)
		}
		if dst[i].Value != string(value) {
			dst[i].Value = string(value)
		}
	}
	return dst, true
}
