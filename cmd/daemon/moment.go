package daemon

import (
	"slices"
	"time"

	"github.com/holdfast-queue/holdfast/storage"
)

// Moment is what a start knows of the time: a machine alone has one clock, a cell that of each
// voter.
type Moment struct {
	Last   int64         // of the last batch, Unix milliseconds
	Away   time.Duration // how long ago that was, by a steady clock; negative: nobody knows
	Clocks []int64       // of those that are heard of, Unix milliseconds
	Voters int
}

// agree is how far two clocks that agree may differ.
const agree = 30 * time.Second

// Begins returns the moment at which a start begins. It is as near to the last batch as the clocks
// of a majority allow: so no clock alone moves it, neither on nor back. sure is false where the
// clocks do not say.
func (m *Moment) Begins() (at int64, sure bool) {
	at, most := m.Last+max(0, m.Away).Milliseconds(), m.Voters/2+1
	if len(m.Clocks) < most {
		return at, false
	}
	slices.Sort(m.Clocks)
	reached := m.Clocks[len(m.Clocks)-most] // the latest moment that a majority has reached
	passed := m.Clocks[most-1]              // the earliest one that a majority has not passed
	switch slack := storage.Jump.Milliseconds(); {
	case m.Voters == 1:
		return reached, true
	case reached-at > slack, reached > at && m.Away < 0:
		if !m.agrees(reached) {
			return at, false
		}
		return reached, true
	case at-passed > slack:
		return passed, true
	}
	return at, true
}

// agrees says that another clock says much the same.
func (m *Moment) agrees(at int64) bool {
	n := 0
	for _, c := range m.Clocks {
		if off := time.Duration(c-at) * time.Millisecond; off.Abs() <= agree {
			n++
		}
	}
	return n > 1
}
