package dump

import "errors"

// chunkRoom hands the chunks of an input to the goroutine that cuts, and bounds what their buffers
// take together. Few records are long; if all are, fewer chunks are under way at a time. It belongs
// to that goroutine.
type chunkRoom struct {
	free <-chan *chunk   // from the goroutine that uses them up
	stop <-chan struct{} // closed when no more chunks are wanted
	idle []*chunk        // taken from free, and not filled yet
	held int             // bytes of the buffers of those that are neither idle nor in free
}

// longBytes is what the buffers of all chunks may take: two of the longest records. One buffer is
// always allowed.
const longBytes = 2 * maxEntry

// errStopped means that no more chunks are wanted.
var errStopped = errors.New("the reading of the dump was stopped")

// take returns a chunk to fill, or errStopped.
func (r *chunkRoom) take() (*chunk, error) {
	if len(r.idle) == 0 {
		if err := r.back(); err != nil {
			return nil, err
		}
	}
	c := r.idle[len(r.idle)-1]
	r.idle = r.idle[:len(r.idle)-1]
	return c, nil
}

// wait returns once there is room for a buffer of n bytes, or errStopped.
func (r *chunkRoom) wait(n int) error {
	for r.held > 0 && r.held+n > longBytes {
		if err := r.back(); err != nil {
			return err
		}
	}
	return nil
}

// back waits for a chunk that was used up.
func (r *chunkRoom) back() error {
	select {
	case <-r.stop:
		return errStopped
	case c := <-r.free:
		r.held -= c.held
		r.idle = append(r.idle, c)
		return nil
	}
}

// give counts the buffer of a chunk that goes on its way.
func (r *chunkRoom) give(c *chunk) {
	c.held = cap(c.buf)
	r.held += c.held
}
