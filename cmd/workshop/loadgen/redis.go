package loadgen

import (
	"errors"
	"fmt"
	"math"
	"strconv"
)

// Redis makes each request one command. Its reply is a packet or nothing. An argument is text, a
// number that follows from that of the request, or Packets for the payload of one, or Items for the
// name of one.
//
// So ZADD and ZPOPMIN have a sorted set be a priority queue, ZINCRBY and ZPOPMAX a board, and LPUSH
// and RPOP a list a queue without priorities. QPUSH and QPOP are the queues of Holdfast.
func Redis(args ...any) Protocol { return &driver{command(args...).all, new(respReader).consume} }

// RedisLogin logs in.
func RedisLogin(user, password string) Protocol { return Redis("AUTH", user, password) }

// RedisLPush adds packets to the left of a list. Priorities do not count.
func RedisLPush(p Packets) Protocol { return Redis("LPUSH", p.Queue, p) }

// RedisRPop takes the packet at the right of a list, without waiting.
func RedisRPop(queue string) Protocol { return Redis("RPOP", queue) }

// RedisSet sets random strings to a value of so many bytes.
func RedisSet(items Items, size int) Protocol {
	return Redis("SET", items, string((&Packets{Size: size}).payload()))
}

// RedisZAdd adds packets to a sorted set. Their score is their priority.
func RedisZAdd(p Packets) Protocol {
	return counted(func(c Progress) (Progress, error) {
		if c.Empty > 0 {
			return c, errors.New("the server says that a packet was there before, expected every packet to be new; " +
				"use an empty queue or another base number")
		}
		return c, nil
	}, command("ZADD", p.Queue, p.priority, p))
}

// RedisZIncrBy updates random items of a board.
func RedisZIncrBy(items Items) Protocol {
	return counted(func(c Progress) (Progress, error) {
		c.Packets, c.Empty = c.Done, 0
		return c, nil
	}, command("ZINCRBY", items.Queue, items.amount, items.item))
}

// RedisClaim makes each request a claim and a commit, as rfq does: RPOPLPUSH moves a packet to the
// list claimed, and LREM deletes the packet with the number of the request there, so that the lists
// keep their sum. Packets up to that number must be there.
func RedisClaim(p Packets, claimed string) Protocol {
	half := false // whether the claim of a request is answered and its commit is not
	return counted(func(c Progress) (Progress, error) {
		if c.Empty > 0 {
			return c, errors.New("a list did not hold the packet that was to be claimed or committed")
		}
		if half {
			c.Done++
		}
		half = c.Done%2 == 1
		c.Done /= 2
		c.Packets = c.Done
		return c, nil
	}, command("RPOPLPUSH", p.Queue, claimed), command("LREM", claimed, "0", p))
}

// counted makes each request some commands, whose replies are counted in another way.
func counted(recount func(Progress) (Progress, error), commands ...any) Protocol {
	var replies respReader
	return &driver{request(commands...).all, func(dst, src []byte) ([]byte, Progress, error) {
		p, err := replies.readSome(src, math.MaxInt)
		if err == nil {
			p, err = recount(p)
		}
		return dst, p, err
	}}
}

// command makes the array of bulk strings of a command, as Redis says.
func command(args ...any) part {
	pieces := []any{fmt.Sprintf("*%d\r\n", len(args))}
	for _, arg := range args {
		switch arg := arg.(type) {
		case string:
			pieces = append(pieces, fmt.Sprintf("$%d\r\n%s\r\n", len(arg), arg))
		case func(uint64) uint64:
			pieces = append(pieces, part(func(dst []byte, i uint64) []byte { return appendBulkNumber(dst, arg(i)) }))
		case Packets:
			pieces = append(pieces, fmt.Sprintf("$%d\r\n", arg.Size), arg.numbered(), "\r\n")
		case Items:
			const digits = 16
			name := part(func(dst []byte, i uint64) []byte {
				dst = append(dst, "0000000000000000"...)
				putHex(dst[len(dst)-digits:], arg.item(i))
				return dst
			})
			pieces = append(pieces, fmt.Sprintf("$%d\r\n%s:", len(arg.Queue)+1+digits, arg.Queue), name, "\r\n")
		}
	}
	return request(pieces...)
}

// appendBulkNumber appends n as a bulk string.
func appendBulkNumber(dst []byte, n uint64) []byte {
	digits := uint64(1)
	for rest := n; rest >= 10; rest /= 10 {
		digits++
	}
	dst = strconv.AppendUint(appendCount(dst, '$', digits), n, 10)
	return append(dst, '\r', '\n')
}

// appendBulk appends a bulk string.
func appendBulk(dst, text []byte) []byte {
	dst = append(appendCount(dst, '$', uint64(len(text))), text...)
	return append(dst, '\r', '\n')
}

// appendCount appends the line that begins an array or a bulk string.
func appendCount(dst []byte, kind byte, n uint64) []byte {
	dst = strconv.AppendUint(append(dst, kind), n, 10)
	return append(dst, '\r', '\n')
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

func (r *respReader) consume(dst, src []byte) ([]byte, Progress, error) {
	p, err := r.readSome(src, math.MaxInt)
	return dst, p, err
}

// readSome counts each reply, so many at most, as one request and one packet, or as empty if it
// says "nothing": nil, an empty array, or the integer 0. An error reply of the server is an error.
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
