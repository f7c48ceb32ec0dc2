package tree

import (
	"math"
	"unsafe"
)

// A page holds 2048 elements. That is a whole number of allocator pages for every element size that
// is a multiple of four bytes. It is so few that a new page is no noticeable pause.
const (
	PageBits = 11
	PageLen  = 1 << PageBits
	pageMask = PageLen - 1
)

// keepPages is how many pages an emptied slab keeps, so that a queue whose length swings around
// zero allocates nothing.
const keepPages = 16

// Paged is an array that grows and shrinks a page at a time and never moves an element.
type Paged[T any] struct {
	Pages []*[PageLen]T
}

// At returns element i, which must be below the length given to the last resize. Go's own index
// would also read the first element, to see that the page is not nil: one more miss of all caches.
func (p *Paged[T]) At(i uint32) *T {
	var t T
	return (*T)(unsafe.Add(unsafe.Pointer(p.Pages[i>>PageBits]), uintptr(i&pageMask)*unsafe.Sizeof(t)))
}

// Resize makes room for n elements and frees all pages past them but one: a length that swings
// around the edge of a page does not allocate each time.
func (p *Paged[T]) Resize(n uint32) {
	need := (int(n) + PageLen - 1) >> PageBits
	for len(p.Pages) < need {
		p.Pages = append(p.Pages, new([PageLen]T))
	}
	if len(p.Pages) > need+1 {
		clear(p.Pages[need+1:])
		p.Pages = p.Pages[:need+1]
	}
}

// Sparse is an array of which few elements are used. A page is nil until one of its elements is.
type Sparse[T any] struct {
	Pages []*[PageLen]T
}

// At returns element i, which was set.
func (s *Sparse[T]) At(i uint32) T { return s.Pages[i>>PageBits][i&pageMask] }

func (s *Sparse[T]) Set(i uint32, v T) {
	page := int(i >> PageBits)
	for page >= len(s.Pages) {
		s.Pages = append(s.Pages, nil)
	}
	if s.Pages[page] == nil {
		s.Pages[page] = new([PageLen]T)
	}
	s.Pages[page][i&pageMask] = v
}

// Clear frees all memory but a little, when no element is used.
func (s *Sparse[T]) Clear() {
	if len(s.Pages) > keepPages {
		clear(s.Pages[keepPages:])
		s.Pages = s.Pages[:keepPages]
	}
}

// Element is what a slab holds. It lends the slab one of its fields while its slot is free.
type Element[T any] interface {
	*T
	FreeLink() *uint32
}

// Slab hands out numbered slots, from 1; 0 is none. Free slots below used are zero but for their
// link, unless they went as a chain. A slab that becomes empty frees its pages, all but keepPages
// of them.
type Slab[T any, P Element[T]] struct {
	Paged[T]
	Used      uint32 // slots below this were handed out at least once; 0 before the first
	firstFree uint32 // first of the free slots below used
	Live      uint32 // slots in use
}

// Alloc returns a zeroed slot. It panics when all 2^32-1 are in use: only packets can reach that,
// for which Index.HasRoom asks, and the blocks of 50 GB of long keys.
func (s *Slab[T, P]) Alloc() uint32 {
	var zero T
	if id := s.firstFree; id != 0 {
		p := P(s.At(id))
		s.firstFree = *p.FreeLink()
		*p = zero
		s.Live++
		return id
	}
	if s.Used == math.MaxUint32 {
		panic("tree: all 2^32-1 numbers are in use")
	}
	id := max(s.Used, 1)
	if int(id>>PageBits) >= len(s.Pages) {
		s.Pages = append(s.Pages, new([PageLen]T))
	}
	*s.At(id) = zero // a slot used before the slab was last empty still holds its link
	s.Used = id + 1
	s.Live++
	return id
}

// Free zeroes the slot and takes it back.
func (s *Slab[T, P]) Free(id uint32) {
	var zero T
	*s.At(id) = zero
	s.FreeChain(id, id, 1)
}

// FreeChain takes n slots back that are linked already, as they are.
func (s *Slab[T, P]) FreeChain(first, last, n uint32) {
	if s.Live -= n; s.Live > 0 {
		*P(s.At(last)).FreeLink() = s.firstFree
		s.firstFree = first
		return
	}
	s.firstFree, s.Used = 0, 0
	if len(s.Pages) > keepPages {
		clear(s.Pages[keepPages:])
		s.Pages = s.Pages[:keepPages]
	}
}

// FreeBytes is how many bytes free slots take.
func (s *Slab[T, P]) FreeBytes() int64 {
	var t T
	return int64(max(s.Used, 1)-1-s.Live) * int64(unsafe.Sizeof(t))
}

// Has reports whether the slot was handed out since the slab was last empty: only then may at be
// called.
func (s *Slab[T, P]) Has(id uint32) bool { return id != 0 && id < s.Used }
