package main

import (
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
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
	bar   *progressbar.ProgressBar // of the stage, nil before it is shown
}

// meter begins a meter, which the caller ends.
func (p *program) meter(quiet bool) *meter {
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
		m.showBar(m.stage.text(now))
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

// showBar shows a bar, or a spinner for a stage without a total, with text beside it.
func (m *meter) showBar(text string) {
	most, done := int64(-1), m.stage.done // -1: not known
	if m.stage.total > 0 {
		most = m.stage.total
		done = min(done, most-1) // a full bar would vanish, and the stage goes on
	}
	if m.bar == nil {
		m.bar = progressbar.NewOptions64(most,
			progressbar.OptionSetWriter(m.w),
			progressbar.OptionShowDescriptionAtLineEnd(), // with all numbers: the first rates of the library are nonsense
			progressbar.OptionSetWidth(24),
			progressbar.OptionSetTheme(progressbar.ThemeASCII),
			progressbar.OptionSetPredictTime(false),
			progressbar.OptionSetElapsedTime(false),
			progressbar.OptionUseANSICodes(true),
			progressbar.OptionClearOnFinish(),
			progressbar.OptionSetSpinnerChangeInterval(0), // no goroutine of its own
		)
		m.bar.StartWithoutRender()
	}
	m.bar.ChangeMax64(most)
	_ = m.bar.Set64(done)
	m.bar.Describe(text)
}

// clear leaves nothing of a stage on a terminal.
func (m *meter) clear() {
	if m.bar != nil {
		_ = m.bar.Clear()
		m.bar = nil
	}
}
