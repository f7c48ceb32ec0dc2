package loadgen

import (
	"errors"
	"fmt"
)

// The commands of a queue in Redis, in the arrays of bulk strings that its
// protocol wants. A sorted set is a priority queue by ZADD and ZPOPMIN, a list
// is a plain queue by LPUSH and RPOP.

// RedisZAdd adds packets to a sorted set, scored by their priority.
func RedisZAdd(p Packets) Protocol {
	return newRedisPush(p, "ZADD", true)
}

// RedisZPopMin takes the best member of a sorted set, without waiting.
func RedisZPopMin(queue string) Protocol {
	return &redisTake{request: redisCommand("ZPOPMIN", queue)}
}

// RedisBZPopMin takes the best member of a sorted set and waits for one.
func RedisBZPopMin(queue string) Protocol {
	return &redisTake{request: redisCommand("BZPOPMIN", queue, "0")}
}

// RedisLPush adds packets to a list.
func RedisLPush(p Packets) Protocol {
	return newRedisPush(p, "LPUSH", false)
}

// RedisRPop takes the oldest packet of a list, without waiting.
func RedisRPop(queue string) Protocol {
	return &redisTake{request: redisCommand("RPOP", queue)}
}

// RedisPair makes each request a ZADD and a ZPOPMIN of the same sorted set.
func RedisPair(p Packets) Protocol {
	return &redisPair{push: *newRedisPush(p, "ZADD", true), take: redisCommand("ZPOPMIN", p.Queue)}
}

// redisPush is ZADD or LPUSH: the request is head, the score where there is
// one, and the member.
type redisPush struct {
	packets Packets
	head    []byte
	scored  bool
	member  []byte // its length line, the payload and the closing CR LF
	numAt   int    // offset of the number in member
	replies respReader
}

func newRedisPush(p Packets, command string, scored bool) *redisPush {
	args := 3
	if scored {
		args = 4
	}
	head := fmt.Appendf(nil, "*%d\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n", args, len(command), command, len(p.Queue), p.Queue)
	member := fmt.Appendf(nil, "$%d\r\n", p.Size)
	numAt := len(member)
	member = append(append(member, p.payload()...), "\r\n"...)
	return &redisPush{packets: p, head: head, scored: scored, member: member, numAt: numAt}
}

func (c *redisPush) Append(dst []byte, first uint64, n int) []byte {
	for i := first; i < first+uint64(n); i++ {
		dst = c.appendOne(dst, i)
	}
	return dst
}

func (c *redisPush) appendOne(dst []byte, i uint64) []byte {
	dst = append(dst, c.head...)
	if c.scored {
		dst = appendBulkNumber(dst, c.packets.priority(c.packets.Base+i))
	}
	at := len(dst) + c.numAt
	dst = append(dst, c.member...)
	putHex(dst[at:], c.packets.Base+i)
	return dst
}

func (c *redisPush) Consume(dst, src []byte) ([]byte, Progress, error) {
	used, replies, empty, err := c.replies.read(src)
	if err == nil && empty > 0 {
		err = errors.New("the server says that a packet was there before, expected every packet to be new; use an empty queue or another base number")
	}
	return dst, Progress{Used: used, Done: replies, Packets: replies}, err
}

// redisTake is a command without a number whose reply is a packet or nothing.
type redisTake struct {
	request []byte
	replies respReader
}

func (c *redisTake) Append(dst []byte, _ uint64, n int) []byte {
	for range n {
		dst = append(dst, c.request...)
	}
	return dst
}

func (c *redisTake) Consume(dst, src []byte) ([]byte, Progress, error) {
	used, replies, empty, err := c.replies.read(src)
	return dst, Progress{Used: used, Done: replies, Empty: empty, Packets: replies - empty}, err
}

// redisPair counts one request for every two replies.
type redisPair struct {
	push redisPush
	take []byte
	odd  int // replies that wait for their other half, 0 or 1
}

func (c *redisPair) Append(dst []byte, first uint64, n int) []byte {
	for i := first; i < first+uint64(n); i++ {
		dst = c.push.appendOne(dst, i)
		dst = append(dst, c.take...)
	}
	return dst
}

func (c *redisPair) Consume(dst, src []byte) ([]byte, Progress, error) {
	used, replies, empty, err := c.push.replies.read(src)
	if err == nil && empty > 0 {
		err = errors.New("a push and pop pair found a packet that was there before, or none to take; use an empty queue or another base number")
	}
	replies += c.odd
	c.odd = replies % 2
	return dst, Progress{Used: used, Done: replies / 2, Packets: replies / 2}, err
}

// respReader counts the replies of a Redis stream. It skips bulk strings as they
// come in, so a reply larger than any buffer needs no memory.
type respReader struct {
	elements int64 // elements still to come of the array being read
	skip     int64 // bytes still to come of the bulk string being read, its CR LF included
}

// maxElements bounds what one array may announce, so that a broken server
// cannot make the count overflow.
const maxElements = 1 << 32

// read returns the bytes it used, the replies that were completed, and how many
// of them said "nothing": nil, an empty array, or the integer 0. An error reply
// of the server is an error.
func (r *respReader) read(src []byte) (used, replies, empty int, err error) {
	for used < len(src) {
		if r.skip > 0 {
			n := min(r.skip, int64(len(src)-used))
			used += int(n)
			r.skip -= n
			if r.skip == 0 && r.elementEnd() {
				replies++
			}
			continue
		}
		text, size, err := line(src[used:])
		if err != nil || size == 0 {
			return used, replies, empty, err
		}
		used += size
		whole, nothing, err := r.element(text)
		if err != nil {
			return used, replies, empty, err
		}
		if whole {
			replies++
			if nothing {
				empty++
			}
		}
	}
	return used, replies, empty, nil
}

// element takes the line that begins an element. It tells whether the line
// completes a reply, and whether that reply says "nothing".
func (r *respReader) element(text []byte) (whole, nothing bool, err error) {
	if len(text) == 0 {
		return false, false, errors.New("the server sent an empty line, expected a Redis reply")
	}
	top := r.elements == 0
	switch text[0] {
	case '+':
		return r.elementEnd(), false, nil
	case '-':
		return false, false, fmt.Errorf("the server answered %q", text[1:])
	case ':', '$', '*':
	default:
		return false, false, fmt.Errorf("the server sent %q, expected a Redis reply", text)
	}
	n, ok := number(text[1:])
	if !ok || n < -1 && text[0] != ':' || n > maxElements && text[0] != ':' {
		return false, false, fmt.Errorf("the server sent %q, expected a number there", text)
	}
	switch {
	case text[0] == ':':
		return r.elementEnd(), top && n == 0, nil
	case n < 0 || text[0] == '*' && n == 0:
		return r.elementEnd(), top, nil
	case text[0] == '*':
		// The array's own place, if it is nested, is taken by its elements.
		r.elements = max(r.elements-1, 0) + n
		return false, false, nil
	default:
		r.skip = n + 2
		return false, false, nil
	}
}

// elementEnd notes that an element is complete and tells whether the reply is.
func (r *respReader) elementEnd() bool {
	if r.elements > 0 {
		r.elements--
	}
	return r.elements == 0
}

// redisCommand makes the array of bulk strings of a command.
func redisCommand(args ...string) []byte {
	request := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, arg := range args {
		request = fmt.Appendf(request, "$%d\r\n%s\r\n", len(arg), arg)
	}
	return request
}
