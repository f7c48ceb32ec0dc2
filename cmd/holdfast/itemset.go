package main

import "slices"

// itemSet is a set of items. It takes few bytes for each, and where they are many little more than a bit.
type itemSet struct {
	pages map[uint16]*itemPage // by the upper half of the item's number
}

// itemPage is the lower halves of the items of one page: a sorted list, or a bit for each once that
// takes no more.
type itemPage struct {
	list []uint16
	bits *[1 << 16 / 64]uint64
}

// maxList is how long a list may get: as large as the bits.
const maxList = 1 << 16 / 16

// add puts an item in, and returns false if it was there.
func (s *itemSet) add(item uint32) bool {
	if s.pages == nil {
		s.pages = make(map[uint16]*itemPage)
	}
	p := s.pages[uint16(item>>16)]
	if p == nil {
		p = &itemPage{}
		s.pages[uint16(item>>16)] = p
	}
	low := uint16(item)
	if p.bits != nil {
		return p.set(low)
	}
	i, found := slices.BinarySearch(p.list, low)
	switch {
	case found:
		return false
	case len(p.list) < maxList:
		p.list = slices.Insert(p.list, i, low)
		return true
	}
	p.bits = new([1 << 16 / 64]uint64)
	for _, n := range p.list {
		p.set(n)
	}
	p.list = nil
	return p.set(low)
}

// set sets a bit, and returns false if it was set.
func (p *itemPage) set(low uint16) bool {
	word, bit := &p.bits[low/64], uint64(1)<<(low%64)
	if *word&bit != 0 {
		return false
	}
	*word |= bit
	return true
}
