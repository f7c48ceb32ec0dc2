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
	want := "holdfast: verify: 300 packets, 30 % of 1000 packets, 100 packets/s, 7s left\n" +
		"holdfast: verify: 800 packets, 80 % of 1000 packets, 100 packets/s, 2s left\n"
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

func TestBarShowsRateAndTimeLeftAndGoes(t *testing.T) {
	terminal, seen := openTerminal(t)
	b := &bar{w: terminal}
	for _, c := range []struct {
		s    stage
		want []string
	}{
		{stage{name: "verify", unit: inPackets, done: 300, total: 1000}, []string{"verify  30%", "300/1000", "packets/", ":"}},
		{stage{name: "read", unit: inBytes, done: 3 << 20}, []string{"read", "3.0 MiB", "/s"}},
		{stage{name: "all", unit: inPackets, done: 5, total: 5}, []string{"all  80%"}}, // the stage may go on
	} {
		b.begin(&c.s)
		b.show(&c.s, time.Now())
		b.end()
		shown := seen()
		for _, want := range c.want {
			if !strings.Contains(shown, want) {
				t.Errorf("%s: shown %q, want %q", c.s.name, shown, want)
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
