package cluster

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/daemon"
)

// clock is the clock of a term. It begins at a daemon.Moment, and moves towards the machine's by at
// most a hundredth of the time. So nothing runs back or jumps because another machine owns.
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

// clockTime is how long a term that begins waits for the clocks of a majority.
const clockTime = 3 * time.Second

// began is where the clock of a term begins. Where a node saw the last content come, that goes on.
// Else a majority of the nodes says how late it is, each when it is asked: what they told before a
// stop of all is of then.
func (n *node) began(ctx context.Context, store taker) int64 {
	m := daemon.Moment{Last: store.Control().Time, Away: -1}
	ms, came := n.arrived.now()
	if came {
		m.Last, m.Away = ms, 0
	}
	for since := time.Now(); ; wait(ctx, probePause) {
		m.Clocks, m.Voters = n.clocks(ctx, !came)
		if came || len(m.Clocks) > m.Voters/2 || time.Since(since) > clockTime || ctx.Err() != nil {
			break
		}
	}
	at, sure := m.Begins()
	if !sure {
		n.logger.Warn("the nodes' clocks do not agree: the clock of the cell goes on where it was", "clocks", len(m.Clocks), "nodes", m.Voters)
	}
	return at
}

// clocks returns those of the voters that are heard of, in Unix milliseconds, and how many voters
// there are. They are asked now; or else it is what they told last, and nobody is waited for.
func (n *node) clocks(ctx context.Context, ask bool) (clocks []int64, voters int) {
	s, err := n.log.Status(ctx)
	if err != nil {
		return nil, len(n.Nodes)
	}
	told, _ := n.nodes(ctx)
	var mu sync.Mutex
	add := func(ms int64) {
		mu.Lock()
		defer mu.Unlock()
		clocks = append(clocks, ms)
	}
	var asking sync.WaitGroup
	for _, p := range s.Members {
		if p.Learner {
			continue
		}
		voters++
		a, known := told[p.Name]
		switch {
		case p.Name == n.Node:
			add(time.Now().UnixMilli())
		case ask:
			asking.Go(func() {
				if at := n.look(ctx, p); at.Heard {
					add(time.Now().UnixMilli() + at.ClockMS)
				}
			})
		case known:
			add(a.Clock)
		}
	}
	asking.Wait()
	return clocks, voters
}
