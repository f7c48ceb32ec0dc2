package main

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"
)

// claimed is what the tests read of a claimed packet.
type claimed struct {
	Queue, ID, Payload, Consumer, State string
	Token, Attempt                      int64
	LeaseEnd                            int64 `json:"lease_end"`
}

// claim claims one packet.
func claim(t *testing.T, s *testServer, args ...string) claimed {
	t.Helper()
	var c claimed
	if err := json.Unmarshal([]byte(s.must(t, append([]string{"claim", "--json"}, args...)...)), &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// receipt is the arguments that answer a claim.
func (c *claimed) receipt() []string { return []string{c.Queue, c.ID, strconv.FormatInt(c.Token, 10)} }

func TestAClaimIsAnswered(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir())
	answer := func(command string, c claimed, more ...string) result {
		t.Helper()
		return s.run(t, append(append([]string{command}, c.receipt()...), more...)...)
	}
	s.must(t, "push", "jobs", "x")
	first := claim(t, s, "none", "jobs", "--lease", "1h", "--consumer", "me")
	if first.Queue != "jobs" || first.Payload != "x" || first.Consumer != "me" || first.Attempt != 1 || first.State != "claimed" {
		t.Errorf("claimed %+v, want x of jobs by me, for the first time", first)
	}
	if left := time.Until(time.UnixMilli(first.LeaseEnd)); left < 50*time.Minute {
		t.Errorf("the lease ends in %v, want about an hour", left)
	}
	oneErrorLine(t, s.run(t, "claim", "jobs"), exitNothing, `queue "jobs" has nothing to claim`)
	oneErrorLine(t, s.run(t, "claim", "none", "jobs"), exitNothing, "the 2 queues have nothing to claim")
	if r := answer("extend", first, "2h"); r != (result{}) {
		t.Errorf("extend: %+v, want silence", r)
	}
	if end := shown(t, s, first.ID).LeaseEnd; end < first.LeaseEnd+50*60*1000 {
		t.Errorf("the lease ends at %d, and before at %d: want about an hour more", end, first.LeaseEnd)
	}
	if r := answer("nack", first, "--delay", "0s", "--reason", "no route"); r != (result{stdout: "ready\n"}) {
		t.Errorf("nack: %+v, want the state", r)
	}
	for _, late := range [][]string{{"ack"}, {"nack"}, {"extend", "1s"}} {
		oneErrorLine(t, answer(late[0], first, late[1:]...), exitStale, "the claim has ended")
	}
	for _, more := range [][]string{{"--delay", "0s"}, nil} {
		uncounted := claim(t, s, "jobs")
		if r := answer("nack", uncounted, append(more, "--uncounted", "--reason", "this node goes")...); r != (result{stdout: "ready\n"}) || uncounted.Attempt != 2 {
			t.Errorf("nack of attempt %d: %+v, want the state", uncounted.Attempt, r)
		}
	}
	second := claim(t, s, "jobs")
	if second.Attempt != 2 || second.Token <= first.Token {
		t.Errorf("claimed %+v, want a second attempt with a higher token than %d", second, first.Token)
	}
	if r := answer("nack", second, "--dead", "--reason", "poison"); r != (result{stdout: "dead\n"}) {
		t.Errorf("nack: %+v, want that it is dead", r)
	}
	s.must(t, "push", "jobs", "y")
	if r := answer("ack", claim(t, s, "jobs")); r != (result{}) {
		t.Errorf("ack: %+v, want silence", r)
	}
	if got := s.must(t, "queues"); !strings.HasSuffix(got, "\njobs   0      0        0        1     -\n") {
		t.Errorf("queues printed\n%s\nwant the dead packet alone", got)
	}
}

// shown is a packet of jobs as show prints it.
func shown(t *testing.T, s *testServer, id string) (c claimed) {
	t.Helper()
	if err := json.Unmarshal([]byte(s.must(t, "show", "jobs", id, "--json")), &c); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestClaimTakesTheOldestUnlessSaid(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir())
	for _, payload := range []string{"a", "b", "c"} {
		s.must(t, "push", "q", payload, "--key", "k")
	}
	if got := claim(t, s, "q").Payload + claim(t, s, "q", "--newest").Payload; got != "ac" {
		t.Errorf("claimed %q, want the oldest, then the newest", got)
	}
	s.must(t, "push", "q", "d", "--key", "k")
	table := s.must(t, "claim", "q", "--group")
	if got := strings.Fields(table); len(got) != 3*8 || got[0] != "QUEUE" || got[15] != "b" || got[23] != "d" {
		t.Errorf("claim printed\n%s\nwant a table of b and d", table)
	}
}
