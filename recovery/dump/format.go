package dump

import (
	"fmt"

	"github.com/holdfast-queue/holdfast/storage"
)

// Version is the version of the dumps that this package writes and reads (DUMP.md).
const Version = 1

// Format is the form of a dump. The zero value is JSONL.
type Format uint8

// The formats of a dump. Read takes the first two.
const (
	JSONL   Format = iota // one JSON object a line
	Msgpack               // the same objects as msgpack maps, one after the other
	CSV                   // packets only, for spreadsheets
)

// ParseFormat reads "jsonl", "msgpack" or "csv".
func ParseFormat(s string) (Format, error) {
	for _, f := range []Format{JSONL, Msgpack, CSV} {
		if s == f.String() {
			return f, nil
		}
	}
	return 0, fmt.Errorf("unknown dump format %q: use jsonl, msgpack or csv", s)
}

// String returns what ParseFormat reads.
func (f Format) String() string { return [...]string{"jsonl", "msgpack", "csv"}[min(f, CSV)] }

// Encoding says how a dump writes payloads. The zero value is Auto. A msgpack dump holds bytes as
// they are, so only None makes a difference there.
type Encoding uint8

// The encodings of payloads. Keys and names are always written as Text.
const (
	Auto   Encoding = iota // as Text, but base64 if there are control characters other than tab, line feed and return
	Text                   // text if the bytes are UTF-8, else base64
	Base64                 // base64, standard alphabet, padded
	None                   // left out: such a dump cannot be loaded
)

// ParseEncoding reads "auto", "text", "base64" or "none".
func ParseEncoding(s string) (Encoding, error) {
	for e := Auto; e <= None; e++ {
		if s == e.String() {
			return e, nil
		}
	}
	return 0, fmt.Errorf("unknown payload encoding %q: use auto, text, base64 or none", s)
}

// String returns what ParseEncoding reads.
func (e Encoding) String() string {
	return [...]string{"auto", "text", "base64", "none"}[min(e, None)]
}

// encoder writes the records of one format: each method appends one record to dst.
type encoder interface {
	header(dst []byte, marks storage.Marks) []byte
	queue(dst []byte, q *storage.Queue) []byte
	packet(dst []byte, q *storage.Queue, id storage.PacketID, p *storage.Packet, now int64) []byte
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

// The states of a packet, as a dump shows them. They follow from its other fields and the time.
const (
	stateReady        = "ready"
	stateDelayed      = "delayed"
	stateUnselectable = "unselectable"
)

func stateOf(priority uint32, notBefore, now int64) string {
	switch {
	case priority == 0:
		return stateUnselectable
	case notBefore > now:
		return stateDelayed
	}
	return stateReady
}
