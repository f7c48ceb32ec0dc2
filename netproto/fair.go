package netproto

import (
	"slices"
	"time"
)

// fair says which connection is served next. Those whose turns are short as a rule stand in one
// line, the others in a second, each in the order in which they came. Where both have somebody,
// each gets half of the time that serving takes. So all are served, and who asks for little does
// not wait behind all who ask for much, however many these are. The loop's goroutine owns it.
type fair struct {
	lines  [2][]*conn // by pace
	served [2]int     // of each, in this turn of the loop
	pace   pace       // the line of the one that is served
	known  bool       // that one had a turn before
	held   bool       // in this turn of the loop a new one, in the line of the quick, took long
	ahead  int64      // what the quick have used, less what the others have, as charge counts
}

// pace is the line in which a connection stands.
type pace uint8

const (
	quick pace = iota
	lengthy
)

// begin begins a turn of the loop, with those that have come since the last one.
func (f *fair) begin(come []*conn) {
	for _, c := range come {
		p := quick
		if c.mean >= longTurn.Microseconds() || c.hungUp || c.broken { // its session may have much to take out
			p = lengthy
		}
		f.lines[p] = append(f.lines[p], c)
	}
	f.served, f.held = [2]int{}, false
	const most = int64(maxTurn / time.Microsecond) // that who did not wait has saved up
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
	c := f.lines[f.pace][f.served[f.pace]]
	f.served[f.pace]++
	f.known = c.known
	return c
}

func (f *fair) left(p pace) int { return len(f.lines[p]) - f.served[p] }

// charge notes what the turn of the connection that next returned last took. A KiB of replies
// counts as a microsecond.
func (f *fair) charge(c *conn, micros, replies int64) {
	cost := max(1, micros+replies>>10)
	if c.mean += (cost - c.mean) / meanTurns; !f.known {
		c.mean = cost
	}
	if f.pace == quick {
		f.held = f.held || !f.known && cost >= longTurn.Microseconds()
	} else {
		cost = -cost
	}
	f.ahead += cost
}

// end ends a turn of the loop. Who was not served stays where it stands. But where a new one took
// long, the new ones behind it may take as long: they go to the other line.
func (f *fair) end() {
	for p := range f.lines {
		f.lines[p] = slices.Delete(f.lines[p], 0, f.served[p])
	}
	if !f.held {
		return
	}
	f.lines[quick] = slices.DeleteFunc(f.lines[quick], func(c *conn) bool {
		if !c.known {
			f.lines[lengthy] = append(f.lines[lengthy], c)
		}
		return !c.known
	})
}

// waits says that somebody was not served.
func (f *fair) waits() bool { return len(f.lines[quick])+len(f.lines[lengthy]) > 0 }
