package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// steps moves a meter's clock.
type steps struct{ at time.Time }

func (s *steps) now() time.Time { return s.at }

func TestLinesOfProgressComeNowAndThen(t *testing.T) {
	var out bytes.Buffer
	clock := &steps{time.Unix(1000, 0)}
	m := &meter{now: clock.now, view: lines{&out}}
	m.begin()
	for range 9 { // seconds
		m.set("verify", inPackets, m.stage.done, 1000)
		m.set("verify", inPackets, m.stage.done+100, 1000)
		clock.at = clock.at.Add(time.Second)
	}
	m.set("merge", inBytes, 3<<20, 0)
	m.end()
	m.set("merge", inBytes, 4<<20, 0)
	want := "holdfast: verify: 300 packets, 30 % of about 1000 packets, 100 packets/s, about 7s left\n" +
		"holdfast: verify: 800 packets, 80 % of about 1000 packets, 100 packets/s, about 2s left\n"
	if out.String() != want {
		t.Errorf("printed\n%swant\n%s", out.String(), want)
	}
}

func TestDumpExpectsWhatItWillWrite(t *testing.T) {
	for name, c := range map[string]struct {
		dump  dumpCmd
		total int64
		want  int64
	}{
		"all":         {dumpCmd{}, 1000, 1000},
		"some queues": {dumpCmd{Queue: []string{"q"}}, 1000, 0},
		"a few":       {dumpCmd{Limit: 10}, 1000, 10},
		"fewer":       {dumpCmd{Limit: 10}, 5, 5},
	} {
		if got := c.dump.expected(c.total); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
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
		stderr io.Writer
		quiet  bool
		term   string
		want   string
	}{
		"terminal":         {terminal, false, "xterm", "*main.bar"},
		"dumb terminal":    {terminal, false, "dumb", "main.lines"},
		"file":             {file, false, "xterm", "main.lines"},
		"not even a file":  {io.Discard, false, "", "main.lines"},
		"quiet":            {file, true, "", "<nil>"},
		"quiet terminal":   {terminal, true, "xterm", "<nil>"},
		"unknown terminal": {terminal, false, "", "*main.bar"},
	} {
		p := program{stderr: c.stderr, env: command{env: map[string]string{"TERM": c.term}}.lookup}
		m := p.meter(c.quiet)
		if got := fmt.Sprintf("%T", m.view); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		m.end()
	}
}

func TestFirstSecondOfAStageHasNoRate(t *testing.T) {
	began := time.Unix(1000, 0)
	const done, total = 3000, 9000
	for name, c := range map[string]struct {
		stage stage
		after time.Duration
		want  string // of a line, behind the name and what is done
	}{
		"at once":           {stage{done: done, total: total}, 0, ", 33 % of about 9000 packets"},
		"too early":         {stage{done: done, total: total}, firstRate - 1, ", 33 % of about 9000 packets"},
		"after a second":    {stage{done: done, total: total}, firstRate, ", 33 % of about 9000 packets, 3000 packets/s, about 2s left"},
		"of a load":         {stage{first: 2000, done: done, total: total}, firstRate, ", 33 % of about 9000 packets, 1000 packets/s, about 6s left"},
		"nothing so far":    {stage{first: done, done: done, total: total}, time.Minute, ", 33 % of about 9000 packets"},
		"going back":        {stage{first: done + 1, done: done, total: total}, time.Minute, ", 33 % of about 9000 packets"},
		"slow":              {stage{done: done, total: total}, 2 * time.Hour, ", 33 % of about 9000 packets, about 4h0m0s left"},
		"without a total":   {stage{done: done}, firstRate, ", 3000 packets/s"},
		"more than thought": {stage{done: done, total: 2000}, firstRate, ", 100 % of about 2000 packets, 3000 packets/s"},
	} {
		var out bytes.Buffer
		c.stage.name, c.stage.unit, c.stage.began = "load", inPackets, began
		lines{&out}.show(&c.stage, began.Add(c.after))
		if want := "holdfast: load: 3000 packets" + c.want + "\n"; out.String() != want {
			t.Errorf("%s: %q, want %q", name, out.String(), want)
		}
	}
}

func TestStageBeginsWithWhatIsDone(t *testing.T) {
	clock := &steps{time.Unix(1000, 0)}
	var out bytes.Buffer
	m := &meter{now: clock.now, view: lines{&out}}
	m.begin()
	m.set("count", inBytes, 0, 0)
	clock.at = clock.at.Add(firstLine)
	m.set("count", inBytes, 0, 0)
	m.set("load", inPackets, 5000, 10_000)
	clock.at = clock.at.Add(lineEvery)
	m.set("load", inPackets, 6000, 10_000)
	want := "holdfast: count\nholdfast: load: 6000 packets, 60 % of about 10000 packets, 200 packets/s, about 20s left\n"
	if out.String() != want {
		t.Errorf("printed\n%swant\n%s", out.String(), want)
	}
}

func TestBarShowsRateAndTimeLeftAndGoes(t *testing.T) {
	terminal, seen := openTerminal(t)
	b := &bar{w: terminal}
	now := time.Unix(1000, 0)
	for _, c := range []struct {
		s    stage
		took time.Duration
		want string
	}{
		{stage{name: "verify", unit: inPackets, done: 300, total: 1000}, time.Second, "  verify: 300/~1000 packets, 300/s, ~2s left "},
		{stage{name: "verify", unit: inPackets, done: 300, total: 1000}, time.Second - 1, "  verify: 300/~1000 packets "},
		{stage{name: "read", unit: inBytes, done: 3 << 20}, time.Second, "  read: 3.0 MiB, 3.0 MiB/s "},
		{stage{name: "merge", unit: inBytes, done: 3 << 20, total: 4 << 20}, time.Second, " 75% [=================>......]  merge: 3.0 MiB/4.0 MiB, 3.0 MiB/s "},
		{stage{name: "count", unit: inBytes}, time.Minute, "  count "},
		{stage{name: "all", unit: inPackets, done: 5, total: 5}, time.Second, " 80% [==================>.....]  all: 5/~5 packets, 5/s "}, // the stage may go on
		{stage{name: "check packets", unit: inPackets, done: 1e6, total: 1e8}, time.Second, " 1% [....]  check packets: 1000000/~100000000 packets, 1000000/s, ~1m39s left "},
	} {
		c.s.began = now.Add(-c.took)
		b.begin(&c.s)
		b.show(&c.s, now)
		b.end()
		shown := seen()
		if !strings.Contains(shown, c.want+"\x1b[0K") {
			t.Errorf("%s: shown %q, want %q", c.s.name, shown, c.want)
		}
		for _, line := range strings.Split(shown, "\r") {
			if line, _, _ = strings.Cut(line, "\x1b"); len(line) > 80 {
				t.Errorf("%s: a line of %d columns: %q", c.s.name, len(line), line)
			}
		}
	}
}

// cleared is what takes a bar away.
const cleared = "\x1b[2K\r"

// openTerminal returns a terminal of 80 columns, and what reads what is written to it until a bar is
// taken away.
func openTerminal(t *testing.T) (terminal *os.File, seen func() string) {
	t.Helper()
	control, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("the system gives no terminal: %v", err)
	}
	t.Cleanup(func() { control.Close() })
	fd := int(control.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(int(terminal.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80})
	}
	if err != nil {
		t.Skipf("the system gives no terminal: %v", err)
	}
	t.Cleanup(func() { terminal.Close() })
	return terminal, func() string {
		_ = control.SetReadDeadline(time.Now().Add(patience))
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
