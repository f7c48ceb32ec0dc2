package dump

import (
	"bytes"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/holdfast-queue/holdfast/storage"
)

// msgpackEncoder writes msgpack maps, one after the other (DUMP.md, section msgpack).
type msgpackEncoder struct {
	payload Encoding
	out     bytes.Buffer
	enc     *msgpack.Encoder
}

func newMsgpackEncoder(payload Encoding) *msgpackEncoder {
	e := &msgpackEncoder{payload: payload}
	e.enc = msgpack.NewEncoder(&e.out)
	e.enc.UseCompactInts(true)
	return e
}

// append appends a record. Writing to a buffer never fails.
func (e *msgpackEncoder) append(dst []byte, record any) []byte {
	e.out.Reset()
	_ = e.enc.Encode(record)
	return append(dst, e.out.Bytes()...)
}

func (e *msgpackEncoder) header(dst []byte, m storage.Marks) []byte {
	return e.append(dst, newHeader(m, e.payload))
}

func (e *msgpackEncoder) queue(dst []byte, q *storage.Queue) []byte {
	r := queueRecord{
		Type: typeQueue, ID: uint64(q.ID), Queue: notNil(q.Name), Database: uint64(q.Database), Expires: millis(q.Expiry),
		UnknownFields: uint64(q.RestFields), Unknown: q.Rest,
	}
	if q.Counters != (storage.Counters{}) {
		r.Counters = &q.Counters
	}
	if q.Settings != nil {
		r.Settings = &settingsRecord{*q.Settings}
	}
	return e.append(dst, &r)
}

func (e *msgpackEncoder) packet(dst []byte, q *storage.Queue, id storage.PacketID, p *storage.Packet, d *Delivery, now int64) []byte {
	priority := uint64(id.Priority)
	r := packetRecord{
		Type: typePacket, Queue: notNil(q.Name), ID: id.String(), Priority: &priority, Sequence: sequence(id.Seq), Identity: sequence(ownIdentity(id, p)),
		Key: p.Key, Payload: p.Payload, Expires: millis(p.Expiry), NotBefore: millis(p.NotBefore),
		State: stateOf(id.Priority, p.NotBefore, d, now), Attempts: uint64(attemptsOf(p, d)), EnqueuedAt: millis(p.EnqueuedAt), Producer: []byte(p.Producer),
		Unique: p.Unique, deliveryRecord: newDeliveryRecord(d),
	}
	if e.payload == None {
		r.Payload = nil
	}
	for i := range p.Tags {
		r.Tags = append(r.Tags, []byte(p.Tags[i].Name), []byte(p.Tags[i].Value))
	}
	return e.append(dst, &r)
}

func (e *msgpackEncoder) window(dst []byte, u *storage.Unique) []byte {
	return e.append(dst, &keyRecord{Type: typeWindow, Name: u.ID, Identity: sequence(u.Identity), Expires: millis(u.Until)})
}

func (e *msgpackEncoder) head(dst []byte, h *storage.Head) []byte {
	return e.append(dst, &keyRecord{Type: typeOf(h), Database: uint64(h.Database), Name: notNil(h.Name), Value: e.value(h.Value), Expires: millis(h.Expiry)})
}

func (e *msgpackEncoder) field(dst []byte, h *storage.Head, f *storage.Field) []byte {
	return e.append(dst, &keyRecord{Type: typeField, Hash: notNil(h.Name), Name: notNil(f.Name), Value: e.value(f.Value)})
}

func (e *msgpackEncoder) value(value []byte) []byte {
	if e.payload == None {
		return nil
	}
	return value
}

func (e *msgpackEncoder) end(dst []byte, end endRecord) []byte { return e.append(dst, &end) }

// notNil returns b as bytes that the library does not write as nil.
func notNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
