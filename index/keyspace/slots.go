package keyspace

// slots are numbered places. What is in one stays there, so a scan over the numbers finds all that
// stays.
type slots[T any] struct {
	all  []*T     // the last one is used
	free []uint32 // those without anything; some may be past the end of all
}

// add puts x into a free slot.
func (s *slots[T]) add(x *T) (slot uint32) {
	for n := len(s.free); n > 0; n-- {
		slot = s.free[n-1]
		s.free = s.free[:n-1]
		if int(slot) < len(s.all) {
			s.all[slot] = x
			return slot
		}
	}
	s.all = append(s.all, x)
	return uint32(len(s.all) - 1)
}

func (s *slots[T]) remove(slot uint32) {
	s.all[slot] = nil
	s.free = append(s.free, slot)
	n := len(s.all)
	for n > 0 && s.all[n-1] == nil {
		n--
	}
	if s.all = s.all[:n]; n == 0 {
		s.free = s.free[:0]
	}
}

// last returns what is in the last slot, nil if there is nothing at all.
func (s *slots[T]) last() *T {
	if len(s.all) == 0 {
		return nil
	}
	return s.all[len(s.all)-1]
}

// shrink gives back memory that is not used any more.
func (s *slots[T]) shrink() {
	s.all = append([]*T(nil), s.all...)
	s.free = nil
	for slot, x := range s.all {
		if x == nil {
			s.free = append(s.free, uint32(slot))
		}
	}
}

// scan calls fn with what is in the slots from a cursor on. It ends after n calls, and after many
// free slots. It returns the cursor to go on with, 0 if there are no more.
func (s *slots[T]) scan(cursor uint64, n int, fn func(*T)) (next uint64) {
	const looksPerCall = 10
	n = max(n, 1)
	looks := looksPerCall * n
	for ; cursor < uint64(len(s.all)); cursor++ {
		if n == 0 || looks == 0 {
			return cursor
		}
		looks--
		if x := s.all[cursor]; x != nil {
			fn(x)
			n--
		}
	}
	return 0
}
