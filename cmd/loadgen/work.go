package loadgen

import (
	"errors"
	"fmt"
)

// work is what the protocols share of which each request is the work on one packet. A worker knows
// a claim only from its reply. So a window goes in three steps: it pushes its packets, claims as
// many, and acknowledges those. No claim comes before as many pushes. So each of them finds a
// packet, perhaps that of another connection.
type work struct {
	step    step
	packets int // of the window
	claimed int
	open    int // replies of the step that are still to come
}

type step int

const (
	pushing step = iota
	claiming
	acking
)

var errNothingClaimed = errors.New("a claim found nothing, or a packet was no longer claimed; expected that nobody else uses the queue")

// steps are what a protocol says in each step.
type steps interface {
	read(src []byte, most int) (Progress, error) // counts so many replies at most
	claims(dst []byte, packets int) (out []byte, replies int)
	acks(dst []byte) (out []byte, replies int)
}

// begin notes that a window pushes so many packets, and that so many replies come.
func (w *work) begin(packets, replies int) {
	*w = work{packets: packets, open: replies}
}

// consume counts replies as Protocol does. A window is answered as a whole.
func (w *work) consume(dst, src []byte, s steps) ([]byte, Progress, error) {
	var total Progress
	for total.Used < len(src) {
		if w.open == 0 {
			return dst, total, errors.New("the server sent more replies than there were requests")
		}
		p, err := s.read(src[total.Used:], w.open)
		if err == nil && p.Empty > 0 {
			err = errNothingClaimed
		}
		total.Used += p.Used
		if w.open -= p.Done; err == nil && w.open == 0 {
			dst, err = w.next(dst, &total, s)
		}
		if err != nil || p.Used == 0 {
			return dst, total, err
		}
	}
	return dst, total, nil
}

// next appends the step that follows to dst, or counts the window as answered.
func (w *work) next(dst []byte, p *Progress, s steps) ([]byte, error) {
	switch {
	case w.step == pushing:
		dst, w.open = s.claims(dst, w.packets)
	case w.claimed != w.packets:
		return dst, fmt.Errorf("%d packets were claimed, expected %d", w.claimed, w.packets)
	case w.step == claiming:
		dst, w.open = s.acks(dst)
	default:
		p.Done += w.packets
		p.Packets += w.packets
	}
	w.step++
	return dst, nil
}
