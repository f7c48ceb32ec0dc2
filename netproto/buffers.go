package netproto

import (
	"errors"

	"github.com/holdfast-queue/holdfast/broker"
)

// ErrMemory is why a connection is closed that makes the server keep much for it, and errUnread why
// one is that does not read its replies: it holds the most of all.
var (
	ErrMemory = errors.New("the server keeps too much for this connection")
	errUnread = errors.New("too much memory in replies that are not read")
)

// Buffers bounds what all connections hold of the servers that share it, which are those of one
// loop: requests that have begun, what sessions keep of others (Peer.Hold), the names that they
// wait for, and replies that peers do not take. The first maxReadBuffer bytes of the buffers do not
// count.
type Buffers struct {
	most  int
	room  func() int // as of Within; nil: without end
	left  int        // what it said last
	upTo  int        // and what all may hold by that
	sum   int
	large map[*conn]struct{} // those that may be evicted

	reserved int     // for long requests that are read
	waiting  []*conn // whose long request is to be read next, in order
}

// Size is what they hold now. It is called in the loop.
func (b *Buffers) Size() int { return b.sum }

// minLarge is what a connection must hold to be evicted.
const minLarge = 4 << 10

// NewBuffers allows so many bytes together.
func NewBuffers(most int64) *Buffers {
	return &Buffers{most: int(most), large: make(map[*conn]struct{})}
}

// Within bounds them by the memory that is left, too: room says how many bytes they may hold more
// than when that was measured, below 0 how many fewer. It is called in the loop.
func (b *Buffers) Within(room func() int) { b.room = room }

// bounds are what they may hold that hold sum: without replies that are read, and with those.
func (b *Buffers) bounds(sum int) (most, all int) {
	most, all = b.most, b.most+DefaultMaxBuffers
	if b.room != nil {
		if left := b.room(); left != b.left { // what they take from now on it does not know
			b.left, b.upTo = left, sum+left
		}
		all = min(all, max(leastBuffers, b.upTo))
	}
	return min(most, all), all
}

// requests is what c holds of requests, and replies what it holds of replies.
func (c *conn) requests() int {
	return max(cap(c.in)-maxReadBuffer, 0) + c.held + broker.AwaitedMemory*c.consumer.Awaits()
}

func (c *conn) replies() int { return max(len(c.peer.Out)-maxReadBuffer, 0) + c.queued + c.owed }

// count notes what c holds. If that is too much for all, it evicts the connections with the most.
func (b *Buffers) count(c *conn) {
	n := c.requests() + c.replies()
	most, far := b.bounds(b.sum + n - c.counted)
	if c.evicted || n == c.counted && b.sum <= most {
		return
	}
	for b.set(c, n); b.sum > most; {
		largest, burden, all := (*conn)(nil), 0, 0
		for c := range b.large {
			n := b.burden(c, far)
			if all += n; n > burden {
				largest, burden = c, n
			}
		}
		if largest == nil || all <= most && !largest.stalls() {
			return
		}
		b.set(largest, 0)
		largest.evicted = true
		largest.loop.evicted = append(largest.loop.evicted, largest)
	}
}

// burden is what c should not hold. Replies are none while its peer takes them, unless all hold
// more than far.
func (b *Buffers) burden(c *conn, far int) int {
	if c.stalls() || b.sum > far {
		return c.counted
	}
	return c.requests()
}

func (b *Buffers) set(c *conn, n int) {
	b.sum += n - c.counted
	if c.counted = n; n < minLarge {
		delete(b.large, c)
	} else {
		b.large[c] = struct{}{}
	}
}
