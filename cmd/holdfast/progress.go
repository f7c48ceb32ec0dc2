package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"
)

// progress is the flag of a command that may take long.
type progress struct {
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

// measure is what a meter counts.
type measure string

const (
	inPackets measure = "packets" // totals are estimates: no folder counts its packets that expire
	inKeys    measure = "keys"    // strings, hashes and fields
	inBytes   measure = "bytes"
)

// number is a count of the measure, for people.
func (u measure) number(n int64) string {
	if u == inBytes {
		return approximate(n)
	}
	return strconv.FormatInt(n, 10)
}

// stage is one part of a command's work.
type stage struct {
	name        string
	unit        measure
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
			if s.unit == inPackets {
				text += "~"
			}
			text += s.unit.number(s.total)
		}
		if s.unit != inBytes {
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

// meter shows how far a command is: by a bar where standard error is a terminal, by a line now and
// then where it is not.
type meter struct {
	now      func() time.Time
	terminal bool

	mu    sync.Mutex // guards what follows; any goroutine may report
	w     io.Writer  // nil: nothing is shown
	due   time.Time  // nothing is shown before
	stage stage
	shown bool // on the terminal
}

// meter begins a meter, which the caller ends.
func (p *Process) meter(quiet bool) *meter {
	if quiet {
		return &meter{now: time.Now}
	}
	kind, _ := p.env("TERM")
	return newMeter(p.stderr, kind != "dumb" && terminalOf(p.stderr) != nil, time.Now)
}

func newMeter(w io.Writer, terminal bool, now func() time.Time) *meter {
	m := &meter{now: now, terminal: terminal, w: w, due: now().Add(firstLine)}
	if terminal {
		m.due = now().Add(firstBar)
	}
	return m
}

// set tells how far a stage is. A new name begins a new stage.
func (m *meter) set(name string, u measure, done, total int64) {
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

// end takes the meter away. It shows nothing from then on.
func (m *meter) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clear()
	m.w = nil
}

// bar is how many characters a bar has, at most.
const bar = 24

// show shows the text on a line of the terminal, and a bar before it if the total is known and the
// line has room. What is there stays until the next one, or until clear.
func (m *meter) show(text string) {
	width, _ := sizeOf(m.w)
	if room := min(bar, width-widthOf(text)-len("100% []   ")); m.stage.total > 0 && room > 0 {
		part := min(1, float64(m.stage.done)/float64(m.stage.total)) // the total may be an estimate
		full := int(part * float64(room))
		text = fmt.Sprintf("%d%% [%s%s]  %s", int(part*100), strings.Repeat("=", full), strings.Repeat(".", room-full), text)
	}
	m.shown = true
	fmt.Fprint(m.w, "\r"+shorten(text, width-1)+"\x1b[K")
}

// clear leaves nothing of a stage on a terminal.
func (m *meter) clear() {
	if m.shown {
		m.shown = false
		fmt.Fprint(m.w, "\r\x1b[K")
	}
}
