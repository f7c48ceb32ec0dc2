package terminal

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/terminal/terminaltest"
)

// steps moves a meter's clock.
type steps struct{ at time.Time }

func (s *steps) now() time.Time { return s.at }

func TestLinesOfProgressComeNowAndThen(t *testing.T) {
	var out bytes.Buffer
	clock := &steps{time.Unix(1000, 0)}
	m := newMeter(&out, false, clock.now)
	for range 9 { // seconds
		m.Set("verify", InPackets, m.stage.done, 1000)
		m.Set("verify", InPackets, m.stage.done+100, 1000)
		clock.at = clock.at.Add(time.Second)
	}
	m.Set("merge", InBytes, 3<<20, 0)
	m.End()
	m.Set("merge", InBytes, 4<<20, 0)
	want := "holdfast: verify: 300/~1000 packets, 100/s, ~7s left\n" +
		"holdfast: verify: 800/~1000 packets, 100/s, ~2s left\n"
	if out.String() != want {
		t.Errorf("printed\n%swant\n%s", out.String(), want)
	}
}

func TestMeterChoosesItsForm(t *testing.T) {
	terminal, _ := openTerminal(t)
	file, err := os.Create(t.TempDir() + "/stderr")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for name, c := range map[string]struct {
		stderr          io.Writer
		quiet           bool
		term            string
		shown, terminal bool
	}{
		"terminal":         {terminal, false, "xterm", true, true},
		"dumb terminal":    {terminal, false, "dumb", true, false},
		"file":             {file, false, "xterm", true, false},
		"not even a file":  {io.Discard, false, "", true, false},
		"quiet":            {file, true, "", false, false},
		"quiet terminal":   {terminal, true, "xterm", false, false},
		"unknown terminal": {terminal, false, "", true, true},
	} {
		p := Process{Stderr: c.stderr, Env: func(string) (string, bool) { return c.term, true }}
		if m := p.Meter(c.quiet); (m.w != nil) != c.shown || m.terminal != c.terminal {
			t.Errorf("%s: shown %t, as on a terminal %t; want %t, %t", name, m.w != nil, m.terminal, c.shown, c.terminal)
		}
	}
}

func TestFirstSecondOfAStageHasNoRate(t *testing.T) {
	began := time.Unix(1000, 0)
	const done, total = 3000, 9000
	for name, c := range map[string]struct {
		stage stage
		after time.Duration
		want  string // behind the name and what is done
	}{
		"at once":           {stage{done: done, total: total}, 0, "/~9000 packets"},
		"too early":         {stage{done: done, total: total}, firstRate - 1, "/~9000 packets"},
		"after a second":    {stage{done: done, total: total}, firstRate, "/~9000 packets, 3000/s, ~2s left"},
		"of a load":         {stage{first: 2000, done: done, total: total}, firstRate, "/~9000 packets, 1000/s, ~6s left"},
		"nothing so far":    {stage{first: done, done: done, total: total}, time.Minute, "/~9000 packets"},
		"going back":        {stage{first: done + 1, done: done, total: total}, time.Minute, "/~9000 packets"},
		"slow":              {stage{done: done, total: total}, 2 * time.Hour, "/~9000 packets, ~4h0m0s left"},
		"without a total":   {stage{done: done}, firstRate, " packets, 3000/s"},
		"more than thought": {stage{done: done, total: 2000}, firstRate, "/~2000 packets, 3000/s"},
	} {
		c.stage.name, c.stage.unit, c.stage.began = "load", InPackets, began
		if got, want := c.stage.text(began.Add(c.after)), "load: 3000"+c.want; got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestStageBeginsWithWhatIsDone(t *testing.T) {
	clock := &steps{time.Unix(1000, 0)}
	var out bytes.Buffer
	m := newMeter(&out, false, clock.now)
	m.Set("count", InBytes, 0, 0)
	clock.at = clock.at.Add(firstLine)
	m.Set("count", InBytes, 0, 0)
	m.Set("load", InPackets, 5000, 10_000)
	clock.at = clock.at.Add(lineEvery)
	m.Set("load", InPackets, 6000, 10_000)
	want := "holdfast: count\nholdfast: load: 6000/~10000 packets, 200/s, ~20s left\n"
	if out.String() != want {
		t.Errorf("printed\n%swant\n%s", out.String(), want)
	}
}

func TestBarShowsRateAndTimeLeftAndGoes(t *testing.T) {
	terminal, seen := openTerminal(t)
	now := time.Unix(1000, 0)
	for _, c := range []struct {
		s    stage
		took time.Duration
		want string
	}{
		{stage{name: "verify", unit: InPackets, done: 300, total: 1000}, time.Second, "30% [=======.................]  verify: 300/~1000 packets, 300/s, ~2s left"},
		{stage{name: "verify", unit: InPackets, done: 300, total: 1000}, time.Second - 1, "30% [=======.................]  verify: 300/~1000 packets"},
		{stage{name: "read", unit: InBytes, done: 3 << 20}, time.Second, "read: 3.0 MiB, 3.0 MiB/s"},
		{stage{name: "merge", unit: InBytes, done: 3 << 20, total: 4 << 20}, time.Second, "75% [==================......]  merge: 3.0 MiB/4.0 MiB, 3.0 MiB/s"},
		{stage{name: "count", unit: InBytes}, time.Minute, "count"},
		{stage{name: "all", unit: InPackets, done: 5, total: 5}, time.Second, "100% [========================]  all: 5/~5 packets, 5/s"},
		{stage{name: "more", unit: InPackets, done: 9, total: 5}, time.Second, "100% [========================]  more: 9/~5 packets, 9/s"}, // the total was an estimate
		{stage{name: "check packets", unit: InPackets, done: 1e6, total: 1e8}, time.Second, "1% [.....]  check packets: 1000000/~100000000 packets, 1000000/s, ~1m39s left"},
	} {
		c.s.began = now.Add(-c.took)
		m := Meter{w: terminal, stage: c.s}
		m.show(c.s.text(now))
		m.End()
		shown := seen()
		if !strings.Contains(shown, "\r"+c.want+cleared[1:]) {
			t.Errorf("%s: shown %q, want %q", c.s.name, shown, c.want)
		}
		for _, line := range strings.Split(shown, "\r") {
			if line, _, _ = strings.Cut(line, "\x1b"); len(line) > 80 {
				t.Errorf("%s: a line of %d columns: %q", c.s.name, len(line), line)
			}
		}
	}
}

// cleared takes a bar away.
const cleared = "\r\x1b[K"

// openTerminal returns a terminal of 80 columns, and what reads what is written to it until a bar
// is taken away.
func openTerminal(t *testing.T) (terminal *os.File, seen func() string) {
	t.Helper()
	terminal, control := terminaltest.OfSize(t, 80, 24)
	return terminal, func() string {
		_ = control.SetReadDeadline(time.Now().Add(30 * time.Second)) // only a failing test waits that long
		var all strings.Builder
		buf := make([]byte, 64<<10)
		for !strings.HasSuffix(all.String(), cleared) {
			n, err := control.Read(buf)
			if err != nil {
				t.Fatalf("shown %q, want the line cleared at last: %v", all.String(), err)
			}
			all.Write(buf[:n])
		}
		return all.String()
	}
}
