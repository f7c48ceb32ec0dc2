package broker

import (
	"fmt"

	"github.com/holdfast-queue/holdfast/index"
)

// A queue with a bound never holds more packets or bytes than that, but for what was there before
// the bound. Packets that are ready, delayed or claimed count. Those that come back from a claim
// have their place already.

// load is the packets that a call brings to a queue, for its bound.
type load struct {
	packets  int
	bytes    int64         // of keys, payloads and what is beside these
	priority uint32        // of what is pushed; 0: nothing is dropped for it
	instead  *index.Packet // that goes for it; nil: none
	moves    bool          // checkBoundOfMoves has been asked
	key      []byte        // of what is pushed
	narrow   bool          // some of that is
	wide     bool          // and some of that
}

func (l *load) addWidth(wide bool) { l.narrow, l.wide = l.narrow || !wide, l.wide || wide }

// checkBoundShare returns ErrShareFull if a share of a queue has no room for so many packets more.
func checkBoundShare(q *queue, of index.Shared, more int) error {
	bound := settingsOf(q).BoundShare
	if bound == 0 || more <= 0 || int64(of.Unfinished+more) <= bound {
		return nil
	}
	return fmt.Errorf("%w: share %q holds %s, its bound is %s", ErrShareFull, of.Name, Counted(of.Unfinished, "packet"), Counted(bound, "packet"))
}

// checkBoundOfPush is checkBoundShare for a push.
func (m *Machine) checkBoundOfPush(q *queue, l *load, tags []PacketTag) error {
	if settingsOf(q).BoundShare == 0 || l.moves {
		return nil
	}
	of, ok := m.ix.ShareOf(q.ix, l.key, m.tagBytes(tags))
	if !ok {
		return nil
	}
	more := l.packets
	if l.instead != nil && l.instead.Share == of.Number {
		more--
	}
	return checkBoundShare(q, of, more)
}

// checkBoundOfMoves is checkBoundShare for packets that move to a queue, and are Ready there.
func (m *Machine) checkBoundOfMoves(to *queue, packets ...index.Packet) error {
	if settingsOf(to).BoundShare == 0 || !m.sharedOut(to) {
		return nil
	}
	more := make(map[string]int)
	for _, p := range packets {
		if p.State > index.Claimed {
			continue
		}
		of, _ := m.ix.ShareFor(to.ix, p.ID)
		more[of.Name]++
		if err := checkBoundShare(to, of, more[of.Name]); err != nil {
			return err
		}
	}
	return nil
}

// growth is by how much the queue grows.
func (l load) growth() (packets int, bytes int64) {
	if l.instead != nil {
		return l.packets - 1, l.bytes - int64(l.instead.Size)
	}
	return l.packets, l.bytes
}

// loadOf returns the load of packets that move to a queue. Dead and done ones count nowhere.
func loadOf(packets []index.Packet) (l load) {
	for _, p := range packets {
		if p.State <= index.Claimed {
			l.packets++
			l.bytes += int64(p.Size)
		}
	}
	return l
}

// over says whether packets and bytes together exceed the bound.
func over(s *Settings, packets int, bytes int64) bool {
	return s.Bound > 0 && int64(packets) > s.Bound || s.BoundBytes > 0 && bytes > s.BoundBytes
}

// makeRoom returns an error if the bound of a queue has no room for what comes, or others wait for
// that. Worse packets go for it if the queue's settings say so.
func (tx *Tx) makeRoom(q *queue, l load) error {
	s := settingsOf(q)
	more, moreBytes := l.growth()
	switch {
	case q.settings == nil && !tx.m.waits(q.waiters, producerRole) || more == 0 && moreBytes <= 0:
		return nil
	case over(s, l.packets, l.bytes):
		return fmt.Errorf("%w: %s with %s came at once, the bound of the queue is %s", ErrTooLarge,
			Counted(l.packets, "packet"), Counted(l.bytes, "byte"), boundOf(s))
	case tx.m.waits(q.waiters, producerRole) && !tx.turn:
		return errOthersWait
	}
	packets, bytes := tx.m.ix.Counts(q.ix).Unfinished()
	then := packets + more
	if more == 0 {
		then = 0 // a value grows in its place
	}
	if !over(s, then, bytes+moreBytes) {
		return nil
	}
	tx.m.tellBound(q)
	if s.Full == FullDrop {
		return tx.dropFor(q, l)
	}
	return fmt.Errorf("%w: it holds %s with %s, its bound is %s", ErrFull, Counted(packets, "packet"), Counted(bytes, "byte"), boundOf(s))
}

var errOthersWait = fmt.Errorf("%w: others wait for room, and come first", ErrFull)

// boundRatio returns which part of its bound a queue holds: of packets or of bytes, whichever is
// more; 0 without a bound.
func (m *Machine) boundRatio(q *queue) (most float64) {
	packets, bytes := m.ix.Counts(q.ix).Unfinished()
	s := settingsOf(q)
	if s.Bound > 0 {
		most = float64(packets) / float64(s.Bound)
	}
	if s.BoundBytes > 0 {
		most = max(most, float64(bytes)/float64(s.BoundBytes))
	}
	return most
}

// boundOf puts the bound of a queue in words.
func boundOf(s *Settings) string {
	packets, bytes := Counted(s.Bound, "packet"), Counted(s.BoundBytes, "byte")
	switch {
	case s.BoundBytes == 0:
		return packets
	case s.Bound == 0:
		return bytes
	}
	return packets + " and " + bytes
}

// Counted puts a number of things in words, whose name takes an s.
func Counted[N int | int64](n N, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// dropFor drops a queue's worst packets until what comes fits. It drops none if that does not
// suffice, or if the Atomic would change too much.
func (tx *Tx) dropFor(q *queue, l load) error {
	m := tx.m
	packets, bytes := m.ix.Counts(q.ix).Unfinished()
	more, moreBytes := l.growth()
	packets, bytes = packets+more, bytes+moreBytes
	m.worst = m.worst[:0]
	for p := range m.ix.Worst(q.ix) {
		if p.Priority-1 <= l.priority-1 || len(m.worst) == MaxCount { // 0 comes last
			break
		}
		if tx.atomic && len(m.worst) >= tx.MayChange() {
			return ErrTooManyChanged
		}
		m.worst = append(m.worst, p)
		packets, bytes = packets-1, bytes-int64(p.Size)
		if !over(q.settings, packets, bytes) {
			tx.changed += len(m.worst)
			m.count(q, &q.counters.Dropped, &m.totals.Dropped, len(m.worst))
			m.dropBefore(q, m.worst, EventDropped)
			return nil
		}
	}
	return fmt.Errorf("%w: its bound is %s, and one push drops at most %d, none of them claimed", ErrDropped, boundOf(q.settings), MaxCount)
}
