package main

import (
	"runtime"
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
	t.Parallel()
	s := serve(t, t.TempDir())
	id := s.must(t, "push", "q", "x", "--id", "--priority", "4294967295", "--ttl", "24h", "--tag", "class=low=1", "--tag", "b=\xff", "--producer", "shop")
	got := s.must(t, "pop", "q", "--json")
	for _, want := range []string{
		`"id":"` + strings.TrimSpace(id) + `"`, `"priority":4294967295,`, `"producer":"shop"`, `"enqueued":1`, `"expires":1`,
		`"tags":{"b":{"base64":"/w=="},"class":"low=1"}`,
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
	t.Parallel()
	s := serve(t, t.TempDir())
	fill := func() {
		s.run(t, "pop", "q", "--count", "1000")
		for _, args := range [][]string{{"1", "--key=k", "--tag=n=1"}, {"2", "--tag=n=2", "--tag=class=low"}, {"3", "--tag=n=10"}, {"4", "--key=k"}} {
			s.must(t, append([]string{"push", "q"}, args...)...)
		}
	}
	for args, want := range map[string]string{
		"":                           "1\n",
		"--newest":                   "4\n",
		"--group":                    "4\n1\n",
		"--count 1":                  "1\n",
		"--count 3":                  "1\n2\n3\n",
		"--count 3 --newest":         "4\n3\n2\n",
		"--count 9 --filter n<10":    "1\n2\n",
		"--count 9 --filter n!=2":    "1\n3\n",
		"--group --filter n=1":       "1\n4\n",
		"--filter n>1 --filter n<10": "2\n",
		"--count 9 --filter n>=2 --filter class=low --match-any 1": "2\n3\n",
	} {
		fill()
		if got := s.must(t, append([]string{"pop", "q"}, strings.Fields(args)...)...); got != want {
			t.Errorf("pop %s printed %q, want %q", args, got, want)
		}
	}
}

func TestAClaimOfOneShareGetsNoOther(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir())
	s.must(t, "set", "q", "share-by=key")
	for _, key := range []string{"a", "b", "b"} {
		s.must(t, "push", "q", "of "+key, "--key", key)
	}
	if got := s.must(t, "pop", "q", "--share", "b", "--count", "9"); got != "of b\nof b\n" {
		t.Errorf("pop printed %q", got)
	}
	if got := s.must(t, "purge", "q", "--share", "a", "--yes"); !strings.HasPrefix(got, "1") {
		t.Errorf("purge printed %q", got)
	}
}

func TestAUniquePushPrintsTheFirstId(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir())
	first := s.must(t, "push", "q", "a", "--unique", "u", "--id")
	if again := s.must(t, "push", "q", "b", "--unique", "u", "--id"); again != first {
		t.Errorf("the second push printed %q, want %q", again, first)
	}
	if got := s.must(t, "pop", "q", "--count", "9"); got != "a\n" {
		t.Errorf("pop printed %q, want a alone", got)
	}
	if other := s.must(t, "push", "q", "c", "--unique", "u", "--window", "1h", "--id"); other == first {
		t.Errorf("a push after the end of the first printed %q, want another id", other)
	}
	s.must(t, "pop", "q")
	s.must(t, "push", "q", "d", "--unique", "u", "--window", "1h")
	oneErrorLine(t, s.run(t, "pop", "q"), exitNothing, "nothing to pop")
}

func TestPushIntoAQueueThatIsFullOrClosedFails(t *testing.T) {
	s := serve(t, t.TempDir())
	s.must(t, "set", "q", "bound=1")
	s.must(t, "push", "q", "x")
	oneErrorLine(t, s.run(t, "push", "q", "y"), exitFailed, "full")
	oneErrorLine(t, s.run(t, "push", "q", "y", "--block", "1ms"), exitFailed, "full")
	s.must(t, "set", "q", "full=drop")
	oneErrorLine(t, s.run(t, "push", "q", "y", "--priority", "200"), exitFailed, "full of packets that are not worse")
	s.must(t, "close", "q", "--yes")
	oneErrorLine(t, s.run(t, "push", "q", "y"), exitFailed, "closed")
	if got := s.must(t, "pop", "q"); got != "x\n" {
		t.Errorf("pop printed %q, want what was in the queue", got)
	}
	oneErrorLine(t, s.run(t, "pop", "q"), exitFailed, "closed")
}

// blocked waits until a client waits for a packet.
func blocked(t *testing.T, s *testServer) {
	t.Helper()
	for !strings.Contains(redisReplies(t, s, "INFO clients"), "blocked_clients:1\r\n") {
		runtime.Gosched()
	}
}

func TestAnInterruptedWaitTakesNothing(t *testing.T) {
	s := serve(t, t.TempDir())
	for _, args := range [][]string{{"pop", "q", "--block", "0s"}, {"claim", "q", "--block", "1h"}} {
		waits := s.command().start(t, args...)
		blocked(t, s)
		waits.interrupt()
		oneErrorLine(t, <-waits.ended, exitFailed, "interrupted")
		s.must(t, "push", "q", "x")
		if got := s.must(t, "pop", "q"); got != "x\n" {
			t.Errorf("after %q pop printed %q, want x", args, got)
		}
	}
}

func TestAPushWaitsForRoom(t *testing.T) {
	s := serve(t, t.TempDir())
	s.must(t, "set", "q", "bound=1")
	s.must(t, "push", "q", "first")
	waits := s.command().start(t, "push", "q", "second", "--block", "0s")
	blocked(t, s)
	if got := s.must(t, "pop", "q"); got != "first\n" {
		t.Errorf("pop printed %q, want the first", got)
	}
	if r := <-waits.ended; r != (result{}) {
		t.Errorf("push: %+v, want silence", r)
	}
	if got := s.must(t, "pop", "q"); got != "second\n" {
		t.Errorf("pop printed %q, want the second", got)
	}
}

func TestAWaitEndsWithAPacketThatItSelects(t *testing.T) {
	s := serve(t, t.TempDir())
	waits := s.command().start(t, "pop", "q", "--block", "0s", "--filter", "class=high")
	blocked(t, s)
	s.must(t, "push", "q", "low", "--tag", "class=low")
	s.must(t, "push", "q", "high", "--tag", "class=high")
	if r := <-waits.ended; r != (result{stdout: "high\n"}) {
		t.Errorf("%+v, want the packet that it selects", r)
	}
}

func TestALaterPushReplacesAPacketThatWaits(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir())
	s.must(t, "push", "q", "a", "--unique", "u", "--delay", "1h")
	if got := s.must(t, "push", "q", "b", "--unique", "u", "--replace", "--at", "2020-01-01T00:00Z", "--tell", "--id"); got != "1 replaced\n" {
		t.Errorf("told %q", got)
	}
	if got := s.must(t, "pop", "q"); got != "b\n" {
		t.Errorf("popped %q", got)
	}
}

func TestAnEmptyUniqueIDIsRefused(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir())
	oneErrorLine(t, s.run(t, "push", "q", "x", "--unique", ""), exitFailed, "UNIQUE")
	oneErrorLine(t, s.run(t, "pop", "q"), exitNothing, "nothing to pop")
}
