package loadgen

import (
	"bytes"
	"fmt"
	"strconv"
)

// BeanstalkdPut puts jobs into the default tube.
func BeanstalkdPut(p Packets) Protocol {
	payload := append(p.payload(), "\r\n"...)
	head := fmt.Sprintf(" 0 120 %d\r\n", p.Size) // no delay, two minutes to run
	return &beanstalkdPut{packets: p, head: head, payload: payload}
}

type beanstalkdPut struct {
	packets Packets
	head    string // what stands between the priority and the payload
	payload []byte
}

var (
	wordInserted = []byte("INSERTED ")
	wordReserved = []byte("RESERVED ")
	wordDeleted  = []byte("DELETED")
	wordTimedOut = []byte("TIMED_OUT")
)

func (c *beanstalkdPut) Append(dst []byte, first uint64, n int) []byte {
	for i := first; i < first+uint64(n); i++ {
		dst = append(dst, "put "...)
		dst = strconv.AppendUint(dst, c.packets.priority(c.packets.Base+i), 10)
		dst = append(dst, c.head...)
		at := len(dst)
		dst = append(dst, c.payload...)
		putHex(dst[at:], c.packets.Base+i)
	}
	return dst
}

func (c *beanstalkdPut) Consume(dst, src []byte) ([]byte, Progress, error) {
	var p Progress
	for {
		text, size, err := line(src[p.Used:])
		if err != nil || size == 0 {
			return dst, p, err
		}
		if !bytes.HasPrefix(text, wordInserted) {
			return dst, p, fmt.Errorf("the server answered %q to a put, expected INSERTED and a job number", text)
		}
		p.Used += size
		p.Done++
		p.Packets++
	}
}

// BeanstalkdTake reserves a job and deletes it; the request is complete when the
// deletion is confirmed. With wait the reservation waits for a job: only for a
// window of one, because deletions would queue up behind waiting reservations.
func BeanstalkdTake(wait bool) Protocol {
	request := "reserve-with-timeout 0\r\n"
	if wait {
		request = "reserve\r\n"
	}
	return &beanstalkdTake{request: request}
}

type beanstalkdTake struct {
	request string
	skip    int64 // bytes still to come of a reserved job, its CR LF included
}

func (c *beanstalkdTake) Append(dst []byte, _ uint64, n int) []byte {
	for range n {
		dst = append(dst, c.request...)
	}
	return dst
}

func (c *beanstalkdTake) Consume(dst, src []byte) ([]byte, Progress, error) {
	var p Progress
	for {
		n := min(c.skip, int64(len(src)-p.Used))
		p.Used += int(n)
		c.skip -= n
		text, size, err := line(src[p.Used:])
		if c.skip > 0 || err != nil || size == 0 {
			return dst, p, err
		}
		switch {
		case bytes.HasPrefix(text, wordReserved):
			id, length, ok := bytes.Cut(text[len(wordReserved):], []byte{' '})
			bytesLeft, isNumber := number(length)
			if !ok || !isNumber || bytesLeft < 0 {
				return dst, p, fmt.Errorf("the server sent %q, expected RESERVED, a job number and a length", text)
			}
			c.skip = bytesLeft + 2
			dst = append(append(append(dst, "delete "...), id...), "\r\n"...)
		case bytes.Equal(text, wordDeleted):
			p.Done++
			p.Packets++
		case bytes.Equal(text, wordTimedOut):
			p.Done++
			p.Empty++
		default:
			return dst, p, fmt.Errorf("the server answered %q, expected RESERVED, DELETED or TIMED_OUT", text)
		}
		p.Used += size
	}
}
