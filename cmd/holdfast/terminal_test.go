package main

import (
	"bytes"
	"context"
	"strconv"
	"strings"
	"testing"

	"github.com/rivo/uniseg"

	"github.com/holdfast-queue/holdfast/cmd/terminal/terminaltest"
)

// onTerminal runs a client command against the server, in a terminal of a size, and returns what
// that would show.
func onTerminal(t *testing.T, s *testServer, width, height uint16, args ...string) string {
	t.Helper()
	return s.command().onTerminal(t, width, height, args...).stdout
}

// onTerminal runs a command in a terminal of a size. What that would show is its standard output.
func (c command) onTerminal(t *testing.T, width, height uint16, args ...string) result {
	t.Helper()
	tty, screen := terminaltest.OfSize(t, width, height)
	shown := make(chan string, 1)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	go func() { // ends when the terminal is closed
		var all []byte
		for part := make([]byte, 4096); ; {
			n, err := screen.Read(part)
			if all = append(all, part[:n]...); bytes.Contains(all, []byte("\x1b[J")) {
				cancel() // a page was painted
			}
			if err != nil {
				break
			}
		}
		shown <- string(all)
	}()
	c.stdout, c.stderr = tty, tty
	code := c.run(ctx, args...).code
	_ = tty.Close()
	return result{code: code, stdout: strings.ReplaceAll(<-shown, "\r\n", "\n")}
}

func TestNoTerminalGetsBytesThatItObeys(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir())
	for _, evil := range []string{"\x1b]0;evil\x07\u009b31m\x7f\xff", "\u009b31m\x7f"} {
		shownLegibly(t, s, evil)
	}
}

func shownLegibly(t *testing.T, s *testServer, evil string) {
	fill := func(payload string) string {
		return strings.TrimSpace(s.must(t, "push", evil, payload, "--id", "--key", evil, "--tag", evil+"="+evil, "--producer", evil))
	}
	for _, args := range []string{"peek Q", "list Q", "list Q --json", "show Q ID", "show Q ID --raw", "show Q ID --json", "queues", "queues --json",
		"stats Q", "show Q 99", "get Q", "claim Q --consumer Q", "pop Q", "pop Q --raw", "pop Q --json", "subscribe Q --count 1"} {
		id := fill(evil)
		words := strings.Fields(args)
		for i, w := range words {
			words[i] = strings.NewReplacer("Q", evil, "ID", id).Replace(w)
		}
		got := onTerminal(t, s, 80, 24, words...)
		if got == "" || strings.ContainsAny(got, "\x1b\x07\u009b\x7f") {
			t.Errorf("%s shows %q, want no byte that a terminal obeys", args, got)
		}
	}
	for payload, want := range map[string]string{"two\n\tlines": "two\n\tlines\n", "日本\u3000語 é": "日本\u3000語 é\n", "a\x1b[2J": `"a\x1b[2J"` + "\n", "a\rb": `"a\rb"` + "\n"} {
		fill(payload)
		if got := onTerminal(t, s, 80, 24, "pop", evil, "--newest"); strings.ReplaceAll(got, "        ", "\t") != want {
			t.Errorf("%q is shown as %q, want %q", payload, got, want)
		}
		fill(payload)
		if got := s.must(t, "pop", evil, "--raw", "--newest"); got != payload {
			t.Errorf("%q comes through a pipe as %q", payload, got)
		}
	}
}

func TestTablesFitTheTerminal(t *testing.T) {
	s := serve(t, t.TempDir())
	wide := strings.Repeat("日本", 60)
	for _, payload := range []string{"short", strings.Repeat("long ", 60) + "end", wide} {
		for _, queue := range []string{"q", strings.Repeat("queue", 30)} {
			s.must(t, "push", queue, payload, "--key", wide, "--tag", "tag="+wide)
		}
	}
	names := strings.Fields("a b c d e f g h i j k l m n o p q r s t u v w x y z")
	for _, queue := range names {
		s.must(t, "push", queue, "x")
	}
	for _, width := range []uint16{80, 100, 200} {
		for _, args := range [][]string{{"list", "q"}, {"peek", "q"}, {"queues", "--match", "*"}, append([]string{"stats"}, names...), {"stats", strings.Repeat("queue", 30)}, {"claim", "q", "--count", "9", "--lease", "1ms"}} {
			got := onTerminal(t, s, width, 24, args...)
			for _, line := range strings.Split(got, "\n") {
				if n := uniseg.StringWidth(line); n > int(width) {
					t.Errorf("%v on %d characters: %d in %q", args, width, n, line)
				}
			}
			if args[1] == "q" && !strings.Contains(got, "…") {
				t.Errorf("%v on %d characters: nothing is cut in\n%s", args, width, got)
			}
			if args[0] == "stats" && len(args) > 2 && strings.Count(got, "\nQUEUE")+strings.Count(got, "QUEUE ") < 3 {
				t.Errorf("%v on %d characters has not all queues:\n%s", args, width, got)
			}
		}
	}
	for _, args := range [][]string{{"list", "q"}, {"peek", "q"}} {
		if got := s.must(t, args...); strings.Contains(got, "…") || !strings.Contains(got, "long end") || !strings.Contains(got, wide) {
			t.Errorf("%v through a pipe:\n%s\nwant nothing cut", args, got)
		}
	}
	if got := onTerminal(t, s, 80, 24, "list", "q"); strings.Count(got, "\n") != 5 || !strings.Contains(got, "  short  ") {
		t.Errorf("the list is\n%s\nwant rows with ids, states and short payloads as they are", got)
	}
}

func TestAPageNeverScrolls(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir())
	for i := range 30 {
		s.must(t, "push", "queue"+strconv.Itoa(i), "x")
	}
	for height, want := range map[uint16]int{10: 9, 24: 23, 31: 30, 32: 31, 50: 31} {
		got := onTerminal(t, s, 80, height, "stats", "--watch", "--every", "1h")
		if lines := strings.Count(got, "\n"); lines != want || !strings.HasPrefix(got, "\x1b[HQUEUE ") || !strings.HasSuffix(got, "\n\x1b[J") {
			t.Errorf("%d lines in a terminal of %d, want %d:\n%q", lines, height, want, got)
		}
	}
}
