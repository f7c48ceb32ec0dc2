package broker

// ListPriority is the priority of a list's packets: the middle of what pinpriq can say.
const ListPriority = 128

// A list is a queue whose packets are seen in order: the best priority first, the newest of it at
// the left. Only packets that a pop can select are its elements. Every call below is made inside
// Atomic. Any of them returns ErrWrongType if the name is that of a string or hash.

// Len returns the number of elements; 0 for an unknown name.
func (tx *Tx) Len(name []byte) (int, error) { return 0, errStub }

// PushEnd adds values at an end of the list, one after the other, and returns the new length.
// Waiters get them after the Atomic.
func (tx *Tx) PushEnd(name []byte, end End, values [][]byte) (length int, err error) {
	return 0, errStub
}

// MoveEnd takes the element at one end of a list, replies with it to c, and adds it at an end of
// another list, or the same. ok is false, and nothing is replied, if from has no element.
func (tx *Tx) MoveEnd(c *Consumer, from []byte, fromEnd End, to []byte, toEnd End, tag Tag) (ok bool, err error) {
	return false, errStub
}

// LargestAt returns the size of the largest of the first n elements at an end: what a MoveEnd may
// bring.
func (tx *Tx) LargestAt(name []byte, end End, n int) int { return 0 }

// Range replies to c with the n elements from position from on, counted from the left; it takes
// none. It returns how many there are, so call it after the head of the reply is known: RangeLen
// tells.
func (tx *Tx) Range(c *Consumer, name []byte, from, n int, tag Tag) (int, error) {
	return 0, errStub
}

// SetAt replaces the element at a position; ok is false if there is none.
func (tx *Tx) SetAt(name []byte, at int, value []byte) (ok bool, err error) { return false, errStub }

// InsertAt puts a value before the element at a position, or at the right end if at is the length.
// It moves the elements of the shorter side, and returns ErrTooLargeForBatch if they are too many
// for what was announced (InsertRoom). It returns the new length.
func (tx *Tx) InsertAt(name []byte, at int, value []byte) (length int, err error) {
	return 0, errStub
}

// InsertRoom returns what an InsertAt of a value of so many bytes may bring, wherever it goes.
func (tx *Tx) InsertRoom(name []byte, value int) Room { return Room{} }

// Find appends to dst the positions of elements that equal value: at most max if that is not 0,
// counted from the left, or from the right end leftwards if end is Oldest. An element with a key is
// passed over.
func (tx *Tx) Find(name, value []byte, end End, max int, dst []int) ([]int, error) {
	return dst, errStub
}

// RemoveValue deletes elements that equal value, at most max if that is not 0, from an end on, and
// returns how many. An element with a key is passed over.
func (tx *Tx) RemoveValue(name, value []byte, end End, max int) (int, error) { return 0, errStub }

// Trim deletes all elements but the n from position from on.
func (tx *Tx) Trim(name []byte, from, n int) error { return errStub }
