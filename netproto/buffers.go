package netproto

import "errors"

// ErrMemory is why a connection is closed that has begun a long request, and errUnread why one is
// that does not read its replies: it holds the most of all.
var (
	ErrMemory = errors.New("too much memory in unfinished requests")
	errUnread = errors.New("too much memory in replies that are not read")
)

// Buffers bounds the bytes of requests that have begun, and of replies that peers do not take, on
// all connections of the servers that share it, which are those of one loop. The first
// maxReadBuffer bytes of either do not count.
type Buffers struct {
	most  int64
	sum   int64
	large map[*conn]struct{} // those that count
}

// NewBuffers allows so many bytes together.
func NewBuffers(most int64) *Buffers { return &Buffers{most: most, large: make(map[*conn]struct{})} }

// count notes what c holds. If that is too much for all, it evicts the connection with the most, of
// those that have begun a request, or take nothing of what they are sent.
func (b *Buffers) count(c *conn) {
	n := int64(max(cap(c.in), maxReadBuffer) + max(c.free-c.sent, maxReadBuffer) - 2*maxReadBuffer)
	if n == c.counted || c.evicted {
		return
	}
	b.set(c, n)
	for b.sum > b.most {
		largest := (*conn)(nil)
		for c := range b.large {
			if (largest == nil || c.counted > largest.counted) && (cap(c.in) > maxReadBuffer || c.stalls()) {
				largest = c
			}
		}
		if largest == nil {
			return
		}
		b.set(largest, 0)
		largest.evicted = true
		largest.loop.again(largest)
	}
}

func (b *Buffers) set(c *conn, n int64) {
	b.sum += n - c.counted
	if c.counted = n; n == 0 {
		delete(b.large, c)
	} else {
		b.large[c] = struct{}{}
	}
}
