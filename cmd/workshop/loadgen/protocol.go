package loadgen

import (
	"bytes"
	"errors"
	"strconv"
)

// Protocol is the client's side of one connection: it writes requests and counts the replies. A
// value belongs to one connection and is used by one goroutine at a time. After their first calls
// neither method may allocate: the cost of the generator must not show in the server's figures.
type Protocol interface {
	// Append appends n requests to dst, which the connection sends in one write. They are
	// numbered from first. No two requests of a group have the same number, so a packet that is
	// named after its number is unique.
	Append(dst []byte, first uint64, n int) []byte

	// Consume counts the replies at the front of src, which may end anywhere inside a reply. The
	// next call gets the bytes that were not used again, with more behind them. Consume appends
	// to dst what a reply calls for: the deletion of a reserved job, the next credit of a
	// subscription. An error means that the server refused, or does not speak this protocol.
	Consume(dst, src []byte) ([]byte, Progress, error)
}

// Progress is what one call of Consume found.
type Progress struct {
	Used    int // bytes of src that were used
	Done    int // requests that are answered, empty answers included
	Empty   int // answered requests that found nothing to take
	Packets int // packets acknowledged (pushes) or received (pops)
}

// add sums everything but Used.
func (p *Progress) add(o Progress) {
	p.Done += o.Done
	p.Empty += o.Empty
	p.Packets += o.Packets
}

// answer counts one answered request.
func (p *Progress) answer(packet bool) {
	p.Done++
	if packet {
		p.Packets++
	} else {
		p.Empty++
	}
}

// driver is a Protocol made of its two halves.
type driver struct {
	write writer
	read  reader
}

type (
	writer func(dst []byte, first uint64, n int) []byte
	reader func(dst, src []byte) ([]byte, Progress, error)
)

func (d *driver) Append(dst []byte, first uint64, n int) []byte     { return d.write(dst, first, n) }
func (d *driver) Consume(dst, src []byte) ([]byte, Progress, error) { return d.read(dst, src) }

// part appends request i, or a part of it.
type part func(dst []byte, i uint64) []byte

// all writes the requests of a window one after the other.
func (p part) all(dst []byte, first uint64, n int) []byte {
	for i := first; i < first+uint64(n); i++ {
		dst = p(dst, i)
	}
	return dst
}

// request puts the pieces of a request together. A piece is text, a number that follows from that
// of the request, or a part.
func request(pieces ...any) part {
	var parts []part
	var text []byte
	flush := func(next part) {
		before := text
		parts = append(parts, func(dst []byte, i uint64) []byte { return next(append(dst, before...), i) })
		text = nil
	}
	for _, piece := range pieces {
		switch piece := piece.(type) {
		case string:
			text = append(text, piece...)
		case func(uint64) uint64:
			flush(func(dst []byte, i uint64) []byte { return strconv.AppendUint(dst, piece(i), 10) })
		case part:
			flush(piece)
		}
	}
	return func(dst []byte, i uint64) []byte {
		for _, p := range parts {
			dst = p(dst, i)
		}
		return append(dst, text...)
	}
}

// maxLine bounds a line of text in a reply: a status, a length, an error. No server here sends a
// longer one.
const maxLine = 1024

var errLongLine = errors.New("the server sent a line of more than 1024 bytes where a reply was expected; " +
	"check that it speaks this protocol")

// line returns the first line of src without its line end, and the bytes it takes; 0 bytes when the
// line is not complete.
func line(src []byte) ([]byte, int, error) {
	end := bytes.IndexByte(src[:min(len(src), maxLine+1)], '\n')
	if end < 0 && len(src) > maxLine {
		return nil, 0, errLongLine
	}
	if end < 0 {
		return nil, 0, nil
	}
	return bytes.TrimSuffix(src[:end], []byte{'\r'}), end + 1, nil
}

// lines counts the complete lines of src as one answered request each. For each of them reply says
// whether it brought a packet, or why it is refused.
func lines(reply func(text []byte) (packet bool, err error)) reader {
	return func(dst, src []byte) (_ []byte, p Progress, err error) {
		for {
			text, size, err := line(src[p.Used:])
			if err != nil || size == 0 {
				return dst, p, err
			}
			packet, err := reply(text)
			if err != nil {
				return dst, p, err
			}
			p.answer(packet)
			p.Used += size
		}
	}
}

// number reads a decimal integer.
func number(text []byte) (int64, bool) {
	n, err := strconv.ParseInt(string(text), 10, 64)
	return n, err == nil
}
