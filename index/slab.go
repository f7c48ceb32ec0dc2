package index

import (
	"math"
	"unsafe"
)

// A page holds 2048 elements. That is a whole number of allocator pages for every element size that
// is a multiple of four bytes. It is so few that a new page is no noticeable pause.
const (
	pageBits = 11
	pageLen  = 1 << pageBits
	pageMask = pageLen - 1
)

// keepPages is how many pages an emptied slab keeps, so that a queue whose length swings around
// zero allocates nothing.
const keepPages = 16

// paged is an array that grows and shrinks a page at a time and never moves an element.
type paged[T any] struct {
	pages []*[pageLen]T
}

// at returns element i, which must be below the length given to the last resize. Go's own index
// would also read the first element, to see that the page is not nil: one more miss of all caches.
func (p *paged[T]) at(i uint32) *T {
	var t T
	return (*T)(unsafe.Add(unsafe.Pointer(p.pages[i>>pageBits]), uintptr(i&pageMask)*unsafe.Sizeof(t)))
}

// resize makes room for n elements and frees all pages past them but one: a length that swings
// around the edge of a page does not allocate each time.
func (p *paged[T]) resize(n uint32) {
	need := (int(n) + pageLen - 1) >> pageBits
	for len(p.pages) < need {
		p.pages = append(p.pages, new([pageLen]T))
	}
	if len(p.pages) > need+1 {
		clear(p.pages[need+1:])
		p.pages = p.pages[:need+1]
	}
}

// sparse is an array of which few elements are used. A page is nil until one of its elements is.
type sparse[T any] struct {
	pages []*[pageLen]T
}

// at returns element i, which was set.
func (s *sparse[T]) at(i uint32) T { return s.pages[i>>pageBits][i&pageMask] }

func (s *sparse[T]) set(i uint32, v T) {
	page := int(i >> pageBits)
	for page >= len(s.pages) {
		s.pages = append(s.pages, nil)
	}
	if s.pages[page] == nil {
		s.pages[page] = new([pageLen]T)
	}
	s.pages[page][i&pageMask] = v
}

// clear frees all memory but a little, when no element is used.
func (s *sparse[T]) clear() {
	if len(s.pages) > keepPages {
		clear(s.pages[keepPages:])
		s.pages = s.pages[:keepPages]
	}
}

// element is what a slab holds. It lends the slab one of its fields while its slot is free.
type element[T any] interface {
	*T
	freeLink() *uint32
}

// slab hands out numbered slots, from 1; 0 is none. Free slots below used are zero but for their
// link, unless they went as a chain. A slab that becomes empty frees its pages, all but keepPages
// of them.
type slab[T any, P element[T]] struct {
	paged[T]
	used      uint32 // slots below this were handed out at least once; 0 before the first
	firstFree uint32 // first of the free slots below used
	live      uint32 // slots in use
}

// alloc returns a zeroed slot. It panics when all 2^32-1 are in use: only packets can reach that,
// for which HasRoom asks, and the blocks of 50 GB of long keys.
func (s *slab[T, P]) alloc() uint32 {
	var zero T
	if id := s.firstFree; id != 0 {
		p := P(s.at(id))
		s.firstFree = *p.freeLink()
		*p = zero
		s.live++
		return id
	}
	if s.used == math.MaxUint32 {
		panic("index: all 2^32-1 numbers are in use")
	}
	id := max(s.used, 1)
	if int(id>>pageBits) >= len(s.pages) {
		s.pages = append(s.pages, new([pageLen]T))
	}
	*s.at(id) = zero // a slot used before the slab was last empty still holds its link
	s.used = id + 1
	s.live++
	return id
}

// free zeroes the slot and takes it back.
func (s *slab[T, P]) free(id uint32) {
	var zero T
	*s.at(id) = zero
	s.freeChain(id, id, 1)
}

// freeChain takes n slots back that are linked already, as they are.
func (s *slab[T, P]) freeChain(first, last, n uint32) {
	if s.live -= n; s.live > 0 {
		*P(s.at(last)).freeLink() = s.firstFree
		s.firstFree = first
		return
	}
	s.firstFree, s.used = 0, 0
	if len(s.pages) > keepPages {
		clear(s.pages[keepPages:])
		s.pages = s.pages[:keepPages]
	}
}

// freeBytes is how many bytes free slots take.
func (s *slab[T, P]) freeBytes() int64 {
	var t T
	return int64(max(s.used, 1)-1-s.live) * int64(unsafe.Sizeof(t))
}

// has reports whether the slot was handed out since the slab was last empty: only then may at be
// called.
func (s *slab[T, P]) has(id uint32) bool { return id != 0 && id < s.used }
