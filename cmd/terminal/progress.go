package terminal

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Progress is the flag of a command that may take long.
type Progress struct {
	Quiet bool `short:"q" help:"Show no progress on standard error."`
}

const (
	// A command that ends sooner shows nothing.
	firstLine = 3 * time.Second
	firstBar  = 300 * time.Millisecond

	lineEvery = 5 * time.Second
	barEvery  = 100 * time.Millisecond

	firstRate = time.Second // of a stage: its rate in less time says little
)

// Measure is what a meter counts.
type Measure string

// What is counted.
const (
	InPackets Measure = "packets" // totals are estimates: no folder counts its packets that expire
	InKeys    Measure = "keys"    // strings, hashes and fields
	InBytes   Measure = "bytes"
)

// number is a count of the measure, for people.
func (u Measure) number(n int64) string {
	if u == InBytes {
		return Approximate(n)
	}
	return strconv.FormatInt(n, 10)
}

// stage is one part of a command's work.
type stage struct {
	name        string
	unit        Measure
	began       time.Time
	first       int64 // what was done when it began, as by a load that was cut short
	done, total int64 // total 0: not known
}

// text is how far the stage is, in one short line: a terminal cannot take a wrapped one away.
func (s *stage) text(now time.Time) string {
	text := s.name
	if s.done > 0 {
		text += ": " + s.unit.number(s.done)
		if s.total > 0 {
			text += "/"
			if s.unit == InPackets {
				text += "~"
			}
			text += s.unit.number(s.total)
		}
		if s.unit != InBytes {
			text += " " + string(s.unit)
		}
	}
	took, done := now.Sub(s.began), s.done-s.first
	if took < firstRate || done <= 0 {
		return text
	}
	rate := float64(done) / took.Seconds()
	if rate >= 1 {
		text += fmt.Sprintf(", %s/s", s.unit.number(int64(rate)))
	}
	left := time.Duration(float64(s.total-s.done) / rate * float64(time.Second)).Round(time.Second)
	if left > 0 {
		text += fmt.Sprintf(", ~%v left", left)
	}
	return text
}

// Meter shows how far a command is: by a bar where standard error is a terminal, by a line now and
// then where it is not.
type Meter struct {
	now      func() time.Time
	terminal bool

	mu    sync.Mutex // guards what follows; any goroutine may report
	w     io.Writer  // nil: nothing is shown
	due   time.Time  // nothing is shown before
	stage stage
	shown bool // on the terminal
}

// Meter begins a meter, which the caller ends. A quiet one shows nothing.
func (p *Process) Meter(quiet bool) *Meter {
	if quiet {
		return &Meter{now: time.Now}
	}
	kind, _ := p.Env("TERM")
	return newMeter(p.Stderr, kind != "dumb" && terminalOf(p.Stderr) != nil, time.Now)
}

func newMeter(w io.Writer, terminal bool, now func() time.Time) *Meter {
	m := &Meter{now: now, terminal: terminal, w: w, due: now().Add(firstLine)}
	if terminal {
		m.due = now().Add(firstBar)
	}
	return m
}

// Set tells how far a stage is; a total of 0 is not known. A new name begins a new stage.
func (m *Meter) Set(name string, u Measure, done, total int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.w == nil {
		return
	}
	now := m.now()
	if name != m.stage.name {
		m.clear()
		m.stage = stage{name: name, unit: u, began: now, first: done}
	}
	m.stage.done, m.stage.total = done, total
	if now.Before(m.due) || done == 0 && total > 0 { // a stage that has done nothing has no rate
		return
	}
	if m.terminal {
		m.due = now.Add(barEvery)
		m.show(m.stage.text(now))
	} else {
		m.due = now.Add(lineEvery)
		fmt.Fprintf(m.w, "holdfast: %s\n", m.stage.text(now))
	}
}

// End takes the meter away. It shows nothing from then on.
func (m *Meter) End() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clear()
	m.w = nil
}

// bar is how many characters a bar has, at most.
const bar = 24

// show shows the text on a line of the terminal, and a bar before it if the total is known and the
// line has room. What is there stays until the next one, or until clear.
func (m *Meter) show(text string) {
	width, _ := SizeOf(m.w)
	if room := min(bar, width-widthOf(text)-len("100% []   ")); m.stage.total > 0 && room > 0 {
		part := min(1, float64(m.stage.done)/float64(m.stage.total)) // the total may be an estimate
		full := int(part * float64(room))
		text = fmt.Sprintf("%d%% [%s%s]  %s", int(part*100), strings.Repeat("=", full), strings.Repeat(".", room-full), text)
	}
	m.shown = true
	fmt.Fprint(m.w, "\r"+shorten(text, width-1)+"\x1b[K")
}

// clear leaves nothing of a stage on a terminal.
func (m *Meter) clear() {
	if m.shown {
		m.shown = false
		fmt.Fprint(m.w, "\r\x1b[K")
	}
}
