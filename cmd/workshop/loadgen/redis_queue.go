package loadgen

import (
	"fmt"
	"strconv"
	"time"
)

// The queues of Holdfast over the Redis protocol: pushes, pops, claims, and the work on packets.

// QueuePush pushes packets of the default priority.
func QueuePush(p Packets) Protocol {
	head := fmt.Appendf(nil, "*3\r\n$5\r\nQPUSH\r\n$%d\r\n%s\r\n", len(p.Queue), p.Queue)
	return &redisPush{packets: p, numbered: p.numbered(head)}
}

// QueuePop takes a packet without waiting.
func QueuePop(queue string) Protocol {
	return &redisTake{repeated: redisCommand("QPOP", queue)}
}

// QueueClaim claims packets for so long, and leaves them claimed.
func QueueClaim(queue string, lease time.Duration) Protocol {
	return &redisTake{repeated: queueClaim(queue, lease)}
}

func queueClaim(queue string, lease time.Duration) repeated {
	return redisCommand("QCLAIM", queue, "LEASE", milliseconds(lease))
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// QueueWork makes each request a QPUSH, a QCLAIM and a QACK.
func QueueWork(p Packets) Protocol {
	c := &queueWork{work: work{push: QueuePush(p).Append, claim: redisCommand("QCLAIM", p.Queue)}}
	head := fmt.Appendf(nil, "*4\r\n$4\r\nQACK\r\n$%d\r\n%s\r\n", len(p.Queue), p.Queue)
	c.readSome = c.replies.readSome
	c.receipts.take = func(id, token []byte) {
		c.claimed++
		c.ends = appendBulk(appendBulk(append(c.ends, head...), id), token)
	}
	c.replies.value = func(text []byte) {
		if c.step == claiming {
			c.receipts.value(text)
		}
	}
	return c
}

type queueWork struct {
	work
	replies  respReader
	receipts receiptReader
}

// QueueGroupWork does the work of a window with one QMPUSH, one QCLAIM with COUNT and one QACK.
func QueueGroupWork(p Packets) Protocol {
	c := &queueGroupWork{packets: p, numbered: p.numbered(nil), queue: appendBulk(nil, []byte(p.Queue))}
	c.readSome = c.replies.readSome
	c.receipts.take = func(id, token []byte) {
		c.claimed++
		c.ends = appendBulk(appendBulk(c.ends, id), token)
	}
	c.replies.value = func(text []byte) {
		switch c.step {
		case claiming:
			c.receipts.value(text)
		case acking:
			acked, _ := number(text)
			c.acked = int(acked)
		}
	}
	return c
}

type queueGroupWork struct {
	work
	packets  Packets
	numbered        // a payload of QMPUSH
	queue    []byte // as an argument
	acked    int    // what QACK answered
	replies  respReader
	receipts receiptReader
}

func (c *queueGroupWork) Append(dst []byte, first uint64, n int) []byte {
	c.begin(n, 1)
	dst = appendCount(dst, '*', uint64(3+n))
	dst = append(append(dst, "$6\r\nQMPUSH\r\n"...), c.queue...)
	dst = appendBulkNumber(dst, uint64(n))
	for i := first; i < first+uint64(n); i++ {
		dst = c.append(dst, c.packets.Base+i)
	}
	return dst
}

func (c *queueGroupWork) Consume(dst, src []byte) ([]byte, Progress, error) {
	dst, p, err := c.consume(dst, src, c)
	if err == nil && p.Done != 0 && c.acked != p.Done {
		err = errNothingClaimed
	}
	return dst, p, err
}

func (c *queueGroupWork) claims(dst []byte, packets int) ([]byte, int) {
	dst = append(append(dst, "*4\r\n$6\r\nQCLAIM\r\n"...), c.queue...)
	dst = append(dst, "$5\r\nCOUNT\r\n"...)
	return appendBulkNumber(dst, uint64(packets)), 1
}

func (c *queueGroupWork) acks(dst []byte) ([]byte, int) {
	dst = appendCount(dst, '*', uint64(2+2*c.claimed))
	dst = append(append(dst, "$4\r\nQACK\r\n"...), c.queue...)
	return append(dst, c.ends...), 1
}

// renewedLease is longer than any run, so that no lease ends in it.
const renewedLease = MaxLimit

// QueueRenew makes the requests QEXTEND and QPROGRESS in turn, of claims that stand. A connection
// claims the packets of its first window before it sends the requests of that window.
func QueueRenew(queue string) Protocol {
	c := &queueRenew{claim: queueClaim(queue, renewedLease)}
	c.receipts.take = func(id, token []byte) {
		c.requests = append(c.requests,
			redisCommand("QEXTEND", queue, string(id), string(token), milliseconds(renewedLease)),
			redisCommand("QPROGRESS", queue, string(id), string(token), "50"))
	}
	c.replies.value = func(text []byte) {
		if c.open > 0 {
			c.receipts.value(text)
		}
	}
	return c
}

type queueRenew struct {
	claim    repeated
	open     int // claims of the first window that are not answered
	window   int // requests that wait for those
	requests [][]byte
	next     int // of requests
	replies  respReader
	receipts receiptReader
}

func (c *queueRenew) Append(dst []byte, _ uint64, n int) []byte {
	if len(c.requests) == 0 {
		c.open, c.window = n, n
		return c.claim.Append(dst, 0, n)
	}
	for range n {
		dst = append(dst, c.requests[c.next%len(c.requests)]...)
		c.next++
	}
	return dst
}

func (c *queueRenew) Consume(dst, src []byte) ([]byte, Progress, error) {
	p, err := c.replies.read(src)
	if err != nil || c.open == 0 {
		p.Packets, p.Empty = p.Done, 0
		return dst, p, err
	}
	if p.Empty > 0 || p.Done > c.open {
		return dst, p, errNothingClaimed
	}
	if c.open -= p.Done; c.open == 0 {
		dst = c.Append(dst, 0, c.window)
	}
	return dst, Progress{Used: p.Used}, nil
}

// receiptReader finds what names a claim in the fields of a packet, which come as names and values.
type receiptReader struct {
	name fieldName
	id   []byte
	take func(id, token []byte)
}

type fieldName int

const (
	otherField fieldName = iota
	idField
	tokenField
)

// value takes the next name or value.
func (r *receiptReader) value(text []byte) {
	before := r.name
	r.name = otherField
	switch {
	case before == idField:
		r.id = append(r.id[:0], text...)
	case before == tokenField:
		r.take(r.id, text)
	case string(text) == "id":
		r.name = idField
	case string(text) == "token":
		r.name = tokenField
	}
}
