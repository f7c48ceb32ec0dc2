package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"
	"unicode"

	"github.com/holdfast-queue/holdfast/netproto/client"
	"github.com/holdfast-queue/holdfast/recovery/jsonbytes"
)

// jsonObject is a JSON object in a line, built field by field.
type jsonObject struct{ buf bytes.Buffer }

// name begins a field.
func (o *jsonObject) name(name string) {
	separator := byte(',')
	if o.buf.Len() == 0 {
		separator = '{'
	}
	o.buf.WriteByte(separator)
	o.write(jsonbytes.Append(o.buf.AvailableBuffer(), []byte(name)))
	o.buf.WriteByte(':')
}

func (o *jsonObject) write(text []byte) { _, _ = o.buf.Write(text) }

// add adds a field with a value that can be written as JSON.
func (o *jsonObject) add(name string, value any) {
	o.name(name)
	encoder := json.NewEncoder(&o.buf)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value)
	o.buf.Truncate(o.buf.Len() - 1) // it ends with a line break
}

// bytes adds bytes, as jsonbytes has them.
func (o *jsonObject) bytes(name string, b []byte) {
	o.name(name)
	o.write(jsonbytes.Append(o.buf.AvailableBuffer(), b))
}

// text adds a text that is not empty.
func (o *jsonObject) text(name, text string) {
	if text != "" {
		o.bytes(name, []byte(text))
	}
}

// moment adds a time that is known, in Unix milliseconds.
func (o *jsonObject) moment(name string, t time.Time) {
	if !t.IsZero() {
		o.add(name, t.UnixMilli())
	}
}

// figures adds numbers.
func (o *jsonObject) figures(all ...figure) {
	for _, f := range all {
		o.add(f.name, f.n)
	}
}

// controls are those that the encoder leaves as they are, and that some terminals obey.
var controls = regexp.MustCompile(`\p{Cc}`)

// line is the object in a line.
func (o *jsonObject) line() []byte {
	if o.buf.Len() == 0 {
		o.buf.WriteByte('{')
	}
	return append(escaped(o.buf.Bytes()), "}\n"...)
}

// escaped is JSON without controls.
func escaped(text []byte) []byte {
	if !bytes.ContainsFunc(text, unicode.IsControl) { // which takes less time
		return text
	}
	return controls.ReplaceAllFunc(text, func(c []byte) []byte { return fmt.Appendf(nil, `\u%04x`, bytes.Runes(c)[0]) })
}

// addPacket adds the fields of a packet but for key and payload.
func addPacket(o *jsonObject, p *client.Packet) {
	o.add("id", p.ID)
	o.text("queue", p.Queue)
	o.text("state", string(p.State))
	o.add("priority", p.Priority)
	o.add("attempt", p.Attempt)
	if len(p.Tags) > 0 {
		o.add("tags", tagPairs(p.Tags))
	}
	o.text("producer", p.Producer)
	o.moment("enqueued", p.Enqueued)
	o.moment("expires", p.Expires)
	o.moment("not_before", p.NotBefore)
	if p.Token != 0 {
		o.add("token", p.Token)
	}
	o.moment("lease_end", p.LeaseEnd)
	o.text("consumer", p.Consumer)
	o.text("reason", p.Reason)
	if p.Percent >= 0 {
		o.add("progress", p.Percent)
	}
	o.text("progress_text", p.PercentText)
	o.text("origin", p.Origin)
	o.text("unique", p.Unique)
	o.moment("first_claim", p.FirstClaim)
	o.moment("last_claim", p.LastClaim)
	o.text("why", p.Why)
}

func tagPairs(tags map[string]string) (all jsonbytes.Pairs) {
	for _, name := range slices.Sorted(maps.Keys(tags)) {
		all = append(all, jsonbytes.Bytes(name), jsonbytes.Bytes(tags[name]))
	}
	return all
}

// packetJSON is a packet in a line. The names are those of the protocol, with _ for -.
func packetJSON(p *client.Packet) []byte { return new(jsonObject).packet(p) }

// packet adds a packet, which ends the line.
func (o *jsonObject) packet(p *client.Packet) []byte {
	addPacket(o, p)
	if p.Key != nil {
		o.bytes("key", p.Key)
	}
	o.bytes("payload", p.Payload)
	return o.line()
}
