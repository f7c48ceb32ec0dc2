package resp

import (
	"fmt"
	"strings"
	"testing"
)

// A limit of what is claimed holds for QCLAIM, and QSHOW says it. The doors that take for good take
// on.
func TestMaxClaimedHoldsForClaims(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	c.ask("QSET q max-claimed 2 share-max-claimed 1", "-ERR share-max-claimed: expected it beside share-by: the queue has no shares\r\n")
	c.ask("QSET q max-claimed 2 share-by key share-max-claimed 1", "+OK\r\n")
	c.ask("QSET q share-by no", "+OK\r\n")
	c.ask("QSET q share-by key", "+OK\r\n")
	for _, key := range []string{"a", "a", "b", "c", "d", "e", "f"} {
		c.send(request("QPUSH", "q", key, "KEY", key))
		c.value()
	}
	if got := c.tenants("COUNT 9"); got != "a b" {
		t.Errorf("a claim of 9 took %s, want two", got)
	}
	if got := c.pairs("QSHOW", "q", "2")["why"]; got != "queue has 2 of 2 claimed" {
		t.Errorf("why: %s", got)
	}
	c.ask("QSET q max-claimed 9", "+OK\r\n")
	if got := c.pairs("QSHOW", "q", "2")["why"]; got != "share a has 1 of 1 claimed" {
		t.Errorf("why: %s", got)
	}
	c.ask("QCLAIM q GROUP", "-ERR groups are not claimed from a queue with max-claimed or share-max-claimed: a group may be larger than what is left\r\n")
	for _, pop := range []string{"QPOP q", "LPOP q", "RPOP q", "LMOVE q other LEFT LEFT"} {
		c.send(request(strings.Fields(pop)...))
		if got := c.value(); got == "" || strings.HasPrefix(got, "ERR") {
			t.Errorf("%s took %q, want a packet", pop, got)
		}
	}
}

func TestARateHoldsAtEachDoor(t *testing.T) {
	for _, take := range []string{"QPOP q COUNT 9", "QCLAIM q COUNT 9", "LPOP q 9", "RPOP q 9", "LMPOP 1 q LEFT COUNT 9"} {
		c := newDoor(t, Config{}).dial()
		for _, wrong := range []string{"1", "0/1s", "1/0s", "2000000/1s", "1/32d", "1/s", "-1/1s"} {
			c.ask("QSET q rate "+wrong, "-ERR rate: expected no, or a number of packets and a time, such as 100/1s or 10/1m, between 1/31d and 1000000/1s, got \""+wrong+"\"\r\n")
		}
		c.ask("QSET q rate 1/31d rate-burst 3", "+OK\r\n")
		for i := range 8 {
			c.ask("QPUSH q x", bulkReply(fmt.Sprint(i+1)))
		}
		c.send(request(strings.Fields(take)...))
		c.value()
		if got := c.pairs("QSTAT", "q")["ready"]; got != "5" {
			t.Errorf("%s: %s are left, want 5 of 8 with a burst of 3", take, got)
		}
	}
}
