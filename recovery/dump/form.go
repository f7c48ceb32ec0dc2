package dump

import (
	"encoding/binary"
	"fmt"
	"strconv"

	"github.com/holdfast-queue/holdfast/storage"
)

// Version is the version of the dumps written here (DUMP.md).
const Version = 1

// Format is a form of dump. The zero value is JSONL.
type Format uint8

// The forms of a dump. Load reads the first two.
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
	return 0, fmt.Errorf("dump format %q is not known: use jsonl, msgpack or csv", s)
}

// String returns what ParseFormat reads.
func (f Format) String() string { return [...]string{"jsonl", "msgpack", "csv"}[min(f, CSV)] }

// Encoding says how a dump writes payloads. The zero value is Auto. Msgpack, which has bytes, knows
// no other but None.
type Encoding uint8

// The encodings of payloads. Whichever is chosen, keys and names are Text.
const (
	Auto   Encoding = iota // as Text, but base64 if there are control characters other than tab, line feed and return
	Text                   // text if the bytes are UTF-8, else base64
	Base64                 // base64, standard alphabet, padded
	Hex                    // hexadecimal digits, lower case
	None                   // left out: Load refuses such a dump
)

// ParseEncoding reads "auto", "text", "base64", "hex" or "none".
func ParseEncoding(s string) (Encoding, error) {
	for e := Auto; e <= None; e++ {
		if s == e.String() {
			return e, nil
		}
	}
	return 0, fmt.Errorf("payload encoding %q is not known: use auto, text, base64, hex or none", s)
}

// String returns what ParseEncoding reads.
func (e Encoding) String() string {
	return [...]string{"auto", "text", "base64", "hex", "none"}[min(e, None)]
}

// header is the first record of a dump.
type header struct {
	version uint64
	marks   storage.Marks
	payload Encoding // None, or anything else
}

// trailer is the last record of a dump.
type trailer struct {
	packets, queues uint64
	hash            uint64 // xxhash64 of all bytes before the record
	hashed          bool   // the record has a hash; always, when written here
}

// form writes the records of one format: each method appends one to dst. One goroutine uses it at a time.
type form interface {
	header(dst []byte, h *header) []byte
	// queue is also told which queue the packets that follow belong to.
	queue(dst []byte, q *storage.Queue) []byte
	// enter is queue for one whose record is written already.
	enter(q *storage.Queue)
	packet(dst []byte, id storage.PacketID, p *storage.Packet, now int64) []byte
	end(dst []byte, e *trailer) []byte
}

func newForm(f Format, payload Encoding) form {
	switch f {
	case Msgpack:
		return newPacked(payload)
	case CSV:
		return &csv{payload: payload}
	}
	return &jsonl{payload: payload}
}

// The states of a packet, as a dump shows them. They follow from the other fields and the time.
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

// maxID is the length of the longest PacketID.String.
const maxID = len("4294967295/4294967295/18446744073709551615")

// appendID appends what PacketID.String returns.
func appendID(dst []byte, id storage.PacketID) []byte {
	dst = append(strconv.AppendUint(dst, uint64(id.Queue), 10), '/')
	dst = append(strconv.AppendUint(dst, uint64(id.Priority), 10), '/')
	return strconv.AppendUint(dst, id.Seq, 10)
}

func appendHash(dst []byte, hash uint64) []byte {
	const digits = "0123456789abcdef"
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], hash)
	for _, c := range b {
		dst = append(dst, digits[c>>4], digits[c&15])
	}
	return dst
}

// plainTags reports whether tags can be written by name: every name once, in order, and all of it
// UTF-8. Others are written as pairs of bytes.
func plainTags(tags []storage.Tag) bool {
	for i := range tags {
		if i > 0 && tags[i-1].Name >= tags[i].Name {
			return false
		}
		if (kindOf([]byte(tags[i].Name))|kindOf([]byte(tags[i].Value)))&kindBinary != 0 {
			return false
		}
	}
	return true
}
