package dump

import (
	"strconv"

	"github.com/holdfast-queue/holdfast/storage"
)

// jsonl writes one JSON object a line (DUMP.md, section jsonl).
type jsonl struct {
	payload Encoding
	prefix  []byte // of every packet of the queue: type and queue
}

func (f *jsonl) header(dst []byte, h *header) []byte {
	dst = append(dst, `{"type":"holdfast","version":`...)
	dst = strconv.AppendUint(dst, h.version, 10)
	dst = append(dst, `,"next_sequence":"`...)
	dst = strconv.AppendUint(dst, h.marks.NextSeq, 10)
	dst = append(dst, `","low_sequence":"`...)
	dst = strconv.AppendUint(dst, h.marks.LowSeq, 10)
	dst = append(dst, `","next_queue":`...)
	dst = strconv.AppendUint(dst, uint64(h.marks.NextQueue), 10)
	if h.payload == None {
		dst = append(dst, `,"payload":"none"`...)
	}
	return append(dst, "}\n"...)
}

func (f *jsonl) queue(dst []byte, q *storage.Queue) []byte {
	f.enter(q)
	dst = append(dst, `{"type":"queue","id":`...)
	dst = strconv.AppendUint(dst, uint64(q.ID), 10)
	dst = appendBytes(dst, `,"queue`, q.Name, Text)
	if q.RestFields > 0 {
		dst = append(dst, `,"unknown_fields":`...)
		dst = strconv.AppendInt(dst, int64(q.RestFields), 10)
		dst = appendBytes(dst, `,"unknown`, q.Rest, Base64)
	}
	return append(dst, "}\n"...)
}

func (f *jsonl) enter(q *storage.Queue) {
	f.prefix = append(f.prefix[:0], `{"type":"packet"`...)
	f.prefix = appendBytes(f.prefix, `,"queue`, q.Name, Text)
	f.prefix = append(f.prefix, `,"id":"`...)
}

func (f *jsonl) packet(dst []byte, id storage.PacketID, p *storage.Packet, now int64) []byte {
	dst = append(dst, f.prefix...)
	dst = appendID(dst, id)
	dst = append(dst, `","priority":`...)
	dst = strconv.AppendUint(dst, uint64(id.Priority), 10)
	dst = append(dst, `,"sequence":"`...)
	dst = strconv.AppendUint(dst, id.Seq, 10)
	dst = append(dst, '"')
	if p.Key != nil {
		dst = appendBytes(dst, `,"key`, p.Key, Text)
	}
	if len(p.Payload) > 0 && f.payload != None {
		dst = appendBytes(dst, `,"payload`, p.Payload, f.payload)
	}
	dst = appendTime(dst, `,"expires":`, p.Expiry)
	dst = appendTime(dst, `,"not_before":`, p.NotBefore)
	dst = appendTags(dst, p.Tags)
	dst = append(dst, `,"state":"`...)
	dst = append(dst, stateOf(id.Priority, p.NotBefore, now)...)
	dst = append(dst, '"')
	if p.Attempts != 0 {
		dst = append(dst, `,"attempts":`...)
		dst = strconv.AppendUint(dst, uint64(p.Attempts), 10)
	}
	dst = appendTime(dst, `,"enqueued_at":`, p.EnqueuedAt)
	if p.Producer != "" {
		dst = appendBytes(dst, `,"producer`, []byte(p.Producer), Text)
	}
	return append(dst, "}\n"...)
}

func (f *jsonl) end(dst []byte, e *trailer) []byte {
	dst = append(dst, `{"type":"end","packets":`...)
	dst = strconv.AppendUint(dst, e.packets, 10)
	dst = append(dst, `,"queues":`...)
	dst = strconv.AppendUint(dst, e.queues, 10)
	dst = append(dst, `,"hash":"`...)
	return append(appendHash(dst, e.hash), "\"}\n"...)
}

// appendBytes appends a field; start is all before the quote that ends its name, to which the
// encoding is added.
func appendBytes(dst []byte, start string, b []byte, e Encoding) []byte {
	dst = append(dst, start...)
	k := kindOf(b)
	if e = e.choose(k); e == Text {
		dst = append(dst, `":"`...)
		dst = appendText(dst, b, k)
	} else {
		dst = append(dst, '_')
		dst = append(dst, e.String()...)
		dst = append(dst, `":"`...)
		dst = appendEncoded(dst, b, e)
	}
	return append(dst, '"')
}

func appendTime(dst []byte, start string, ms int64) []byte {
	if ms == 0 {
		return dst
	}
	return strconv.AppendInt(append(dst, start...), ms, 10)
}

func appendTags(dst []byte, tags []storage.Tag) []byte {
	switch {
	case len(tags) == 0:
		return dst
	case plainTags(tags):
		return appendTagObject(append(dst, `,"tags":`...), tags)
	}
	return appendTagPairs(append(dst, `,"tags_base64":`...), tags)
}

func appendTagObject(dst []byte, tags []storage.Tag) []byte {
	dst = append(dst, '{')
	for i := range tags {
		if i > 0 {
			dst = append(dst, ',')
		}
		name, value := []byte(tags[i].Name), []byte(tags[i].Value)
		dst = append(appendText(append(dst, '"'), name, kindOf(name)), `":"`...)
		dst = append(appendText(dst, value, kindOf(value)), '"')
	}
	return append(dst, '}')
}

// appendTagPairs appends an array of base64: name, value, name, value, ….
func appendTagPairs(dst []byte, tags []storage.Tag) []byte {
	dst = append(dst, '[')
	for i := range tags {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendEncoded(append(dst, '"'), []byte(tags[i].Name), Base64), `","`...)
		dst = append(appendEncoded(dst, []byte(tags[i].Value), Base64), '"')
	}
	return append(dst, ']')
}
