package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// typed is a terminal where somebody has typed a line.
func typed(t *testing.T, line string) *os.File {
	t.Helper()
	typist, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { typist.Close() })
	if err := unix.IoctlSetPointerInt(int(typist.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(typist.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	reader, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { reader.Close() })
	if _, err := typist.WriteString(line + "\n"); err != nil {
		t.Fatal(err)
	}
	return reader
}

func TestWhatCannotBeUndoneIsAskedOnATerminal(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir())
	for name, c := range map[string]struct {
		args          []string
		asks, told    string
		packetsBehind string
	}{
		"purge":   {[]string{"purge", "q"}, "Delete 2 packets of queue \"q\"? [y/N] ", "2 packets deleted\n", "0 0"},
		"harvest": {[]string{"harvest", "q", "--consumer", "w"}, "End 1 claim of queue \"q\", whose consumers may be at work? [y/N] ", "1 claim ended\n", "2 0"},
		"move":    {[]string{"move", "q", "other"}, "Move 1 packet of queue \"q\" to queue \"other\"? [y/N] ", "1 packet moved\n", "0 1"},
		"close":   {[]string{"close", "q"}, "Close queue \"q\" for ever? [y/N] ", "", "1 1"},
		"drops":   {[]string{"drop", "q", "q2"}, "Delete queue \"q\" with 2 packets, queue \"q2\" with 0 packets? [y/N] ", "", ""},
		"drop":    {[]string{"drop", "q"}, "Delete queue \"q\" with 2 packets? [y/N] ", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s.run(t, "drop", "q", "--yes")
			s.must(t, "set", "q", "lease=1h")
			s.must(t, "set", "q2", "lease=1h")
			s.must(t, "push", "q", "x")
			s.must(t, "push", "q", "y")
			s.must(t, "claim", "q", "--consumer", "w")
			holds := func() string {
				return strings.Join(columns(s.must(t, "queues", "--match", "q"), 1, 3), "")
			}
			oneErrorLine(t, s.run(t, c.args...), exitUsage, "confirm it with --yes")
			for answer, want := range map[string]result{"n": {exitFailed, "", c.asks + "holdfast: nothing was done\n"}, "": {exitFailed, "", c.asks + "holdfast: nothing was done\n"}} {
				if got := answered(t, s, answer, c.args...); got != want {
					t.Errorf("answered %q: %+v, want %+v", answer, got, want)
				}
			}
			if got := holds(); got != "1 1" {
				t.Errorf("the queue holds %s, want what it held before", got)
			}
			if got, want := answered(t, s, "Yes", c.args...), (result{exitOK, c.told, c.asks}); got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
			if got := holds(); got != c.packetsBehind {
				t.Errorf("the queue holds %q, want %q", got, c.packetsBehind)
			}
		})
	}
}

// answered runs a command on a terminal where somebody answers.
func answered(t *testing.T, s *testServer, answer string, args ...string) result {
	t.Helper()
	c := s.command()
	c.from = typed(t, answer)
	return c.run(t.Context(), args...)
}

func TestManyPacketsAreCountedThenChanged(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir())
	for i := range 3 {
		s.must(t, "push", "q", fmt.Sprint(i), "--tag", fmt.Sprintf("n=%d", i))
	}
	s.must(t, "push", "claimed", "x")
	s.must(t, "claim", "claimed")
	one := s.must(t, "push", "q", "one", "--id")
	for _, step := range []struct{ command, want string }{
		{"move q other --filter n>=1 --dry-run", "2 packets would be moved\n"},
		{"move q other --filter n>=1 --yes", "2 packets moved\n"},
		{"move q other --yes --json " + one, `{"packets":1}` + "\n"},
		{"purge other --state dead --yes", "0 packets deleted\n"},
		{"purge other --filter n=1 --yes", "1 packet deleted\n"},
		{"harvest claimed --dry-run --older 1h", "0 claims would be ended\n"},
		{"harvest claimed --dry-run", "1 claim would be ended\n"},
	} {
		if got := s.must(t, strings.Fields(step.command)...); got != step.want {
			t.Errorf("%s printed %q, want %q", step.command, got, step.want)
		}
	}
	for _, command := range []string{"purge none", "harvest none --dry-run", "redrive none", "move none q"} {
		oneErrorLine(t, s.run(t, strings.Fields(command)...), exitNothing, `queue "none": no queue has this name`)
	}
	if got, want := columns(s.must(t, "list", "other"), 7), []string{"2", "one"}; !slices.Equal(got, want) {
		t.Errorf("the other queue has %q, want %q", got, want)
	}
}

func TestDeadPacketsAreRedriven(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir())
	s.must(t, "set", "q", "dead-letter=graves")
	for range 4 {
		s.must(t, "push", "q", "x")
		c := claim(t, s, "q")
		s.must(t, append([]string{"nack", "--dead"}, c.receipt()...)...)
	}
	for _, step := range []struct{ command, want string }{
		{"redrive graves --dry-run", "4 dead packets would be ready again\n"},
		{"redrive graves 777 " + strings.Join(columns(s.must(t, "list", "graves"), 0)[:2], " "), "2 dead packets ready again\n"},
		{"redrive graves --to other --json", `{"packets":2}` + "\n"},
	} {
		if got := s.must(t, strings.Fields(step.command)...); got != step.want {
			t.Errorf("%s printed %q, want %q", step.command, got, step.want)
		}
	}
	oneErrorLine(t, s.run(t, "redrive", "graves", "777", "778"), exitNothing, "no such packet: 778")
	oneErrorLine(t, s.run(t, "redrive", "graves", "777"), exitNothing, "no such packet: 777 in graves is not there, or not dead")
	if got, want := columns(s.must(t, "queues"), 0, 1), []string{"other 2", "q 2"}; !slices.Equal(got, want) {
		t.Errorf("the queues hold %q, want %q", got, want)
	}
}
