package main

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestPopPrintsWhatWasPushed(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir())
	for name, c := range map[string]struct {
		stdin string
		push  []string // after "push QUEUE"
		pop   []string // after "pop QUEUE"
		want  string
	}{
		"payload as argument":         {push: []string{"hello"}, want: "hello\n"},
		"payload from standard input": {stdin: "from stdin\n", want: "from stdin\n\n"},
		"dash is standard input":      {stdin: "dash", push: []string{"-"}, want: "dash\n"},
		"empty payload":               {stdin: "not read", push: []string{""}, want: "\n"},
		"payload with a dash":         {push: []string{"--", "-5"}, want: "-5\n"},
		"raw":                         {stdin: "a\x00\xff", pop: []string{"--raw"}, want: "a\x00\xff"},
		"JSON of text":                {push: []string{"<é>", "--key", "k"}, pop: []string{"--json"}, want: `{"payload":"<é>","key":"k","selected":true}` + "\n"},
		"JSON of bytes":               {stdin: "\xff\x00", push: []string{"--key", "\xfe"}, pop: []string{"--json"}, want: `{"payload":{"base64":"/wA="},"key":{"base64":"/g=="},"selected":true}` + "\n"},
		"argument of bytes":           {push: []string{"\xff"}, want: "\xff\n"},
		"JSON of nothing":             {push: []string{"", "--key", ""}, pop: []string{"--json"}, want: `{"payload":"","key":"","selected":true}` + "\n"},
		"long payload":                {stdin: strings.Repeat("x", 1_000_000), pop: []string{"--raw"}, want: strings.Repeat("x", 1_000_000)},
	} {
		t.Run(name, func(t *testing.T) {
			others := regexp.MustCompile(`"(id|queue|priority|attempt|enqueued)":("[^"]*"|\{[^}]*\}|\d+),`)
			queue := "\xfequeue of " + name
			if r := s.runWith(t, c.stdin, append([]string{"push", queue}, c.push...)...); r.code != exitOK || r.stdout+r.stderr != "" {
				t.Fatalf("push: %+v, want silence and exit code 0", r)
			}
			got := s.must(t, append([]string{"pop", queue}, c.pop...)...)
			got = others.ReplaceAllString(got, "")
			if got != c.want {
				t.Errorf("pop printed %.100q, want %.100q", got, c.want)
			}
			if r := s.run(t, "pop", queue); r.code != exitNothing || r.stdout != "" || !strings.Contains(r.stderr, "nothing to pop") {
				t.Errorf("pop of an empty queue: %+v, want an error and exit code 3", r)
			}
		})
	}
}

func TestAPushSaysThatItReadsATerminalAndRefusesNothing(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir())
	if got, want := answered(t, s, "hello\n\x04", "push", "q"), (result{exitOK, "", "holdfast: reading the payload from the terminal until Ctrl-D\n"}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := s.must(t, "pop", "q", "--raw"); got != "hello\n" {
		t.Errorf("pushed %q", got)
	}
	for _, args := range [][]string{{"push", "q"}, {"push", "q", "-"}} {
		oneErrorLine(t, s.runWith(t, "", args...), exitFailed, `standard input is empty, and nothing was pushed: holdfast push QUEUE "" pushes an empty packet`)
	}
	if got := s.must(t, "queues"); strings.Contains(got, "q ") {
		t.Errorf("the queues are\n%s", got)
	}
}

func TestPriorityIs128UnlessSaid(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir())
	s.must(t, "push", "q", "low", "--priority", "129")
	s.must(t, "push", "q", "high", "--priority", "127")
	s.must(t, "push", "q", "default")
	for _, want := range []string{"high\n", "default\n", "low\n"} {
		if got := s.must(t, "pop", "q"); got != want {
			t.Errorf("pop printed %q, want %q", got, want)
		}
	}
}

func TestPriority0IsNotSelected(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir())
	s.must(t, "push", "q", "hidden", "--priority", "0", "--key", "k")
	if r := s.run(t, "pop", "q"); r.code != exitNothing {
		t.Errorf("pop: %+v, want exit code 3", r)
	}
}

func TestKeysMakeGroups(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir())
	for name, c := range map[string]struct {
		keys []string // of three packets, as flags
		want string   // of the first pop
	}{
		"without a key packets are on their own": {[]string{"", "", ""}, "c\n"},
		"equal keys come together":               {[]string{"--key=k", "--key=other", "--key=k"}, "c\na\n"},
		"empty keys are equal":                   {[]string{"--key=", "--key=", ""}, "c\n"},
		"an empty key is a key":                  {[]string{"", "--key=", "--key="}, "c\nb\n"},
	} {
		t.Run(name, func(t *testing.T) {
			for i, key := range c.keys {
				args := []string{"push", name, string(rune('a' + i))}
				if key != "" {
					args = append(args, key)
				}
				s.must(t, args...)
			}
			if got := s.must(t, "pop", name, "--group"); got != c.want {
				t.Errorf("pop printed %q, want %q", got, c.want)
			}
		})
	}
}

func TestJSONTellsWhichPacketWasSelected(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir())
	s.must(t, "push", "q", "along", "--key", "k", "--priority", "0")
	s.must(t, "push", "q", "chosen", "--key", "k")
	lines := strings.SplitAfter(s.must(t, "pop", "q", "--group", "--json"), "\n")
	want := []string{`chosen,"selected":true`, `along,"selected":false`, `,`}
	has := func(line, parts string) bool {
		first, second, _ := strings.Cut(parts, ",")
		return strings.Contains(line, first) && strings.Contains(line, second)
	}
	if !slices.EqualFunc(lines, want, has) {
		t.Errorf("pop printed\n%q\nwant\n%q", lines, want)
	}
}

func TestTTLEndsAPacket(t *testing.T) {
	s := serve(t, t.TempDir())
	s.must(t, "push", "q", "for long", "--ttl", "65.535s", "--priority", "9")
	s.must(t, "push", "q", "short", "--ttl", "1ms", "--priority", "1")
	for end := time.Now().Add(patience); ; {
		got := s.must(t, "pop", "q")
		if got == "for long\n" {
			return
		}
		// It was quicker than the packet's end: another try.
		if got != "short\n" || time.Now().After(end) {
			t.Fatalf("pop printed %q, want %q", got, "for long\n")
		}
		s.must(t, "push", "q", "short", "--ttl", "1ms", "--priority", "1")
	}
}

func TestPushedPacketIsThereAfterARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := serve(t, dir)
	s.must(t, "push", "q", "hello")
	if code := s.stop(); code != exitOK {
		t.Fatalf("server ended with exit code %d, want 0", code)
	}
	s = serve(t, dir)
	if s.recovered != 1 {
		t.Errorf("server reports %d recovered packets, want 1", s.recovered)
	}
	if got := s.must(t, "pop", "q"); got != "hello\n" {
		t.Errorf("pop printed %q, want hello", got)
	}
}

func TestSubscribeTakesWhatItIsToldTo(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir())
	fill := func() {
		s.run(t, "pop", "a", "--count", "1000")
		s.run(t, "pop", "b", "--count", "1000")
		for _, args := range [][]string{{"a", "1"}, {"a", "2", "--key=k"}, {"a", "3", "--key=k", "--tag=n=3"}, {"b", "4", "--priority=1"}, {"b", "5", "--priority=0", "--key="}} {
			s.must(t, append([]string{"push"}, args...)...)
		}
	}
	for args, want := range map[string]string{
		"a b --count 2":             "1\n2\n",
		"a b --count 4":             "1\n2\n3\n4\n",
		"b a --count 2":             "4\n1\n",
		"a --newest --count 1":      "3\n",
		"a --group --count 1":       "3\n2\n",
		"a --filter n=3 --count 1":  "3\n",
		"a --raw --count 3":         "123",
		"none a --newest --count 1": "3\n",
	} {
		fill()
		if got := s.must(t, append([]string{"subscribe"}, strings.Fields(args)...)...); got != want {
			t.Errorf("subscribe %s printed %q, want %q", args, got, want)
		}
	}
}

func TestSubscribeShowsLongPackets(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir())
	long := strings.Repeat("x", 900_000)
	if r := s.runWith(t, long, "push", "q", "--key", strings.Repeat("k", 66_000)); r != (result{}) {
		t.Fatalf("push: %+v", r)
	}
	if got := s.must(t, "subscribe", "q", "--count", "1"); got != long+"\n" {
		t.Errorf("subscribe printed %d bytes, want all of a packet", len(got))
	}
}

func TestSubscribeEndsWellOnceItsQueuesAreDrained(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir())
	for _, q := range []string{"a", "b"} {
		s.must(t, "push", q, q)
		s.must(t, "close", q, "--yes")
	}
	if got := s.must(t, "subscribe", "a", "b"); got != "a\nb\n" {
		t.Errorf("subscribe printed %q, want what was left", got)
	}
}

// packetLine is what the tests read of a packet in JSON.
type packetLine struct {
	Selected bool    `json:"selected"`
	ID       string  `json:"id"`
	Key      *string `json:"key"`
	Payload  *string `json:"payload"`
}

// next is the payload of the next packet that a command prints as JSON.
func (tail *tailing) next(t *testing.T) string {
	t.Helper()
	var p packetLine
	if err := json.Unmarshal([]byte(tail.line(t)), &p); err != nil {
		t.Fatal(err)
	}
	return *p.Payload
}

func TestInterruptedSubscribeLosesNothing(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir())
	sub := s.command().begin(t, "subscribe", "q", "--json")
	s.must(t, "push", "q", "1")
	if got := sub.next(t); got != "1" {
		t.Fatalf("delivered %q, want 1", got)
	}
	sub.interrupt()
	s.must(t, "push", "q", "2") // delivered if the server saw it first, queued if not
	r := sub.end("")
	if r.code != exitOK || r.stderr != "" {
		t.Errorf("interrupted subscribe: %+v, want silence and exit code 0", r)
	}
	seen := strings.Repeat("2\n", strings.Count(r.stdout, `"payload":"2"`)) + s.run(t, "pop", "q").stdout
	if seen != "2\n" {
		t.Errorf("the packet was seen as %q, want it once", seen)
	}
}

func TestSubscribeFailsWhenTheServerEnds(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir())
	sub := s.command().begin(t, "subscribe", "q", "--json")
	s.must(t, "push", "q", "1")
	sub.next(t)
	s.stop()
	r := <-sub.ended
	want := "a packet on its way may be gone: the connection was lost"
	for _, gone := range []string{"no server answers", "the request was not sent", "EOF; check that", "connection reset"} {
		if strings.Contains(r.stderr, gone) { // the wait had ended before the connection did, and another was begun
			want = gone
		}
	}
	oneErrorLine(t, r, exitFailed, want)
}
