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
	p, err := eachLine(src, func(text []byte) (bool, error) {
		if !bytes.HasPrefix(text, []byte("INSERTED ")) {
			return false, fmt.Errorf("the server answered %q to a put, expected INSERTED and a job number", text)
		}
		return true, nil
	})
	return dst, p, err
}

// BeanstalkdTake reserves a job without waiting, and deletes it. The request is answered when the
// deletion is confirmed.
func BeanstalkdTake() Protocol {
	return &beanstalkdTake{repeated: repeated("reserve-with-timeout 0\r\n")}
}

type beanstalkdTake struct {
	repeated
	skip int64 // bytes of a reserved job that are still to come, its CR LF included
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
		rest, reserved := bytes.CutPrefix(text, []byte("RESERVED "))
		switch {
		case reserved:
			id, length, _ := bytes.Cut(rest, []byte{' '})
			n, ok := number(length)
			if !ok || n < 0 {
				return dst, p, fmt.Errorf("the server sent %q, expected RESERVED, a job number and a length", text)
			}
			c.skip = n + 2
			dst = append(append(append(dst, "delete "...), id...), "\r\n"...)
		case string(text) == "DELETED":
			p.answer(true)
		case string(text) == "TIMED_OUT":
			p.answer(false)
		default:
			return dst, p, fmt.Errorf("the server answered %q, expected RESERVED, DELETED or TIMED_OUT", text)
		}
		p.Used += size
	}
}
