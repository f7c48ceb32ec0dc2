package cluster

import (
	"sync"
	"time"
)

// clock is the clock of a term. It begins where the last content of the term before ended. Towards
// the machine's clock it moves by at most a hundredth of the time that passes. So leases, delays
// and expiries neither run back nor jump because another machine owns.
type clock struct {
	mu   sync.Mutex
	at   time.Time // when it was looked at last
	says int64     // what it said then, Unix nanoseconds
}

// slew is the part of the time that passes by which the clock may move.
const slew = 100

// newClock begins at a moment in Unix milliseconds.
func newClock(ms int64) *clock { return &clock{at: time.Now(), says: ms * int64(time.Millisecond)} }

// now is what it says, in Unix milliseconds.
func (c *clock) now() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	passed := int64(now.Sub(c.at)) // on the steady clock
	off, most := now.UnixNano()-(c.says+passed), passed/slew
	c.says, c.at = c.says+passed+max(-most, min(off, most)), now
	return c.says / int64(time.Millisecond)
}

// arrival remembers when this node got the last content, which has a time of its own. It belongs
// to who takes contents.
type arrival struct {
	ms int64     // the content's, Unix milliseconds
	at time.Time // when it came; zero: this node did not see it come
}

func (a *arrival) note(ms int64) { a.ms, a.at = ms, time.Now() }

// now is the last content's time and what has passed since. ok is false if this node did not see it
// come.
func (a *arrival) now() (ms int64, ok bool) {
	return a.ms + time.Since(a.at).Milliseconds(), !a.at.IsZero()
}
