package storage

import "math"

// A packet's record is one msgpack map with small integers for names, in
// rising order but for the payload, which is always last:
//
//	8n | 01 bin key | 02 int expiry | 03 int not-before | 04 int enqueued-at |
//	     05 array of str tags | 06 uint attempts | 07 str producer | … |
//	     08 uint size  or  09 bin payload
//
// A field without a value is left out. 08 stands where 09 would when the
// payload has a record of its own.
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
)

// largePayload is the longest payload, in bytes, that stays in the packet's
// record. Past it the payload has a record of its own, so that a scan at
// start does not read it.
const largePayload = 1 << 10

// MaxTags is the most tags that a packet may have in this format.
const MaxTags = 1024

// AppendRecord appends the full record of p to dst and returns it. The caller
// keeps to MaxTags and to the length that Limits allows.
func AppendRecord(dst []byte, p *Packet) []byte {
	dst, head := appendFields(dst, p)
	if len(p.Payload) > 0 {
		dst[head]++
		dst = append(dst, fieldPayload)
		dst = appendBin(dst, p.Payload)
	}
	return dst
}

// DecodeRecord reads a full record into p, replacing all of it: Key and
// Payload alias rec, the array of Tags is used again, and strings that are
// the same as before are kept, so that a loop takes no memory. Fields of later versions are skipped. It returns an
// error that wraps ErrRecord when rec is anything but one whole record; p is
// then undefined.
func DecodeRecord(rec []byte, p *Packet) error {
	p.Key, p.Payload = nil, nil
	p.Expiry, p.NotBefore, p.EnqueuedAt, p.Attempts = 0, 0, 0, 0
	tags, producer := p.Tags, []byte(nil)
	p.Tags = tags[:0]
	r := reader{b: rec}
	n, ok := r.fields()
	if !ok {
		return r.bad("no map of fields")
	}
	for ; n > 0; n-- {
		field, ok := r.uint()
		if !ok {
			return r.bad("no field number")
		}
		switch field {
		case fieldKey:
			p.Key, ok = r.bin()
		case fieldExpiry:
			p.Expiry, ok = r.int()
		case fieldNotBefore:
			p.NotBefore, ok = r.int()
		case fieldEnqueuedAt:
			p.EnqueuedAt, ok = r.int()
		case fieldTags:
			p.Tags, ok = r.tags(tags)
		case fieldAttempts:
			p.Attempts, ok = r.uint32()
		case fieldProducer:
			producer, ok = r.str()
		case fieldSize:
			return r.bad("the payload is not in the record: field 8")
		case fieldPayload:
			if n != 1 {
				return r.bad("the payload is not the last field: field 9")
			}
			p.Payload, ok = r.bin()
		default:
			ok = r.skip(0)
		}
		if !ok {
			return r.bad("field value cut short or of a wrong form")
		}
	}
	if !r.end() {
		return r.bad("bytes after the last field")
	}
	if p.Producer != string(producer) {
		p.Producer = string(producer)
	}
	return nil
}

// decodeMeta reads a stored record, full or without its payload, into m. It
// never touches a byte of the payload.
func decodeMeta(rec []byte, m *Meta) error {
	tags := m.Tags
	*m = Meta{Tags: tags[:0]}
	r := reader{b: rec}
	n, ok := r.fields()
	if !ok {
		return r.bad("no map of fields")
	}
	size := uint64(0)
	for ; n > 0; n-- {
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
			m.Tags, ok = r.tags(tags)
			m.More = true
		case fieldAttempts:
			m.Attempts, ok = r.uint32()
		case fieldSize:
			size, ok = r.uint()
			m.Large, ok = true, ok && n == 1
		case fieldPayload:
			size, ok = r.binHeader()
			ok = ok && n == 1
			r.pos += int(size)
		default:
			ok = r.skip(0)
			m.More = true
		}
		if !ok {
			return r.bad("field value cut short or of a wrong form")
		}
	}
	if !r.end() {
		return r.bad("bytes after the last field")
	}
	size += uint64(len(m.Key))
	if size > math.MaxUint32 {
		return r.bad("a size over 4 GiB")
	}
	m.Size = uint32(size)
	return nil
}

// appendHead appends the record that stands for p when its payload is kept
// apart.
func appendHead(dst []byte, p *Packet) []byte {
	dst, head := appendFields(dst, p)
	dst[head]++
	dst = append(dst, fieldSize)
	return appendUint(dst, uint64(len(p.Payload)))
}

// recordHead is what splitHead finds.
type recordHead struct {
	expiry int64  // of the packet, 0 for none
	large  bool   // the payload has a record of its own
	at     int    // where field 8 begins, when it is large
	size   uint64 // of the payload, when it is large
}

// splitHead reads a stored record as far as its payload.
func splitHead(rec []byte) (h recordHead, err error) {
	r := reader{b: rec}
	n, ok := r.fields()
	if !ok {
		return h, r.bad("no map of fields")
	}
	for ; n > 0; n-- {
		h.at = r.pos
		field, ok := r.uint()
		if !ok {
			return h, r.bad("no field number")
		}
		switch {
		case field == fieldPayload && n == 1:
			return h, nil // whoever decodes the record reads it
		case field == fieldSize && n == 1:
			if h.size, ok = r.uint(); !ok || !r.end() {
				return h, r.bad("field 8 of a wrong form")
			}
			h.large = true
			return h, nil
		case field == fieldExpiry:
			h.expiry, ok = r.int()
		default:
			ok = r.skip(0)
		}
		if !ok {
			return h, r.bad("field cut short or of a wrong form")
		}
	}
	return h, nil
}

// appendJoined appends the full record made of a head, split at at, and its payload.
func appendJoined(dst, head []byte, at int, payload []byte) []byte {
	dst = append(dst, head[:at]...)
	dst = append(dst, fieldPayload)
	return appendBin(dst, payload)
}

// appendFields appends all but the payload and returns where the byte that
// counts the fields is.
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
