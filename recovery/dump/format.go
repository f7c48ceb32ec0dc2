package dump

import "github.com/holdfast-queue/holdfast/storage"

// Version is the version of the dumps that this package writes, and the newest it reads (DUMP.md).
const Version = 3

// Format is the form of a dump. The zero value is JSONL.
type Format string

// The formats of a dump. Read takes the first two.
const (
	JSONL   Format = "jsonl"   // one JSON object a line
	Msgpack Format = "msgpack" // the same objects as msgpack maps, one after the other
	CSV     Format = "csv"     // packets only, for spreadsheets
)

// Encoding says how a dump writes payloads. The zero value is Auto. A msgpack dump holds bytes as
// they are, so only None makes a difference there.
type Encoding string

// The encodings of payloads. Keys and names are always written as Text.
const (
	Auto   Encoding = "auto"   // as Text, but base64 if there are control characters other than tab, line feed and return
	Text   Encoding = "text"   // text if the bytes are UTF-8, else base64
	Base64 Encoding = "base64" // base64, standard alphabet, padded
	None   Encoding = "none"   // left out: such a dump cannot be loaded
)

// encoder writes the records of one format: each method appends one record to dst.
type encoder interface {
	header(dst []byte, marks storage.Marks) []byte
	queue(dst []byte, q *storage.Queue) []byte
	// packet gets a nil delivery state if nothing was tried with the packet.
	packet(dst []byte, q *storage.Queue, id storage.PacketID, p *storage.Packet, d *Delivery, now int64) []byte
	window(dst []byte, u *storage.Unique) []byte
	head(dst []byte, h *storage.Head) []byte
	field(dst []byte, h *storage.Head, f *storage.Field) []byte
	end(dst []byte, e endRecord) []byte
}

// newEncoder makes an encoder for one goroutine.
func newEncoder(f Format, payload Encoding) encoder {
	switch f {
	case Msgpack:
		return newMsgpackEncoder(payload)
	case CSV:
		return &csvEncoder{payload}
	}
	return &jsonEncoder{payload}
}
