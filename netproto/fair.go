package netproto

import (
	"slices"
	"time"
)

// fair says which connection is served next. Those whose turns are short stand in one line, the
// others in a second, each in the order in which they came. Where both have somebody, each gets
// half of the time. So all are served, and nobody's short request waits behind the long requests
// of however many others. The loop's goroutine owns it.
type fair struct {
	lines  [2][]*conn // by pace
	served [2]int     // of each, in this turn of the loop
	pace   pace       // of the one that is served
	ahead  int64      // what the quick have used, less what the others have
}

// pace is the line in which a connection stands, by its last turn.
type pace uint8

const (
	quick pace = iota
	lengthy
)

// begin begins a turn of the loop, with those that have come since the last one.
func (f *fair) begin(come []*conn) {
	for _, c := range come {
		f.lines[c.pace] = append(f.lines[c.pace], c)
	}
	f.served = [2]int{}
	const most = int64(maxServe / time.Microsecond) // that who did not wait has saved up
	f.ahead = max(-most, min(f.ahead, most))
}

// next returns the connection whose turn it is, nil if all had theirs.
func (f *fair) next() *conn {
	f.pace = quick
	if left := f.left(lengthy); left > 0 && (f.ahead > 0 || f.left(quick) == 0) {
		f.pace = lengthy
	}
	if f.left(f.pace) == 0 {
		return nil
	}
	f.served[f.pace]++
	return f.lines[f.pace][f.served[f.pace]-1]
}

func (f *fair) left(p pace) int { return len(f.lines[p]) - f.served[p] }

// charge notes what the turn of the connection that next returned last took. A KiB of replies
// counts as a microsecond.
func (f *fair) charge(c *conn, micros, replies int64) {
	cost := max(1, micros+replies>>10)
	c.known, c.pace = true, quick
	if cost >= longTurn.Microseconds() {
		c.pace = lengthy
	}
	if f.pace == lengthy {
		cost = -cost
	}
	f.ahead += cost
}

// end ends a turn of the loop. Who was not served stays where it stands. But of those that never
// had a turn nobody knows how long it takes: they make way when the turn was too short for them.
func (f *fair) end() {
	crowded := f.served[quick] > 0
	for p := range f.lines {
		f.lines[p] = slices.Delete(f.lines[p], 0, f.served[p])
	}
	f.lines[quick] = slices.DeleteFunc(f.lines[quick], func(c *conn) bool {
		if !crowded || c.known {
			return false
		}
		c.pace = lengthy
		f.lines[lengthy] = append(f.lines[lengthy], c)
		return true
	})
}

// waits says that somebody was not served.
func (f *fair) waits() bool { return len(f.lines[quick])+len(f.lines[lengthy]) > 0 }
