package loadgen

import (
	"bytes"
	"fmt"
)

// beanstalkdPut puts with no delay and two minutes to run.
func beanstalkdPut(p *Packets) part {
	return request("put ", p.priority, fmt.Sprintf(" 0 120 %d\r\n", p.Size), p.numbered(), "\r\n")
}

var (
	beanstalkdReserve  = request("reserve-with-timeout 0\r\n")
	beanstalkdInserted = []byte("INSERTED ")
)

// BeanstalkdPut puts jobs into the default tube.
func BeanstalkdPut(p Packets) Protocol {
	return &driver{beanstalkdPut(&p).all, lines(func(text []byte) (bool, error) {
		if !bytes.HasPrefix(text, beanstalkdInserted) {
			return false, fmt.Errorf("the server answered %q to a put, expected INSERTED and a job number", text)
		}
		return true, nil
	})}
}

// BeanstalkdTake reserves a job without waiting, and deletes it. The request is answered when the
// deletion is confirmed.
func BeanstalkdTake() Protocol {
	var jobs jobReader
	return &driver{beanstalkdReserve.all, func(dst, src []byte) (_ []byte, p Progress, err error) {
		for {
			text, id, err := jobs.next(src, &p)
			switch {
			case err != nil || text == nil:
				return dst, p, err
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
	}}
}

func appendDelete(dst, id []byte) []byte {
	return append(append(append(dst, "delete "...), id...), "\r\n"...)
}

// BeanstalkdWork makes each request the work on one job: put, reserve and delete.
func BeanstalkdWork(p Packets) Protocol {
	var jobs jobReader
	w := &work{push: beanstalkdPut(&p).all, claim: beanstalkdReserve}
	w.readSome = func(src []byte, most int) (p Progress, err error) {
		for p.Done < most {
			text, id, err := jobs.next(src, &p)
			switch {
			case err != nil || text == nil:
				return p, err
			case id != nil && w.step == claiming:
				w.claimed++
				w.ends = appendDelete(w.ends, id)
			case w.step == pushing && bytes.HasPrefix(text, beanstalkdInserted):
			case w.step == acking && string(text) == "DELETED":
			default:
				return p, fmt.Errorf("the server answered %q, expected INSERTED, RESERVED and DELETED in turn", text)
			}
			p.answer(true)
		}
		return p, nil
	}
	return w
}

// jobReader reads the lines of replies, and skips the jobs behind them.
type jobReader struct {
	skip int64 // bytes of a reserved job that are still to come, its CR LF included
}

// next returns the next line of src, or nil if it is not complete, and the number of the job that
// the line announces, or nil. The job is skipped.
func (r *jobReader) next(src []byte, p *Progress) (text, id []byte, err error) {
	n := min(r.skip, int64(len(src)-p.Used))
	p.Used += int(n)
	if r.skip -= n; r.skip > 0 {
		return nil, nil, nil
	}
	text, size, err := line(src[p.Used:])
	p.Used += size
	rest, reserved := bytes.CutPrefix(text, []byte("RESERVED "))
	if !reserved {
		return text, nil, err
	}
	id, length, _ := bytes.Cut(rest, []byte{' '})
	size64, ok := number(length)
	if !ok || size64 < 0 {
		return text, nil, fmt.Errorf("the server sent %q, expected RESERVED, a job number and a length", text)
	}
	r.skip = size64 + 2
	return text, id, nil
}
