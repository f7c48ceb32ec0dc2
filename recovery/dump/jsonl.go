package dump

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/holdfast-queue/holdfast/storage"
)

// jsonEncoder writes one JSON object a line (DUMP.md, section jsonl).
type jsonEncoder struct{ payload Encoding }

func (e *jsonEncoder) header(dst []byte, m storage.Marks) []byte {
	dst = fmt.Appendf(dst, `{"type":"holdfast","version":%d,"next_sequence":"%d","low_sequence":"%d","next_queue":%d`,
		Version, m.NextSeq, m.LowSeq, m.NextQueue)
	if e.payload == None {
		dst = append(dst, `,"payload":"none"`...)
	}
	return append(dst, "}\n"...)
}

func (e *jsonEncoder) queue(dst []byte, q *storage.Queue) []byte {
	dst = fmt.Appendf(dst, `{"type":"queue","id":%d`, q.ID)
	dst = appendBytes(dst, "queue", q.Name, Text)
	dst = appendInt(dst, "database", int64(q.Database))
	dst = appendInt(dst, "expires", q.Expiry)
	dst = appendSettings(dst, q.Settings)
	if q.Counters != (storage.Counters{}) {
		counters, _ := json.Marshal(q.Counters)
		dst = fmt.Appendf(dst, `,"counters":%s`, counters)
	}
	if q.RestFields > 0 {
		dst = appendInt(dst, "unknown_fields", int64(q.RestFields))
		dst = appendBytes(dst, "unknown", q.Rest, Base64)
	}
	return append(dst, "}\n"...)
}

func (e *jsonEncoder) packet(dst []byte, q *storage.Queue, id storage.PacketID, p *storage.Packet, d *Delivery, now int64) []byte {
	dst = append(dst, `{"type":"packet"`...)
	dst = appendBytes(dst, "queue", q.Name, Text)
	dst = append(append(dst, `,"id":"`...), id.String()...)
	dst = strconv.AppendUint(append(dst, `","priority":`...), uint64(id.Priority), 10)
	dst = strconv.AppendUint(append(dst, `,"sequence":"`...), id.Seq, 10)
	dst = append(dst, '"')
	dst = appendSequence(dst, "identity", ownIdentity(id, p))
	if p.Key != nil {
		dst = appendBytes(dst, "key", p.Key, Text)
	}
	if len(p.Payload) > 0 && e.payload != None {
		dst = appendBytes(dst, "payload", p.Payload, e.payload)
	}
	dst = appendInt(dst, "expires", p.Expiry)
	dst = appendInt(dst, "not_before", p.NotBefore)
	if len(p.Tags) > 0 {
		name := `,"tags":`
		tags, plain := appendTags(nil, p.Tags)
		if !plain {
			name = `,"tags_base64":`
		}
		dst = append(append(dst, name...), tags...)
	}
	dst = append(append(dst, `,"state":"`...), stateOf(id.Priority, p.NotBefore, d, now)...)
	dst = append(dst, '"')
	dst = appendInt(dst, "attempts", int64(attemptsOf(p, d)))
	dst = appendInt(dst, "enqueued_at", p.EnqueuedAt)
	if p.Producer != "" {
		dst = appendBytes(dst, "producer", []byte(p.Producer), Text)
	}
	if len(p.Unique) > 0 {
		dst = appendBytes(dst, "unique", p.Unique, Text)
	}
	if d != nil {
		dst = appendDelivery(dst, newDeliveryRecord(d))
	}
	return append(dst, "}\n"...)
}

func appendDelivery(dst []byte, t deliveryRecord) []byte {
	dst = appendInt(dst, "until", int64(t.Until))
	dst = appendSequence(dst, "token", uint64(t.Token))
	dst = appendInt(dst, "first_claim", int64(t.FirstClaim))
	dst = appendInt(dst, "last_claim", int64(t.LastClaim))
	if len(t.Consumer) > 0 {
		dst = appendBytes(dst, "consumer", t.Consumer, Text)
	}
	if t.Origin != nil {
		dst = appendBytes(dst, "origin", t.Origin, Text)
		dst = appendInt(dst, "origin_id", int64(t.OriginID))
	}
	if len(t.Reason) > 0 {
		dst = appendBytes(dst, "reason", t.Reason, Text)
	}
	if t.Progress != nil {
		dst = fmt.Appendf(dst, `,"progress":%d`, *t.Progress)
	}
	if len(t.ProgressText) > 0 {
		dst = appendBytes(dst, "progress_text", t.ProgressText, Text)
	}
	return dst
}

func (e *jsonEncoder) window(dst []byte, u *storage.Unique) []byte {
	dst = appendBytes(append(dst, `{"type":"window"`...), "name", u.ID, Text)
	dst = appendInt(appendSequence(dst, "identity", u.Identity), "expires", u.Until)
	return append(dst, "}\n"...)
}

func (e *jsonEncoder) head(dst []byte, h *storage.Head) []byte {
	dst = append(append(append(dst, `{"type":"`...), typeOf(h)...), '"')
	dst = appendInt(dst, "database", int64(h.Database))
	dst = appendBytes(dst, "name", h.Name, Text)
	dst = e.value(dst, h.Value)
	dst = appendInt(dst, "expires", h.Expiry)
	return append(dst, "}\n"...)
}

func (e *jsonEncoder) field(dst []byte, h *storage.Head, f *storage.Field) []byte {
	dst = append(dst, `{"type":"field"`...)
	dst = appendBytes(dst, "hash", h.Name, Text)
	dst = appendBytes(dst, "name", f.Name, Text)
	dst = e.value(dst, f.Value)
	return append(dst, "}\n"...)
}

func (e *jsonEncoder) value(dst, value []byte) []byte {
	if len(value) == 0 || e.payload == None {
		return dst
	}
	return appendBytes(dst, "value", value, e.payload)
}

func (e *jsonEncoder) end(dst []byte, end endRecord) []byte {
	dst = fmt.Appendf(dst, `{"type":"end","packets":%d,"queues":%d`, end.Packets, end.Queues)
	dst = appendInt(dst, "keys", int64(end.Keys))
	return fmt.Appendf(dst, `,"hash":"%s"}`+"\n", end.Hash)
}

// appendBytes appends a field. If the encoding comes to base64, that becomes a part of its name.
func appendBytes(dst []byte, name string, b []byte, e Encoding) []byte {
	dst = append(append(dst, `,"`...), name...)
	if e.choose(b) == Text {
		return appendString(append(dst, `":`...), b)
	}
	dst = append(dst, `_base64":"`...)
	return append(base64.StdEncoding.AppendEncode(dst, b), '"')
}

// appendSequence appends a field, or nothing for 0.
func appendSequence(dst []byte, name string, v uint64) []byte {
	if v == 0 {
		return dst
	}
	return fmt.Appendf(dst, `,"%s":"%d"`, name, v)
}

// appendInt appends a field, or nothing for 0.
func appendInt(dst []byte, name string, v int64) []byte {
	if v == 0 {
		return dst
	}
	dst = append(append(append(dst, `,"`...), name...), `":`...)
	return strconv.AppendInt(dst, v, 10)
}
