package recovery

import (
	"container/heap"
	"encoding/binary"
)

// sequences finds packets of one queue that have the same sequence, which no two may have, whatever
// their priority. They are added by rising priority, and by rising sequence within one: as the keys
// are ordered. A run of one priority is kept as the steps from one sequence to the next, one or two
// bytes a packet. Where even that is too much, only a share of all sequences is kept, and a further
// pass over the same packets looks at the next share.
type sequences struct {
	runs  []sequenceRun
	bytes int
	room  int              // what bytes may come to
	found func(seq uint64) // called by flush for each sequence that is there twice

	shares uint64 // a power of two; sequences whose mix modulo shares is share are kept
	share  uint64
}

// sequenceRun is the sequences of one priority.
type sequenceRun struct {
	priority uint32
	last     uint64
	steps    []byte // uvarints, the first from 0
}

// maxSequenceBytes bounds what the runs of one queue take: some 30 million packets.
const maxSequenceBytes = 48 << 20

func newSequences(found func(seq uint64)) *sequences {
	return &sequences{found: found, shares: 1, room: maxSequenceBytes}
}

// mix spreads neighbours over the shares.
func mix(seq uint64) uint64 { return seq * 0x9e3779b97f4a7c15 >> 40 }

func (s *sequences) add(priority uint32, seq uint64) {
	if s.shares > 1 && mix(seq)&(s.shares-1) != s.share {
		return
	}
	n := len(s.runs)
	if n == 0 || s.runs[n-1].priority != priority {
		s.runs = append(s.runs, sequenceRun{priority: priority})
		n++
		s.bytes += runOverhead
	}
	run := &s.runs[n-1]
	before := len(run.steps)
	run.steps = binary.AppendUvarint(run.steps, seq-run.last)
	run.last = seq
	if s.bytes += len(run.steps) - before; s.bytes > s.room {
		s.halve()
	}
}

// runOverhead is what a run takes besides its steps, which are several bytes at first.
const runOverhead = 64

// halve forgets half of what is kept: a later pass sees it. Runs of one packet each take room, too,
// so that any number of priorities comes to an end.
func (s *sequences) halve() {
	s.shares *= 2
	old := s.runs
	s.runs, s.bytes = nil, 0
	for _, run := range old {
		for seq, rest := next(0, run.steps); rest != nil; seq, rest = next(seq, rest) {
			if s.add(run.priority, seq); len(rest) == 0 {
				break
			}
		}
	}
}

// next reads a step and returns the sequence it leads to.
func next(seq uint64, steps []byte) (uint64, []byte) {
	step, n := binary.Uvarint(steps)
	if n <= 0 {
		return 0, nil
	}
	return seq + step, steps[n:]
}

// flush calls found for what is there twice, and forgets all.
func (s *sequences) flush() {
	if len(s.runs) > 1 {
		m := make(merge, 0, len(s.runs))
		for _, run := range s.runs {
			seq, rest := next(0, run.steps)
			m = append(m, cursor{seq, rest})
		}
		s.sweep(m)
	}
	s.runs, s.bytes = nil, 0
}

// sweep goes through all runs a window of sequences at a time, so that the runs are compared once a
// window and not once a packet.
func (s *sequences) sweep(m merge) {
	const window = 1 << 16
	var seen [window / 64]uint64
	heap.Init(&m)
	for len(m) > 0 {
		base := m[0].seq &^ (window - 1)
		clear(seen[:])
		for len(m) > 0 && m[0].seq&^(window-1) == base {
			c := &m[0]
			for more := true; more && c.seq&^(window-1) == base; {
				at := c.seq & (window - 1)
				if seen[at/64]&(1<<(at%64)) != 0 {
					s.found(c.seq)
				}
				seen[at/64] |= 1 << (at % 64)
				if more = len(c.rest) > 0; more {
					c.seq, c.rest = next(c.seq, c.rest)
				} else {
					c.rest = nil
				}
			}
			if c.rest == nil {
				heap.Pop(&m)
			} else {
				heap.Fix(&m, 0)
			}
		}
	}
}

// cursor is a place in a run: a sequence, and the steps behind it; nil after the last.
type cursor struct {
	seq  uint64
	rest []byte
}

// merge is a heap of cursors, the lowest sequence first.
type merge []cursor

func (m merge) Len() int           { return len(m) }
func (m merge) Less(i, j int) bool { return m[i].seq < m[j].seq }
func (m merge) Swap(i, j int)      { m[i], m[j] = m[j], m[i] }
func (m *merge) Push(x any)        { *m = append(*m, x.(cursor)) }

func (m *merge) Pop() any {
	last := (*m)[len(*m)-1]
	*m = (*m)[:len(*m)-1]
	return last
}
