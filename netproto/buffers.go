package netproto

import "errors"

// ErrMemory is why a connection is closed that has begun a long request.
var ErrMemory = errors.New("too much memory in unfinished requests")

// Buffers bounds the bytes of requests that have begun, on all connections of the servers that
// share it, which are those of one loop. The first maxReadBuffer bytes of a connection do not count.
type Buffers struct {
	most  int64
	sum   int64
	bytes map[*conn]int64 // of those that count
}

// NewBuffers allows so many bytes together.
func NewBuffers(most int64) *Buffers { return &Buffers{most: most, bytes: make(map[*conn]int64)} }

// resize notes that the buffer of c will have n bytes. If that is too much for all, it evicts the
// connection with the largest.
func (b *Buffers) resize(c *conn, n int) {
	if n = max(n, maxReadBuffer) - maxReadBuffer; n == 0 && cap(c.in) <= maxReadBuffer && !c.finished {
		return
	}
	b.set(c, int64(n))
	for b.sum > b.most {
		largest := c
		for other, n := range b.bytes {
			if n > b.bytes[largest] {
				largest = other
			}
		}
		b.set(largest, 0)
		largest.evicted = true
		largest.loop.again(largest)
	}
}

func (b *Buffers) set(c *conn, n int64) {
	b.sum += n - b.bytes[c]
	if b.bytes[c] = n; n == 0 {
		delete(b.bytes, c)
	}
}
