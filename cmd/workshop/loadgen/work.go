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
	push     func(dst []byte, first uint64, n int) []byte
	claim    repeated
	readSome func(src []byte, most int) (Progress, error) // counts so many replies at most

	step    step
	packets int // of the window
	claimed int
	open    int    // replies of the step that are still to come
	ends    []byte // what acknowledges that: requests, or arguments of one
}

type step int

const (
	pushing step = iota
	claiming
	acking
)

var errNothingClaimed = errors.New("a claim found nothing, or a packet was no longer claimed; expected that nobody else uses the queue")

// steps are what a protocol says after the pushes.
type steps interface {
	claims(dst []byte, packets int) (out []byte, replies int)
	acks(dst []byte) (out []byte, replies int)
}

func (w *work) claims(dst []byte, packets int) ([]byte, int) {
	return w.claim.Append(dst, 0, packets), packets
}

func (w *work) acks(dst []byte) ([]byte, int) { return append(dst, w.ends...), w.claimed }

// begin notes that a window pushes so many packets, and that so many replies come.
func (w *work) begin(packets, replies int) {
	w.step, w.packets, w.claimed, w.open, w.ends = pushing, packets, 0, replies, w.ends[:0]
}

func (w *work) Append(dst []byte, first uint64, n int) []byte {
	w.begin(n, n)
	return w.push(dst, first, n)
}

func (w *work) Consume(dst, src []byte) ([]byte, Progress, error) { return w.consume(dst, src, w) }

// consume counts replies as Protocol does. A window is answered as a whole.
func (w *work) consume(dst, src []byte, s steps) ([]byte, Progress, error) {
	var total Progress
	for total.Used < len(src) {
		if w.open == 0 {
			return dst, total, errors.New("the server sent more replies than there were requests")
		}
		p, err := w.readSome(src[total.Used:], w.open)
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
