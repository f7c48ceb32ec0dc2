package loadgen

import "errors"

// Protocol is one connection's side of a conversation: it writes requests and
// counts the replies to them. A value belongs to one connection and is used by
// one goroutine at a time. Neither method may allocate once it is warm: the
// cost of the generator must not show in the figures of the server.
type Protocol interface {
	// Append appends n requests to dst. They are numbered from first, and
	// two connections of a group are never given the same number, so that
	// a packet named after its number is unique. The connection sends what
	// was appended in one write.
	Append(dst []byte, first uint64, n int) []byte

	// Consume deals with the replies at the front of src, which may be cut
	// anywhere; what it did not use is shown again with more behind it. It
	// appends to dst whatever must be sent because of a reply (the deletion
	// of a reserved job, the next credit of a subscription). An error means
	// that the server refused, or that it does not speak this protocol.
	Consume(dst, src []byte) ([]byte, Progress, error)
}

// Progress is what one call of Consume found.
type Progress struct {
	Used    int // bytes of src that need not be shown again
	Done    int // requests that are answered, empty answers included
	Empty   int // of those, the ones that found no packet to take
	Packets int // packets acknowledged (pushes) or received (pops)
}

// add sums everything but Used.
func (p *Progress) add(o Progress) {
	p.Done += o.Done
	p.Empty += o.Empty
	p.Packets += o.Packets
}

// maxLine bounds the text line of a reply: a status, a length, an error. The
// longest legitimate one is an error sentence of Redis, far below this.
const maxLine = 1024

var errLongLine = errors.New("the server sent a line of more than 1024 bytes where a reply was expected; check that it speaks this protocol")

// line returns the text of the first line of src without its CR LF, and the
// bytes it takes; 0 bytes when the line is not complete yet.
func line(src []byte) ([]byte, int, error) {
	for i, c := range src {
		if i > maxLine {
			return nil, 0, errLongLine
		}
		if c != '\n' {
			continue
		}
		end := i
		if end > 0 && src[end-1] == '\r' {
			end--
		}
		return src[:end], i + 1, nil
	}
	if len(src) > maxLine {
		return nil, 0, errLongLine
	}
	return nil, 0, nil
}

// number reads a decimal integer of at most 18 digits, with an optional minus.
func number(text []byte) (int64, bool) {
	negative := len(text) > 0 && text[0] == '-'
	if negative {
		text = text[1:]
	}
	if len(text) == 0 || len(text) > 18 {
		return 0, false
	}
	var n int64
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	if negative {
		n = -n
	}
	return n, true
}
