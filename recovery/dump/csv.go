package dump

import (
	"bytes"
	"strconv"

	"github.com/holdfast-queue/holdfast/storage"
)

// csv writes packets as rows of RFC 4180 (DUMP.md, section csv).
type csv struct {
	payload Encoding
	name    []byte // of the queue, as cells
}

const csvHead = "queue,queue_encoding,id,priority,sequence,key,key_encoding,payload,payload_encoding," +
	"expires,not_before,tags,state,attempts,enqueued_at,producer,producer_encoding\r\n"

func (f *csv) header(dst []byte, _ *header) []byte { return append(dst, csvHead...) }

func (f *csv) queue(dst []byte, q *storage.Queue) []byte {
	f.enter(q)
	return dst
}

func (f *csv) enter(q *storage.Queue) { f.name = appendCells(f.name[:0], q.Name, Text) }

func (f *csv) packet(dst []byte, id storage.PacketID, p *storage.Packet, now int64) []byte {
	dst = append(dst, f.name...)
	dst = append(appendID(dst, id), ',')
	dst = append(strconv.AppendUint(dst, uint64(id.Priority), 10), ',')
	dst = append(strconv.AppendUint(dst, id.Seq, 10), ',')
	if p.Key == nil {
		dst = append(dst, ",,"...)
	} else {
		dst = appendCells(dst, p.Key, Text)
	}
	dst = appendCells(dst, p.Payload, f.payload)
	dst = append(appendTime(dst, "", p.Expiry), ',')
	dst = append(appendTime(dst, "", p.NotBefore), ',')
	switch {
	case len(p.Tags) == 0:
	case plainTags(p.Tags):
		dst = appendCell(dst, appendTagObject(nil, p.Tags))
	default:
		dst = appendCell(dst, appendTagPairs(nil, p.Tags))
	}
	dst = append(append(append(dst, ','), stateOf(id.Priority, p.NotBefore, now)...), ',')
	dst = append(strconv.AppendUint(dst, uint64(p.Attempts), 10), ',')
	dst = append(appendTime(dst, "", p.EnqueuedAt), ',')
	if p.Producer == "" {
		return append(dst, ",\r\n"...)
	}
	dst = appendCells(dst, []byte(p.Producer), Text)
	return append(dst[:len(dst)-1], "\r\n"...)
}

func (f *csv) end(dst []byte, _ *trailer) []byte { return dst }

// appendCells appends a value and its encoding, each with a comma behind it. Control characters
// make it base64: RFC 4180 has none but line ends.
func appendCells(dst, b []byte, e Encoding) []byte {
	if e == Text {
		e = Auto
	}
	switch e = e.choose(kindOf(b)); e {
	case Text:
		dst = appendCell(dst, b)
	case None:
	default:
		dst = appendEncoded(dst, b, e)
	}
	dst = append(append(dst, ','), e.String()...)
	return append(dst, ',')
}

// appendCell quotes a text if it must be.
func appendCell(dst, b []byte) []byte {
	if !bytes.ContainsAny(b, "\",\r\n") && !bytes.HasPrefix(b, []byte(" ")) && !bytes.HasSuffix(b, []byte(" ")) {
		return append(dst, b...)
	}
	dst = append(dst, '"')
	for _, c := range b {
		if c == '"' {
			dst = append(dst, '"')
		}
		dst = append(dst, c)
	}
	return append(dst, '"')
}
