package dump

import (
	"github.com/vmihailenco/msgpack/v5"

	"github.com/holdfast-queue/holdfast/storage"
)

// packed writes msgpack maps, one after the other (DUMP.md, section msgpack). Its errors are those
// of out, which has none.
type packed struct {
	payload Encoding
	name    []byte // of the queue
	out     appender
	enc     *msgpack.Encoder
}

// appender is a slice that the encoder appends to.
type appender struct{ b []byte }

func (a *appender) Write(b []byte) (int, error) {
	a.b = append(a.b, b...)
	return len(b), nil
}

func (a *appender) WriteByte(c byte) error {
	a.b = append(a.b, c)
	return nil
}

func newPacked(payload Encoding) *packed {
	f := &packed{payload: payload}
	f.enc = msgpack.NewEncoder(&f.out)
	return f
}

// begin starts a map and writes its type; done takes the bytes.
func (f *packed) begin(dst []byte, fields int, kind string) {
	f.out.b = dst
	_ = f.enc.EncodeMapLen(fields)
	f.text("type", kind)
}

func (f *packed) done() []byte {
	b := f.out.b
	f.out.b = nil
	return b
}

func (f *packed) text(name, value string) {
	_ = f.enc.EncodeString(name)
	_ = f.enc.EncodeString(value)
}

func (f *packed) uint(name string, value uint64) {
	_ = f.enc.EncodeString(name)
	_ = f.enc.EncodeUint(value)
}

func (f *packed) int(name string, value int64) {
	_ = f.enc.EncodeString(name)
	_ = f.enc.EncodeInt(value)
}

func (f *packed) bytes(name string, value []byte) {
	_ = f.enc.EncodeString(name)
	f.bin(value)
}

// bin is never nil for the encoder, which would write nil for it.
func (f *packed) bin(value []byte) {
	_ = f.enc.EncodeBytesLen(len(value))
	_, _ = f.out.Write(value)
}

func (f *packed) header(dst []byte, h *header) []byte {
	fields := 5
	if h.payload == None {
		fields++
	}
	f.begin(dst, fields, "holdfast")
	f.uint("version", h.version)
	f.uint("next_sequence", h.marks.NextSeq)
	f.uint("low_sequence", h.marks.LowSeq)
	f.uint("next_queue", uint64(h.marks.NextQueue))
	if h.payload == None {
		f.text("payload", "none")
	}
	return f.done()
}

func (f *packed) queue(dst []byte, q *storage.Queue) []byte {
	f.enter(q)
	fields := 3
	if q.RestFields > 0 {
		fields += 2
	}
	f.begin(dst, fields, "queue")
	f.uint("id", uint64(q.ID))
	f.bytes("queue", q.Name)
	if q.RestFields > 0 {
		f.uint("unknown_fields", uint64(q.RestFields))
		f.bytes("unknown", q.Rest)
	}
	return f.done()
}

func (f *packed) enter(q *storage.Queue) { f.name = append(f.name[:0], q.Name...) }

func (f *packed) packet(dst []byte, id storage.PacketID, p *storage.Packet, now int64) []byte {
	const always = 6 // type, queue, id, priority, sequence, state
	payload := len(p.Payload) > 0 && f.payload != None
	fields := always
	for _, there := range [...]bool{
		p.Key != nil, payload, p.Expiry != 0, p.NotBefore != 0, len(p.Tags) > 0,
		p.Attempts != 0, p.EnqueuedAt != 0, p.Producer != "",
	} {
		if there {
			fields++
		}
	}
	f.begin(dst, fields, "packet")
	f.bytes("queue", f.name)
	var text [maxID]byte
	f.bytesAsText("id", appendID(text[:0], id))
	f.uint("priority", uint64(id.Priority))
	f.uint("sequence", id.Seq)
	if p.Key != nil {
		f.bytes("key", p.Key)
	}
	if payload {
		f.bytes("payload", p.Payload)
	}
	f.time("expires", p.Expiry)
	f.time("not_before", p.NotBefore)
	f.tags(p.Tags)
	f.text("state", stateOf(id.Priority, p.NotBefore, now))
	if p.Attempts != 0 {
		f.uint("attempts", uint64(p.Attempts))
	}
	f.time("enqueued_at", p.EnqueuedAt)
	if p.Producer != "" {
		f.bytes("producer", []byte(p.Producer))
	}
	return f.done()
}

func (f *packed) end(dst []byte, e *trailer) []byte {
	f.begin(dst, 4, "end")
	f.uint("packets", e.packets)
	f.uint("queues", e.queues)
	var text [16]byte
	f.bytesAsText("hash", appendHash(text[:0], e.hash))
	return f.done()
}

// bytesAsText writes a short value as a string; it makes none of its own.
func (f *packed) bytesAsText(name string, value []byte) {
	const fixStr, str8 = 0xa0, 0xd9 // up to 31 and up to 255 bytes
	_ = f.enc.EncodeString(name)
	if n := len(value); n < 32 {
		f.out.b = append(f.out.b, fixStr|byte(n))
	} else {
		f.out.b = append(f.out.b, str8, byte(n))
	}
	f.out.b = append(f.out.b, value...)
}

func (f *packed) time(name string, ms int64) {
	if ms != 0 {
		f.int(name, ms)
	}
}

func (f *packed) tags(tags []storage.Tag) {
	if len(tags) == 0 {
		return
	}
	_ = f.enc.EncodeString("tags")
	_ = f.enc.EncodeArrayLen(2 * len(tags))
	for i := range tags {
		f.bin([]byte(tags[i].Name))
		f.bin([]byte(tags[i].Value))
	}
}
