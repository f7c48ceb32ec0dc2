package loadgen

import (
	"errors"
	"fmt"
	"math"
)

// A sorted set of Redis is a priority queue: ZADD pushes, ZPOPMIN pops.

// RedisZAdd adds packets to a sorted set. Their score is their priority.
func RedisZAdd(p Packets) Protocol {
	head := fmt.Appendf(nil, "*4\r\n$4\r\nZADD\r\n$%d\r\n%s\r\n", len(p.Queue), p.Queue)
	member := fmt.Appendf(nil, "$%d\r\n", p.Size)
	numberAt := len(member)
	member = append(append(member, p.payload()...), "\r\n"...)
	return &redisAdd{packets: p, head: head, member: member, numberAt: numberAt}
}

// RedisZPopMin takes the best member of a sorted set, without waiting.
func RedisZPopMin(queue string) Protocol {
	return &redisTake{repeated: redisCommand("ZPOPMIN", queue)}
}

// RedisBZPopMin takes the best member of a sorted set and waits for one.
func RedisBZPopMin(queue string) Protocol {
	return &redisTake{repeated: redisCommand("BZPOPMIN", queue, "0")}
}

// RedisLogin logs in.
func RedisLogin(user, password string) Protocol {
	return &redisTake{repeated: redisCommand("AUTH", user, password)}
}

type redisAdd struct {
	packets  Packets
	head     []byte // the command and its key
	member   []byte // its length line, the payload and the closing CR LF
	numberAt int    // offset of the packet's number in member
	replies  respReader
}

func (c *redisAdd) Append(dst []byte, first uint64, n int) []byte {
	for i := first; i < first+uint64(n); i++ {
		dst = append(dst, c.head...)
		dst = appendBulkNumber(dst, c.packets.priority(c.packets.Base+i))
		at := len(dst) + c.numberAt
		dst = append(dst, c.member...)
		putHex(dst[at:], c.packets.Base+i)
	}
	return dst
}

func (c *redisAdd) Consume(dst, src []byte) ([]byte, Progress, error) {
	p, err := c.replies.read(src)
	if err == nil && p.Empty > 0 {
		err = errors.New("the server says that a packet was there before, expected every packet to be new; use an empty queue or another base number")
	}
	return dst, p, err
}

// redisTake is a command whose reply is a packet or nothing.
type redisTake struct {
	repeated
	replies respReader
}

func (c *redisTake) Consume(dst, src []byte) ([]byte, Progress, error) {
	p, err := c.replies.read(src)
	return dst, p, err
}

// respReader counts the replies of a Redis stream. It skips strings as they come in, so a reply may
// be larger than any buffer.
type respReader struct {
	elements int64 // elements of the array that are still to come
	skip     int64 // bytes of the string that are still to come, its CR LF included

	// value, if set, gets each number, and each string of at most maxLine bytes.
	value func(text []byte)
}

// maxLength bounds the arrays and strings that a server may announce, so that no sum overflows.
const maxLength = 1 << 32

// read counts each reply as one request and one packet, or as empty if it says "nothing": nil, an
// empty array, or the integer 0. An error reply of the server is an error.
func (r *respReader) read(src []byte) (Progress, error) { return r.readSome(src, math.MaxInt) }

// readSome reads so many replies at most.
func (r *respReader) readSome(src []byte, most int) (p Progress, err error) {
	for p.Used < len(src) && p.Done < most {
		if r.skip > 0 {
			n := min(r.skip, int64(len(src)-p.Used))
			p.Used += int(n)
			if r.skip -= n; r.skip == 0 {
				r.elementEnd(&p, false)
			}
			continue
		}
		text, size, err := line(src[p.Used:])
		if r.value != nil && size > 0 && !r.give(text, src[p.Used+size:]) {
			return p, nil
		}
		if err == nil && size > 0 {
			err = r.element(text, &p)
		}
		if err != nil || size == 0 {
			return p, err
		}
		p.Used += size
	}
	return p, nil
}

// element takes the line that begins an element.
func (r *respReader) element(text []byte, p *Progress) error {
	if len(text) == 0 {
		return errors.New("the server sent an empty line, expected a Redis reply")
	}
	kind, n := text[0], int64(0)
	switch kind {
	case '+':
	case '-':
		return fmt.Errorf("the server answered %q", text[1:])
	case ':', '$', '*':
		var ok bool
		if n, ok = number(text[1:]); !ok || kind != ':' && (n < -1 || n > maxLength) {
			return fmt.Errorf("the server sent %q, expected a number there", text)
		}
	default:
		return fmt.Errorf("the server sent %q, expected a Redis reply", text)
	}
	switch {
	case kind == '*' && n > 0:
		// The elements of a nested array take its place.
		r.elements = max(r.elements-1, 0) + n
	case kind == '$' && n >= 0:
		r.skip = n + 2
	default:
		r.elementEnd(p, kind == '*' || kind == '$' || kind == ':' && n == 0)
	}
	return nil
}

// give hands over the value of an element, or returns false while its string is not complete.
func (r *respReader) give(text, rest []byte) bool {
	if len(text) == 0 {
		return true // element says that this is wrong
	}
	n, ok := number(text[1:])
	switch {
	case text[0] == ':':
		r.value(text[1:])
	case text[0] == '$' && ok && n >= 0 && n <= maxLine:
		if int64(len(rest)) < n+2 {
			return false
		}
		r.value(rest[:n])
	}
	return true
}

// elementEnd counts an element, and with the last one the reply.
func (r *respReader) elementEnd(p *Progress, nothing bool) {
	top := r.elements == 0
	if !top {
		r.elements--
	}
	if r.elements == 0 {
		p.answer(!top || !nothing)
	}
}

// redisCommand makes the array of bulk strings of a command.
func redisCommand(args ...string) []byte {
	request := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, arg := range args {
		request = fmt.Appendf(request, "$%d\r\n%s\r\n", len(arg), arg)
	}
	return request
}
