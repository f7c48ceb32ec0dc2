package broker

import (
	"fmt"

	"github.com/holdfast-queue/holdfast/index"
)

// A queue with a bound never holds more packets or bytes than that, but for what was there before
// the bound. Packets that are ready, delayed or claimed count. Those that come back from a claim
// have their place already.

// over says that so many packets and bytes are more than the bound.
func over(s *Settings, packets int, bytes int64) bool {
	return s.Bound > 0 && int64(packets) > s.Bound || s.BoundBytes > 0 && bytes > s.BoundBytes
}

// fits says that the bound of a queue has room for what comes.
func (m *Machine) fits(q *queue, l load) bool {
	packets, bytes := m.ix.Counts(q.ix).Unfinished()
	if l.packets == 0 {
		packets = 0 // a value grows in its place
	}
	return !over(settingsOf(q), packets+l.packets, bytes+l.bytes)
}

// makeRoom returns an error if the bound of a queue has no room for what comes, or others wait for
// that. Worse packets go for it if the queue's settings say so.
func (tx *Tx) makeRoom(q *queue, l load) error {
	m, s := tx.m, settingsOf(q)
	switch {
	case q.settings == nil && q.line == nil || l.packets == 0 && l.bytes <= 0:
		return nil
	case over(s, l.packets, l.bytes):
		return fmt.Errorf("%w: %s with %s came at once, the bound of the queue is %s", ErrTooLarge,
			counted(l.packets, "packet"), counted(l.bytes, "byte"), boundOf(s))
	case q.line != nil && !tx.turn:
		return errOthersWait
	case m.fits(q, l):
		return nil
	case s.Full == FullDrop:
		return tx.dropFor(q, l)
	}
	packets, bytes := m.ix.Counts(q.ix).Unfinished()
	return fmt.Errorf("%w: it holds %s with %s, its bound is %s", ErrFull, counted(packets, "packet"), counted(bytes, "byte"), boundOf(s))
}

var errOthersWait = fmt.Errorf("%w: others wait for room, and come first", ErrFull)

// boundOf is the bound of a queue in words.
func boundOf(s *Settings) string {
	packets, bytes := counted(s.Bound, "packet"), counted(s.BoundBytes, "byte")
	switch {
	case s.BoundBytes == 0:
		return packets
	case s.Bound == 0:
		return bytes
	}
	return packets + " and " + bytes
}

// counted is a number of things whose name takes an s.
func counted[N int | int64](n N, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// dropFor drops so many of a queue's worst packets that what comes fits. It drops none if that does
// not suffice.
func (tx *Tx) dropFor(q *queue, l load) error {
	m := tx.m
	worst, ok := m.worse(q, l)
	if !ok {
		return fmt.Errorf("%w: its bound is %s, and one push drops at most %d, none of them claimed", ErrDropped, boundOf(q.settings), MaxCount)
	}
	m.count(q, &q.counters.Dropped, len(worst))
	m.dropNow(q, worst)
	return nil
}

// worse returns the packets that go from a full queue for what comes. If that does not suffice none
// goes, and ok is false. They are valid until the next call.
func (m *Machine) worse(q *queue, l load) (worst []index.Packet, ok bool) {
	worst = m.worst[:0]
	packets, bytes := m.ix.Counts(q.ix).Unfinished()
	packets, bytes = packets+l.packets, bytes+l.bytes
	for p := range m.ix.Worst(q.ix) {
		if p.Priority-1 <= l.priority-1 || len(worst) == MaxCount { // 0 comes last
			break
		}
		worst = append(worst, p)
		packets, bytes = packets-1, bytes-int64(p.Size)
		if !over(q.settings, packets, bytes) {
			m.worst = worst
			return worst, true
		}
	}
	return nil, false
}
