package loadgen

import (
	"errors"
	"fmt"
)

// A list of Redis is a queue without priorities: LPUSH pushes, RPOP pops. Claims and commits are
// those of rfq.

// RedisLPush adds packets to the left of a list. Priorities do not count.
func RedisLPush(p Packets) Protocol {
	head := fmt.Appendf(nil, "*3\r\n$5\r\nLPUSH\r\n$%d\r\n%s\r\n", len(p.Queue), p.Queue)
	return &redisPush{packets: p, numbered: p.numbered(head)}
}

// RedisRPop takes the packet at the right of a list, without waiting.
func RedisRPop(queue string) Protocol {
	return &redisTake{repeated: redisCommand("RPOP", queue)}
}

// RedisBRPop takes the packet at the right of a list and waits for one.
func RedisBRPop(queue string) Protocol {
	return &redisTake{repeated: redisCommand("BRPOP", queue, "0")}
}

// RedisClaim makes each request a claim and a commit: RPOPLPUSH moves a packet to the list claimed,
// and LREM deletes the packet with the number of the request there, so that the lists keep their
// sum. Packets up to that number must be there.
func RedisClaim(p Packets, claimed string) Protocol {
	head := redisCommand("RPOPLPUSH", p.Queue, claimed)
	head = fmt.Appendf(head, "*4\r\n$4\r\nLREM\r\n$%d\r\n%s\r\n$1\r\n0\r\n", len(claimed), claimed)
	return &redisClaim{redisPush: redisPush{packets: p, numbered: p.numbered(head)}}
}

// numbered is a request that ends with a payload.
type numbered struct {
	request  []byte
	numberAt int // offset of the packet's number
}

func (p *Packets) numbered(head []byte) numbered {
	request := fmt.Appendf(head, "$%d\r\n", p.Size)
	at := len(request)
	return numbered{request: append(append(request, p.payload()...), "\r\n"...), numberAt: at}
}

func (r *numbered) append(dst []byte, number uint64) []byte {
	at := len(dst) + r.numberAt
	dst = append(dst, r.request...)
	putHex(dst[at:], number)
	return dst
}

type redisPush struct {
	packets Packets
	numbered
	replies respReader
}

func (c *redisPush) Append(dst []byte, first uint64, n int) []byte {
	for i := first; i < first+uint64(n); i++ {
		dst = c.append(dst, c.packets.Base+i)
	}
	return dst
}

func (c *redisPush) Consume(dst, src []byte) ([]byte, Progress, error) {
	p, err := c.replies.read(src)
	return dst, p, err
}

type redisClaim struct {
	redisPush
	half bool // whether the claim of a request is answered and its commit is not
}

func (c *redisClaim) Consume(dst, src []byte) ([]byte, Progress, error) {
	p, err := c.replies.read(src)
	if err == nil && p.Empty > 0 {
		err = errors.New("a list did not hold the packet that was to be claimed or committed")
	}
	if c.half {
		p.Done++
	}
	c.half = p.Done%2 == 1
	p.Done /= 2
	p.Packets = p.Done
	return dst, p, err
}

// RedisWork makes each request the work on one packet: LPUSH, RPOPLPUSH to the list claimed, and
// LREM of what that moved. LREM searches from the right, where the oldest claims are. A packet has
// at most 1024 bytes.
func RedisWork(p Packets, claimed string) Protocol {
	c := &redisWork{work: work{push: RedisLPush(p).Append, claim: redisCommand("RPOPLPUSH", p.Queue, claimed)}}
	head := fmt.Appendf(nil, "*4\r\n$4\r\nLREM\r\n$%d\r\n%s\r\n$2\r\n-1\r\n", len(claimed), claimed)
	c.readSome = c.replies.readSome
	c.replies.value = func(text []byte) {
		if c.step == claiming {
			c.claimed++
			c.ends = appendBulk(append(c.ends, head...), text)
		}
	}
	return c
}

type redisWork struct {
	work
	replies respReader
}
