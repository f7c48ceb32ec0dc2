package access

import (
	"net/netip"
	"sync"
	"time"
)

const (
	// lately is how long a login that was right counts for its address.
	lately = time.Hour
	// maxRight is how many logins are known, at some 100 bytes each.
	maxRight = 4096
)

// right are the logins that were right of late. They are told at once, also to an address that has
// no guess left: who guesses there keeps out nobody who comes back.
type right struct {
	mu sync.Mutex
	of map[rightLogin]time.Time // the last time
}

type rightLogin struct {
	host netip.Addr
	what digest
}

func newRight() right { return right{of: make(map[rightLogin]time.Time)} }

// note notes a login that is right. If there are too many, it forgets those that are too old, and
// one at least.
func (r *right) note(from netip.Addr, what digest, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	one := rightLogin{Host(from), what}
	if _, known := r.of[one]; !known && len(r.of) >= maxRight {
		for other, at := range r.of {
			if now.Sub(at) > lately || len(r.of) >= maxRight {
				delete(r.of, other)
			}
		}
	}
	r.of[one] = now
}

// has says that a login was right of late.
func (r *right) has(from netip.Addr, what digest, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, known := r.of[rightLogin{Host(from), what}]
	return known && now.Sub(at) <= lately
}
