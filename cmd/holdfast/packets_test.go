package main

import (
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestPopPrintsWhatWasPushed(t *testing.T) {
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
		"JSON of text":                {push: []string{"<é>", "--key", "k"}, pop: []string{"--json"}, want: `{"selected":true,"key":"k","payload":"<é>"}` + "\n"},
		"JSON of bytes":               {stdin: "\xff\x00", push: []string{"--key", "\xfe"}, pop: []string{"--json"}, want: `{"selected":true,"key_base64":"/g==","payload_base64":"/wA="}` + "\n"},
		"argument of bytes":           {push: []string{"\xff"}, want: "\xff\n"},
		"JSON of nothing":             {push: []string{"", "--key", ""}, pop: []string{"--json"}, want: `{"selected":true,"key":"","payload":""}` + "\n"},
		"long payload":                {stdin: strings.Repeat("x", 1_000_000), pop: []string{"--raw"}, want: strings.Repeat("x", 1_000_000)},
	} {
		t.Run(name, func(t *testing.T) {
			queue := "\xfequeue of " + name
			if r := s.runWith(t, c.stdin, append([]string{"push", queue}, c.push...)...); r.code != exitOK || r.stdout+r.stderr != "" {
				t.Fatalf("push: %+v, want silence and exit code 0", r)
			}
			got := s.must(t, append([]string{"pop", queue}, c.pop...)...)
			if line, more, ok := strings.Cut(got, `,"id":`); ok && strings.Contains(more, `"priority":128,`) {
				got = line + "}\n"
			}
			if got != c.want {
				t.Errorf("pop printed %.100q, want %.100q", got, c.want)
			}
			if r := s.run(t, "pop", queue); r.code != exitNothing || r.stdout != "" || !strings.Contains(r.stderr, "nothing to pop") {
				t.Errorf("pop of an empty queue: %+v, want an error and exit code 3", r)
			}
		})
	}
}

func TestPriorityIs128UnlessSaid(t *testing.T) {
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
	s := serve(t, t.TempDir())
	s.must(t, "push", "q", "hidden", "--priority", "0", "--key", "k")
	if r := s.run(t, "pop", "q"); r.code != exitNothing {
		t.Errorf("pop: %+v, want exit code 3", r)
	}
}

func TestKeysMakeGroups(t *testing.T) {
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
			if got := s.must(t, "pop", name); got != c.want {
				t.Errorf("pop printed %q, want %q", got, c.want)
			}
		})
	}
}

func TestJSONTellsWhichPacketWasSelected(t *testing.T) {
	s := serve(t, t.TempDir())
	s.must(t, "push", "q", "along", "--key", "k", "--priority", "0")
	s.must(t, "push", "q", "chosen", "--key", "k")
	lines := strings.SplitAfter(s.must(t, "pop", "q", "--json"), "\n")
	want := []string{`{"selected":true,"key":"k","payload":"chosen","id":`, `{"selected":false,"key":"k","payload":"along","id":`, ""}
	if !slices.EqualFunc(lines, want, strings.HasPrefix) {
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

func TestSubscribeEndsAfterCountDeliveries(t *testing.T) {
	s := serve(t, t.TempDir())
	s.must(t, "push", "a", "second", "--priority", "2")
	s.must(t, "push", "b", "first", "--priority", "1", "--key", "k")
	s.must(t, "push", "b", "first too", "--priority", "0", "--key", "k")
	s.must(t, "push", "a", "stays", "--priority", "3")
	if got, want := s.must(t, "subscribe", "a", "b", "--count", "2"), "first\nfirst too\nsecond\n"; got != want {
		t.Errorf("subscribe printed %q, want %q", got, want)
	}
	if got := s.must(t, "pop", "a"); got != "stays\n" {
		t.Errorf("pop printed %q, want what was not asked for", got)
	}
}

// packetLine is what the tests read of a packet in JSON.
type packetLine struct {
	Selected bool    `json:"selected"`
	ID       string  `json:"id"`
	Key      *string `json:"key"`
	Payload  *string `json:"payload"`
}

// subscription is a subscribe command that runs in the background.
type subscription struct {
	lines     *json.Decoder
	interrupt context.CancelFunc
	ended     chan result // its stdout is empty: lines has it
}

func subscribe(t *testing.T, s *testServer, queue string) *subscription {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	read, write := io.Pipe()
	sub := &subscription{lines: json.NewDecoder(read), interrupt: cancel, ended: make(chan result, 1)}
	go func() { // ends with ctx or the server
		var stderr strings.Builder
		p := program{stdin: strings.NewReader(""), stdout: write, stderr: &stderr, env: command{}.lookup}
		code := p.run(ctx, []string{"subscribe", queue, "--json", "--pinpriq", s.addr})
		_ = write.Close()
		sub.ended <- result{code: code, stderr: stderr.String()}
	}()
	t.Cleanup(cancel)
	return sub
}

func (s *subscription) next(t *testing.T) string {
	t.Helper()
	var p packetLine
	if err := s.lines.Decode(&p); err != nil {
		t.Fatalf("next delivery: %v", err)
	}
	return *p.Payload
}

func TestInterruptedSubscribeLosesNothing(t *testing.T) {
	s := serve(t, t.TempDir())
	sub := subscribe(t, s, "q")
	s.must(t, "push", "q", "1")
	if got := sub.next(t); got != "1" {
		t.Fatalf("delivered %q, want 1", got)
	}
	sub.interrupt()
	s.must(t, "push", "q", "2") // delivered if the server saw it first, queued if not
	seen := ""
	var p packetLine
	if sub.lines.Decode(&p) == nil {
		seen = *p.Payload + "\n"
	}
	if r := <-sub.ended; r.code != exitOK || r.stderr != "" {
		t.Errorf("interrupted subscribe: %+v, want silence and exit code 0", r)
	}
	seen += s.run(t, "pop", "q").stdout
	if seen != "2\n" {
		t.Errorf("the packet was seen as %q, want it once", seen)
	}
}

func TestSubscribeFailsWhenTheServerEnds(t *testing.T) {
	s := serve(t, t.TempDir())
	sub := subscribe(t, s, "q")
	s.must(t, "push", "q", "1")
	sub.next(t)
	s.stop()
	if r := <-sub.ended; r.code != exitFailed || !strings.Contains(r.stderr, "server closed the connection") {
		t.Errorf("subscribe: %+v, want an error and exit code 1", r)
	}
}
