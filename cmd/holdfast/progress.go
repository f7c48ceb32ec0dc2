package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progress is the flag of a command that may take long.
type progress struct {
	Quiet bool `short:"q" help:"Show no progress on standard error."`
}

const (
	// Runs that are over before firstLine need no word about themselves, and a bar that flashes up
	// for less than firstBar is only unrest.
	firstLine = 3 * time.Second
	firstBar  = 300 * time.Millisecond

	lineEvery = 5 * time.Second
	barEvery  = 100 * time.Millisecond

	firstRate = time.Second // of a stage: what it did in less says little of how fast it is
)

// measure is what a meter counts.
type measure string

const (
	inPackets measure = "packets"
	inBytes   measure = "bytes"
)

// meter shows how far a command is: a bar where standard error is a terminal, a line now and then
// where it is not, nothing when it is to be quiet.
type meter struct {
	now func() time.Time

	mu    sync.Mutex // guards what follows; work under way reports from any goroutine
	view  view       // nil: nothing is shown
	stage stage
	began time.Time // of the command
	due   time.Time // nothing is shown before
}

// stage is one part of a command's work.
type stage struct {
	name        string
	unit        measure
	began       time.Time
	first       int64 // done when it began: of a load that goes on, what was stored before
	done, total int64 // total 0: not known
}

// pace is how fast a stage is, a second, and how long it will go on if it stays so; 0 while that
// cannot be told.
func (s *stage) pace(now time.Time) (rate int64, left time.Duration) {
	took, done := now.Sub(s.began), s.done-s.first
	if took < firstRate || done <= 0 {
		return 0, 0
	}
	perSecond := float64(done) / took.Seconds()
	if s.total > s.done {
		left = time.Duration(float64(s.total-s.done) / perSecond * float64(time.Second)).Round(time.Second)
	}
	return int64(perSecond), left
}

// view is the form in which a meter shows itself.
type view interface {
	wait() (first, next time.Duration) // after the command's beginning, between two times
	begin(s *stage)
	show(s *stage, now time.Time)
	end() // of the stage, if one has begun; leaves nothing on a terminal
}

// meter begins a meter. Its end is up to the caller.
func (p *program) meter(quiet bool) *meter {
	m := &meter{now: time.Now}
	file, ok := p.stderr.(*os.File)
	kind, _ := p.env("TERM")
	switch {
	case quiet:
	case ok && kind != "dumb" && term.IsTerminal(int(file.Fd())):
		m.view = &bar{w: file}
	default:
		m.view = lines{p.stderr}
	}
	m.begin()
	return m
}

func (m *meter) begin() {
	m.began = m.now()
	if m.view != nil {
		first, _ := m.view.wait()
		m.due = m.began.Add(first)
	}
}

// set tells how far a stage is; the first call with another name begins that stage. Any goroutine
// may call it.
func (m *meter) set(name string, u measure, done, total int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.view == nil {
		return
	}
	now := m.now()
	if name != m.stage.name {
		m.view.end()
		m.stage = stage{name: name, unit: u, began: now, first: done, total: total}
		m.view.begin(&m.stage)
	}
	m.stage.done, m.stage.total = done, total
	if now.Before(m.due) || done == 0 && total > 0 { // of a stage that has not done anything there is no rate
		return
	}
	_, next := m.view.wait()
	m.due = now.Add(next)
	m.view.show(&m.stage, now)
}

// end takes the meter away. What is set afterwards is not shown.
func (m *meter) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.view != nil {
		m.view.end()
		m.view = nil
	}
}

// lines shows a meter in a log or a pipe.
type lines struct{ w io.Writer }

func (lines) wait() (first, next time.Duration) { return firstLine, lineEvery }
func (lines) begin(*stage)                      {}
func (lines) end()                              {}

func (l lines) show(s *stage, now time.Time) {
	line := "holdfast: " + s.name
	if s.done > 0 {
		line += ": " + s.unit.count(s.done)
	}
	if s.total > 0 {
		line += fmt.Sprintf(", %d %% of ", 100*min(s.done, s.total)/s.total)
		if s.unit.estimated() {
			line += "about "
		}
		line += s.unit.count(s.total)
	}
	rate, left := s.pace(now)
	if rate > 0 {
		line += fmt.Sprintf(", %s/s", s.unit.count(rate))
	}
	if left > 0 {
		line += fmt.Sprintf(", about %v left", left)
	}
	fmt.Fprintln(l.w, line)
}

// estimated tells whether totals are estimates. Packets with an expiry are not counted anywhere, and
// how many are in a file is known only at its end.
func (u measure) estimated() bool { return u == inPackets }

// count is a number of what the unit counts.
func (u measure) count(n int64) string {
	if u == inBytes {
		return approximate(n)
	}
	return fmt.Sprintf("%d %s", n, u)
}

// number is the same where it is clear what is counted.
func (u measure) number(n int64) string {
	if u == inBytes {
		return approximate(n)
	}
	return strconv.FormatInt(n, 10)
}

// bar shows a meter on a terminal. Of a stage without a total it shows what is done and the rate.
type bar struct {
	w     io.Writer
	bar   *progressbar.ProgressBar // of the present stage
	total int64                    // that the library has been told
}

func (b *bar) wait() (first, next time.Duration) { return firstBar, barEvery }

func (b *bar) begin(s *stage) {
	const width = 24
	options := []progressbar.Option{
		progressbar.OptionSetWriter(b.w),
		progressbar.OptionSetDescription(s.name),
		progressbar.OptionShowDescriptionAtLineEnd(), // with all numbers: the library's rates begin with nonsense
		progressbar.OptionSetWidth(width),
		progressbar.OptionSetTheme(progressbar.ThemeASCII),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionSetElapsedTime(false),
		progressbar.OptionUseANSICodes(true),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionSpinnerType(plainSpinner),
		progressbar.OptionSetSpinnerChangeInterval(0), // no goroutine of its own
	}
	b.total = maxOf(s)
	b.bar = progressbar.NewOptions64(b.total, options...)
	b.bar.StartWithoutRender()
}

const plainSpinner = 9 // of the library's list: a stroke that turns

// maxOf is a stage's total as the library wants it.
func maxOf(s *stage) int64 {
	if s.total <= 0 {
		return -1
	}
	return s.total
}

func (b *bar) show(s *stage, now time.Time) {
	done, most := s.done, maxOf(s)
	if most != b.total {
		b.total = most
		b.bar.ChangeMax64(most)
	}
	if most > 0 {
		done = min(done, most-1) // at its end a bar would go, and the stage goes on
	}
	_ = b.bar.Set64(done)
	b.bar.Describe(b.text(s, now))
}

// text is what stands beside the bar, short, as a line that is too long for the terminal cannot be
// taken away.
func (b *bar) text(s *stage, now time.Time) string {
	text := s.name
	if s.done > 0 {
		text += ": " + s.unit.number(s.done)
		if s.total > 0 && s.unit.estimated() {
			text += "/~" + s.unit.count(s.total)
		} else if s.total > 0 {
			text += "/" + s.unit.count(s.total)
		}
	}
	rate, left := s.pace(now)
	if rate > 0 {
		text += fmt.Sprintf(", %s/s", s.unit.number(rate))
	}
	if left > 0 {
		text += fmt.Sprintf(", ~%v left", left)
	}
	return text
}

func (b *bar) end() {
	if b.bar != nil {
		_ = b.bar.Clear()
		b.bar = nil
	}
}
