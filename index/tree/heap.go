package tree

// Item is what a heap holds. It says which of two comes first, and is told its place plus 1, or 0
// when it is taken out.
type Item[T any] interface {
	*T
	Before(b *T) bool
	Moved(pos uint32)
}

// Heap is a binary heap of items that know their places. It swaps items where they stand: a copy in
// a variable would escape by the methods of Item, and so each move would allocate.
type Heap[T any, P Item[T]] []T

// Push adds an item.
func (h *Heap[T, P]) Push(t T) {
	*h = append(*h, t)
	h.up(len(*h) - 1)
}

// Remove takes the item at i out.
func (h *Heap[T, P]) Remove(i int) {
	var zero T
	a := *h
	last := len(a) - 1
	P(&a[i]).Moved(0)
	a[i] = a[last]
	a[last] = zero
	if *h = a[:last]; i < last {
		h.Fix(i)
	}
}

// Set puts an item in the place of the one at i, and then where it belongs.
func (h *Heap[T, P]) Set(i int, t T) {
	(*h)[i] = t
	h.Fix(i)
}

// Fix moves the item at i, which has changed, to where it belongs.
func (h *Heap[T, P]) Fix(i int) {
	if a := *h; i > 0 && P(&a[i]).Before(&a[(i-1)/2]) {
		h.up(i)
		return
	}
	h.down(i)
}

// Build brings items in any order to where they belong.
func (h *Heap[T, P]) Build() {
	for i := len(*h) - 1; i >= 0; i-- {
		h.down(i)
	}
}

func (h *Heap[T, P]) up(i int) {
	a := *h
	for i > 0 && P(&a[i]).Before(&a[(i-1)/2]) {
		a[i], a[(i-1)/2] = a[(i-1)/2], a[i]
		P(&a[i]).Moved(uint32(i + 1))
		i = (i - 1) / 2
	}
	P(&a[i]).Moved(uint32(i + 1))
}

func (h *Heap[T, P]) down(i int) {
	a := *h
	for {
		c := 2*i + 1
		if c >= len(a) {
			break
		}
		if c+1 < len(a) && P(&a[c+1]).Before(&a[c]) {
			c++
		}
		if !P(&a[c]).Before(&a[i]) {
			break
		}
		a[i], a[c] = a[c], a[i]
		P(&a[i]).Moved(uint32(i + 1))
		i = c
	}
	P(&a[i]).Moved(uint32(i + 1))
}
