package dump

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"fmt"
	"strconv"

	"github.com/holdfast-queue/holdfast/storage"
)

// csvEncoder writes packets as rows of RFC 4180 (DUMP.md, section csv). It is not encoding/csv,
// which changes the line ends inside payloads.
type csvEncoder struct{ payload Encoding }

const csvHead = "queue,queue_encoding,id,priority,sequence,key,key_encoding,payload,payload_encoding," +
	"expires,not_before,tags,state,attempts,enqueued_at,producer,producer_encoding," +
	"identity,until,first_claim,last_claim,consumer,consumer_encoding,origin,origin_encoding,reason,reason_encoding,progress,unique,unique_encoding,database\r\n"

func (e *csvEncoder) header(dst []byte, _ storage.Marks) []byte { return append(dst, csvHead...) }

func (e *csvEncoder) queue(dst []byte, _ *storage.Queue) []byte { return dst }

func (e *csvEncoder) packet(dst []byte, q *storage.Queue, id storage.PacketID, p *storage.Packet, d *Delivery, now int64) []byte {
	dst = appendCells(dst, q.Name, Text)
	dst = fmt.Appendf(dst, "%v,%d,%d,", id, id.Priority, id.Seq)
	if p.Key == nil {
		dst = append(dst, ",,"...)
	} else {
		dst = appendCells(dst, p.Key, Text)
	}
	dst = appendCells(dst, p.Payload, e.payload)
	dst = appendTime(dst, p.Expiry)
	dst = appendTime(dst, p.NotBefore)
	if len(p.Tags) > 0 {
		tags, _ := appendTags(nil, p.Tags)
		dst = appendCell(dst, tags)
	}
	dst = fmt.Appendf(dst, ",%s,%d,", stateOf(id.Priority, p.NotBefore, d, now), attemptsOf(p, d))
	dst = appendTime(dst, p.EnqueuedAt)
	t := newDeliveryRecord(d)
	dst = appendText(dst, []byte(p.Producer))
	dst = fmt.Appendf(dst, "%d,", cmp.Or(p.Identity, id.Seq))
	dst = appendTime(dst, int64(t.Until))
	dst = appendTime(dst, int64(t.FirstClaim))
	dst = appendTime(dst, int64(t.LastClaim))
	dst = appendText(dst, t.Consumer)
	dst = appendText(dst, t.Origin)
	dst = appendText(dst, t.Reason)
	if t.Progress != nil {
		dst = strconv.AppendUint(dst, *t.Progress, 10)
	}
	dst = appendText(append(dst, ','), p.Unique)
	return fmt.Appendf(dst, "%d\r\n", q.Database)
}

// appendText appends a value and its encoding like appendCells, and two empty cells for no value.
func appendText(dst, b []byte) []byte {
	if len(b) == 0 {
		return append(dst, ",,"...)
	}
	return appendCells(dst, b, Text)
}

func (e *csvEncoder) window(dst []byte, _ *storage.Unique) []byte { return dst }

func (e *csvEncoder) head(dst []byte, _ *storage.Head) []byte { return dst }

func (e *csvEncoder) field(dst []byte, _ *storage.Head, _ *storage.Field) []byte { return dst }

func (e *csvEncoder) end(dst []byte, _ endRecord) []byte { return dst }

// appendCells appends a value and its encoding, each with a comma behind it. Control characters
// make it base64: RFC 4180 has none but line ends.
func appendCells(dst, b []byte, e Encoding) []byte {
	if e == Text {
		e = Auto
	}
	switch e = e.choose(b); e {
	case Text:
		dst = appendCell(dst, b)
	case Base64:
		dst = base64.StdEncoding.AppendEncode(dst, b)
	}
	dst = append(append(dst, ','), e...)
	return append(dst, ',')
}

// appendCell quotes a text if it must be.
func appendCell(dst, b []byte) []byte {
	if !bytes.ContainsAny(b, "\",\r\n") && !bytes.HasPrefix(b, []byte(" ")) && !bytes.HasSuffix(b, []byte(" ")) {
		return append(dst, b...)
	}
	dst = append(append(dst, '"'), bytes.ReplaceAll(b, []byte{'"'}, []byte(`""`))...)
	return append(dst, '"')
}

// appendTime appends a cell, an empty one for no time, and a comma.
func appendTime(dst []byte, ms int64) []byte {
	if ms != 0 {
		dst = strconv.AppendInt(dst, ms, 10)
	}
	return append(dst, ',')
}
