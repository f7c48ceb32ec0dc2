package main

import (
	"strings"
	"testing"
)

// field checks that a line of JSON has a field with a value.
func field(t *testing.T, line, want string) {
	t.Helper()
	if !strings.Contains(line, want) {
		t.Errorf("%s: want %s in it", strings.TrimSpace(line), want)
	}
}

func TestPushSaysWhatThePacketIs(t *testing.T) {
	s := serve(t, t.TempDir())
	id := s.must(t, "push", "q", "x", "--id", "--priority", "4294967295", "--ttl", "24h", "--tag", "class=low=1", "--tag", "b=\xff", "--producer", "shop")
	got := s.must(t, "pop", "q", "--json")
	for _, want := range []string{
		`"id":"` + strings.TrimSpace(id) + `"`, `"priority":4294967295,`, `"producer":"shop"`, `"enqueued":1`, `"expires":1`,
		`"tags_base64":["Yg==","/w==","Y2xhc3M=","bG93PTE="]`,
	} {
		field(t, got, want)
	}
}

func TestADelayedPacketIsNotPoppedYet(t *testing.T) {
	s := serve(t, t.TempDir())
	s.must(t, "push", "q", "later", "--delay", "1h")
	s.must(t, "push", "q", "soon", "--delay", "1ms")
	if got := s.must(t, "pop", "q", "--block", "0s"); got != "soon\n" {
		t.Errorf("pop printed %q, want soon", got)
	}
	oneErrorLine(t, s.run(t, "pop", "q", "--block", "1ms"), exitNothing, "nothing to pop")
}

func TestPopSelects(t *testing.T) {
	s := serve(t, t.TempDir())
	fill := func() {
		s.run(t, "pop", "q", "--count", "1000")
		for _, args := range [][]string{{"1", "--key=k", "--tag=n=1"}, {"2", "--tag=n=2", "--tag=class=low"}, {"3", "--tag=n=10"}, {"4", "--key=k"}} {
			s.must(t, append([]string{"push", "q"}, args...)...)
		}
	}
	for args, want := range map[string]string{
		"":                   "4\n1\n",
		"--oldest":           "1\n4\n",
		"--count 1":          "4\n",
		"--count 3 --oldest": "1\n2\n3\n",
	} {
		fill()
		if got := s.must(t, append([]string{"pop", "q"}, strings.Fields(args)...)...); got != want {
			t.Errorf("pop %s printed %q, want %q", args, got, want)
		}
	}
}
