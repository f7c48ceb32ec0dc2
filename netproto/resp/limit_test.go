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
	if got := c.pairs("QSHOW", "q", "4")["why"]; got != "queue has 2 of 2 claimed" {
		t.Errorf("why: %s", got)
	}
	c.ask("QSET q max-claimed 9", "+OK\r\n")
	if got := c.pairs("QSHOW", "q", "2")["why"]; got != "share a has 1 of 1 claimed" {
		t.Errorf("why: %s", got)
	}
	c.ask("QCLAIM q GROUP", "-ERR groups are not claimed from a queue with max-claimed, share-max-claimed or a share's own max-claimed: a group may be larger than what is left\r\n")
	for _, pop := range []string{"QPOP q", "LPOP q", "RPOP q", "LMOVE q other LEFT LEFT"} {
		c.send(request(strings.Fields(pop)...))
		if got := c.value(); got == "" || strings.HasPrefix(got, "ERR") {
			t.Errorf("%s took %q, want a packet", pop, got)
		}
	}
}

// A push to a share that is full waits for nobody, whatever the queue's own bound says; what comes
// back has its place.
func TestAShareHasABoundOfItsOwn(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	const full = `-FULL queue is full for one share: share "a" holds 2 packets, its bound is 2 packets` + "\r\n"
	c.ask("QSET q bound-share 2", "-ERR bound-share: expected it beside share-by: the queue has no shares\r\n")
	c.ask("QSET q share-by tag:tenant bound-share 2 bound 9 full block", "+OK\r\n")
	c.ask("QPUSH q 1 TAG tenant a", bulkReply("1"))
	c.ask("QPUSH q 2 TAG tenant a DELAY 60000", bulkReply("2"))
	for _, push := range []string{"QPUSH q 3 TAG tenant a", "QPUSH q 3 TAG tenant a BLOCK 0", "QMPUSH q 2 3 4 TAG tenant a"} {
		c.ask(push, full)
	}
	c.ask("QMPUSH q 3 x x x TAG tenant b", "-FULL queue is full for one share: share \"b\" holds 0 packets, its bound is 2 packets\r\n")
	c.ask("QPUSH q 3 TAG tenant b", bulkReply("3"))
	c.ask("QPUSH q 4 UNIQUE u TAG tenant b", bulkReply("4"))
	c.ask("QPUSH q again UNIQUE u REPLACE TAG tenant b", bulkReply("4"))
	c.ask("QPUSH q again UNIQUE u REPLACE TAG tenant a", full)

	c.send(request("QCLAIM", "q", "SHARE", "a"))
	_, token, _ := strings.Cut(c.value(), "token ")
	token, _, _ = strings.Cut(token, " ")
	c.ask("QPUSH q 5 TAG tenant a", full)
	c.ask("QPUSH from 5 TAG tenant a", bulkReply("6"))
	c.ask("QMOVE from 6 TO q", full)
	c.ask("LMOVE from q LEFT RIGHT", full)
	c.ask("QNACK q 1 "+token+" DELAY 0", bulkReply("ready"))
	c.ask("QDEL q 2", ":1\r\n")
	c.ask("QMOVE from 6 TO q", ":1\r\n")
	c.ask("QPUSH q 6 TAG tenant a", full)
	c.ask("QSET q bound-share 3", "+OK\r\n")
	c.ask("QPUSH q 6 TAG tenant a", bulkReply("7"))
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

func TestKeysComeOneAfterTheOther(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	const refused = "-ERR on-dead: expected go-on beside dead-letter: a packet that dies moves there, and can hold nobody here\r\n"
	c.ask("QSET q strict yes on-dead hold dead-letter grave", refused)
	c.ask("QSET q strict yes on-dead hold", "+OK\r\n")
	c.ask("QSET q dead-letter grave", refused)
	c.ask("QMPUSH q 3 1 2 3 KEY k", "*3\r\n$1\r\n1\r\n$1\r\n2\r\n$1\r\n3\r\n")
	c.send(request("QSHOW", "q", "2"))
	if got := c.value(); !strings.Contains(got, "waits for packet 1 of its key") {
		t.Errorf("QSHOW says %s", got)
	}
	c.send(request("QCLAIM", "q", "COUNT", "3"))
	_, token, _ := strings.Cut(c.value(), "token ")
	token, _, _ = strings.Cut(token, " ")
	c.ask("QCLAIM q", "*0\r\n")
	c.ask("LLEN q", ":2\r\n")
	c.ask("QNACK q 1 "+token+" DEAD", bulkReply("dead"))
	c.ask("LPOP q", "$-1\r\n")
	c.ask("QREDRIVE q 1", ":1\r\n")
	c.ask("LPOP q", bulkReply("1"))
	c.ask("LPOP q 2", "*1\r\n"+bulkReply("2"))
	c.ask("LPOP q", bulkReply("3"))
}

// A limit of shares that stayed when the shares went does not keep another one from going.
func TestALimitOfSharesCanGoAfterTheShares(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	c.ask("QSET q share-by key share-max-claimed 3 share-rate 5/1s", "+OK\r\n")
	c.ask("QSET q share-by no", "+OK\r\n")
	c.ask("QSET q share-rate no", "+OK\r\n")
	c.ask("QSET q share-max-claimed 4", "-ERR share-max-claimed: expected it beside share-by: the queue has no shares\r\n")
}
