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
func BeanstalkdTake() Protocol { return &beanstalkdTake{repeated: repeated(beanstalkdReserve)} }

const beanstalkdReserve = "reserve-with-timeout 0\r\n"

type beanstalkdTake struct {
	repeated
	jobs jobReader
}

func (c *beanstalkdTake) Consume(dst, src []byte) ([]byte, Progress, error) {
	var p Progress
	for {
		text, err := c.jobs.next(src, &p)
		if err != nil || text == nil {
			return dst, p, err
		}
		id, err := c.jobs.reserved(text)
		if err != nil {
			return dst, p, err
		}
		switch {
		case id != nil:
			dst = appendDelete(dst, id)
		case string(text) == "DELETED":
			p.answer(true)
		case string(text) == "TIMED_OUT":
			p.answer(false)
		default:
			return dst, p, fmt.Errorf("the server answered %q, expected RESERVED, DELETED or TIMED_OUT", text)
		}
	}
}

func appendDelete(dst, id []byte) []byte {
	return append(append(append(dst, "delete "...), id...), "\r\n"...)
}

// BeanstalkdWork makes each request the work on one job: put, reserve and delete.
func BeanstalkdWork(p Packets) Protocol {
	c := &beanstalkdWork{work: work{push: BeanstalkdPut(p).Append, claim: repeated(beanstalkdReserve)}}
	c.readSome = c.read
	return c
}

type beanstalkdWork struct {
	work
	jobs jobReader
}

func (c *beanstalkdWork) read(src []byte, most int) (Progress, error) {
	var p Progress
	for p.Done < most {
		text, err := c.jobs.next(src, &p)
		if err == nil && text != nil {
			err = c.answer(text, &p)
		}
		if err != nil || text == nil {
			return p, err
		}
	}
	return p, nil
}

func (c *beanstalkdWork) answer(text []byte, p *Progress) error {
	id, err := c.jobs.reserved(text)
	switch {
	case err != nil:
		return err
	case id != nil && c.step == claiming:
		c.claimed++
		c.ends = appendDelete(c.ends, id)
	case c.step == pushing && bytes.HasPrefix(text, []byte("INSERTED ")):
	case c.step == acking && string(text) == "DELETED":
	default:
		return fmt.Errorf("the server answered %q, expected INSERTED, RESERVED and DELETED in turn", text)
	}
	p.answer(true)
	return nil
}

// jobReader reads the lines of replies, and skips the jobs behind them.
type jobReader struct {
	skip int64 // bytes of a reserved job that are still to come, its CR LF included
}

// next returns the next line of src, or nil if it is not complete.
func (r *jobReader) next(src []byte, p *Progress) ([]byte, error) {
	n := min(r.skip, int64(len(src)-p.Used))
	p.Used += int(n)
	if r.skip -= n; r.skip > 0 {
		return nil, nil
	}
	text, size, err := line(src[p.Used:])
	p.Used += size
	return text, err
}

// reserved returns the number of the job that a line announces, or nil. The job is skipped.
func (r *jobReader) reserved(text []byte) ([]byte, error) {
	rest, found := bytes.CutPrefix(text, []byte("RESERVED "))
	if !found {
		return nil, nil
	}
	id, length, _ := bytes.Cut(rest, []byte{' '})
	n, ok := number(length)
	if !ok || n < 0 {
		return nil, fmt.Errorf("the server sent %q, expected RESERVED, a job number and a length", text)
	}
	r.skip = n + 2
	return id, nil
}
