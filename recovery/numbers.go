package recovery

import "slices"

// Numbers are the sequences of packets, and their identities. No two packets have the same of
// either: their records would replace each other where the two meet in a queue.
type Numbers struct {
	plain                 numbers // of packets whose sequence is their identity
	sequences, identities numbers // of the others
}

// Taken says that a packet was added that has one of these.
func (n *Numbers) Taken(seq, identity uint64) bool {
	return n.plain.has(seq) || n.plain.has(identity) || n.sequences.has(seq) || n.identities.has(identity)
}

// Add adds a packet, and returns true. It adds nothing and returns false if one of its numbers is
// taken.
func (n *Numbers) Add(seq, identity uint64) bool {
	if n.Taken(seq, identity) {
		return false
	}
	if seq == identity {
		n.plain.add(seq)
	} else {
		n.sequences.add(seq)
		n.identities.add(identity)
	}
	return true
}

// numbers is a set of numbers that takes a bit for each where they are dense, and some bytes
// elsewhere.
type numbers struct {
	pages map[uint64]*page
	at    uint64 // that of the last one
	page  *page
}

// page is which of 65,536 numbers are there: as a sorted list, or as bits once that takes less.
type page struct {
	few  []uint16
	many *[1 << 10]uint64
}

// of returns the page of a number, nil if there is none.
func (s *numbers) of(n uint64) *page {
	if at := n >> 16; s.page == nil || at != s.at {
		s.at, s.page = at, s.pages[at]
	}
	return s.page
}

func (s *numbers) has(n uint64) bool {
	p, low := s.of(n), uint16(n)
	switch {
	case p == nil:
		return false
	case p.many != nil:
		return p.many[low>>6]>>(low&63)&1 != 0
	}
	_, there := slices.BinarySearch(p.few, low)
	return there
}

// add adds a number that is not there.
func (s *numbers) add(n uint64) {
	p := s.of(n)
	if p == nil {
		if p = new(page); s.pages == nil {
			s.pages = make(map[uint64]*page)
		}
		s.pages[s.at], s.page = p, p
	}
	if p.many == nil {
		at, _ := slices.BinarySearch(p.few, uint16(n))
		if p.few = slices.Insert(p.few, at, uint16(n)); len(p.few) < 4096 {
			return
		}
		p.many = new([1 << 10]uint64)
		for _, low := range p.few {
			p.many[low>>6] |= 1 << (low & 63)
		}
		p.few = nil
		return
	}
	p.many[uint16(n)>>6] |= 1 << (n & 63)
}
