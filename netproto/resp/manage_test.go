package resp

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/broker"
)

// fill pushes n packets to a queue; their ids follow each other from first on.
func (c *conn) fill(queue string, first, n int) {
	c.t.Helper()
	for n > 0 {
		count := min(n, broker.MaxCount)
		words := []string{"QMPUSH", queue, fmt.Sprint(count)}
		reply := fmt.Sprintf("*%d\r\n", count)
		for i := range count {
			words = append(words, "x")
			reply += bulkReply(fmt.Sprint(first + i))
		}
		c.send(request(words...))
		c.want(reply)
		first, n = first+count, n-count
	}
}

func TestAPacketIsReadyWhenQRUNSays(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	c.ask("QPUSH q late DELAY 60000", bulkReply("1"))
	c.ask("QPUSH q soon", bulkReply("2"))
	c.ask("QRUN q 2", ":1\r\n") // it is ready already
	c.ask("QRUN q 2 DELAY 500", ":1\r\n")
	c.ask("QPOP q", "*0\r\n")
	c.ask("QRUN q 1", ":1\r\n")
	d.restart()
	c = d.dial()
	c.send(request("QPOP", "q"))
	if got := c.payloads(); got != "late" {
		t.Error(got)
	}
	c.ask("QRUN q 2 AT 1700000000900", ":1\r\n")
	if got := c.shown("q", "2")["not-before"]; got != "1700000000900" {
		t.Error(got)
	}
	d.now += 900
	c.send(request("QCLAIM", "q", "COUNT", "9"))
	if got := c.payloads(); got != "soon" {
		t.Error(got)
	}
	c.ask("QRUN q 2", ":0\r\n") // it is claimed
	c.ask("QRUN q 100", ":0\r\n")
	c.ask("QRUN other 2", noQueueReply)
	c.ask("QRUN q 2 AT 1 DELAY 1", "-ERR DELAY, AT, DEAD: expected one of them\r\n")
}

func TestAWaitingWorkerGetsWhatQRUNMakesReady(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	c.ask("QPUSH q late DELAY 60000", bulkReply("1"))
	worker := d.waiting(c, 0, "BRPOP q 0")
	c.ask("QRUN q 1", ":1\r\n")
	worker.want(onTheWire(`*2 | "q" | "late"`))
}

func TestAWorkerIsToldThatItsPacketWasCancelled(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	c.ask("QSET q retain 60000 max-attempts 1 dead-letter dead", "+OK\r\n")
	c.ask("QMPUSH q 4 a b c d", onTheWire(`*4 | "1" | "2" | "3" | "4"`))
	c.ask("QCLAIM q CONSUMER w", claimOf("q", 1, "a", 1, 5, start+30_000, "w"))
	c.ask("QCLAIM q CONSUMER w", claimOf("q", 2, "b", 1, 6, start+30_000, "w"))
	c.ask("QCANCEL q 1 1 3 3 99 2", onTheWire(`*6 | "told" | "told" | "gone" | $-1 | $-1 | "told"`))
	d.restart()
	c = d.dial()
	if p := c.shown("q", "1"); p["cancelled"] != "1" || p["token"] != "5" {
		t.Errorf("shown as %v, want a cancelled claim", p)
	}
	c.send(request("QEXTEND", "q", "1", "5", "1000"))
	if got := c.readLine(); !strings.HasPrefix(got, "-CANCELLED the packet was cancelled") {
		t.Errorf("a consumer that extends is told %q", got)
	}
	c.ask("QACK q 1 5", ":1\r\n")
	c.ask("QACK q 1 5", staleReply)
	c.ask("QNACK q 2 6 DEAD", bulkReply("cancelled"))
	c.ask("QLEN q", ":1\r\n")
	c.ask("QCANCEL q 4", onTheWire(`*1 | "gone"`))
	c.ask("QCANCEL q 4", onTheWire(`*1 | $-1`))
	c.ask("QCANCEL other 4", onTheWire(`*1 | $-1`))
	c.ask("QUEUES", onTheWire(`*1 | "q"`))
	if p := c.pairs("QSTAT", "q"); p["cancelled"] != "4" || p["acked"] != "0" || p["nacked"] != "0" {
		t.Errorf("the queue counts %v", p)
	}
}

func TestPacketsAreDeletedMovedAndRaisedById(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	c.ask("QMPUSH q 4 a b c d", onTheWire(`*4 | "1" | "2" | "3" | "4"`))
	c.ask("QDEL q 2 2 100 -5", ":1\r\n")
	c.ask("QDEL other 1", ":0\r\n")
	c.ask("QPRIO q 4 7", ":1\r\n")
	c.ask("QPRIO q 100 7", ":0\r\n")
	c.ask("QPRIO other 4 7", noQueueReply)
	c.ask("QPRIO q 4 0", "-ERR n: expected a number from 1 on, as the packet has no key to go with, got \"0\"\r\n")
	c.ask("QMOVE q 3 100 TO other", ":1\r\n")
	c.ask("QMOVE nothing 3 TO other", ":0\r\n")
	c.send(request("QPEEK", "q"))
	if got := c.payloads(); got != "d a" {
		t.Errorf("the queue has %s", got)
	}
	if got := c.shown("other", "3"); got["payload"] != "c" || got["queue"] != "other" {
		t.Errorf("the moved packet is %v", got)
	}
	c.ask("QCLAIM other CONSUMER w", claimOf("other", 3, "c", 1, 5, start+30_000, "w"))
	c.ask("QMOVE other 3 TO q", ":0\r\n")
	c.ask("QDEL other 3", ":1\r\n")
	c.ask("QACK other 3 5", goneReply)
}

func TestAQueueIsPurgedStateByState(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	c.ask("QPURGE nothing", ":0\r\n")
	c.ask("QPURGE nothing DRYRUN", ":0\r\n")
	c.ask("QMPUSH q 3 a b c", onTheWire(`*3 | "1" | "2" | "3"`))
	c.ask("QMPUSH q 2 d e DELAY 500", onTheWire(`*2 | "4" | "5"`))
	c.ask("QPUSH q f PRIO 0 KEY k", bulkReply("6"))
	c.ask("QCLAIM q CONSUMER w", claimOf("q", 1, "a", 1, 7, start+30_000, "w"))
	c.ask("QPURGE q DRYRUN", ":6\r\n")
	c.ask("QPURGE q STATE ready DRYRUN", ":3\r\n")
	c.ask("QPURGE q state READY", ":3\r\n")
	c.ask("QPURGE q STATE delayed", ":2\r\n")
	c.ask("QPURGE q STATE dead", ":0\r\n")
	c.ask("QLEN q", ":1\r\n")
	c.ask("QPURGE q", ":1\r\n")
	c.ask("EXISTS q", ":0\r\n")
	c.ask("SET s x", "+OK\r\n")
	for _, name := range []string{"QPURGE", "QHARVEST", "QREDRIVE"} {
		c.ask(name+" s", "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n")
	}
}

func TestClaimsAreHarvestedAndTheDeadRedriven(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	c.ask("QHARVEST nothing", ":0\r\n")
	c.ask("QREDRIVE nothing", ":0\r\n")
	c.ask("QSET q max-attempts 1", "+OK\r\n")
	c.fill("q", 1, 3)
	c.ask("QCLAIM q CONSUMER w", claimOf("q", 1, "x", 1, 4, start+30_000, "w"))
	d.now += 100
	c.send(request("QCLAIM", "q", "COUNT", "2"))
	c.payloads()
	c.ask("QNACK q 2 5", bulkReply("dead"))
	c.ask("QNACK q 3 6", bulkReply("dead"))
	c.ask("QHARVEST q OLDER 101", ":0\r\n")
	c.ask("QHARVEST q OLDER 100", ":1\r\n")
	c.ask("QACK q 1 4", staleReply)
	c.ask("QREDRIVE q COUNT 1", ":1\r\n")
	c.ask("QREDRIVE q TO other", ":1\r\n")
	c.ask("QREDRIVE q", ":0\r\n")
	c.ask("LLEN q", ":2\r\n")
	if got := c.shown("other", "3"); got["state"] != "ready" || got["attempt"] != "" {
		t.Errorf("what was redriven elsewhere is %v", got)
	}
	c.ask("QPUSH s x TTL 50", bulkReply("7"))
	c.send(request("QCLAIM", "s", "LEASE", "100"))
	c.payloads()
	d.now += 50
	c.ask("QNACK s 7 8", bulkReply("expired"))
	c.ask("EXISTS s", ":0\r\n")
}

func TestWhatDiedInAnotherQueueReturnsThere(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	c.ask("QSET q dead-letter grave", "+OK\r\n")
	c.fill("q", 1, 1)
	c.ask("QCLAIM q CONSUMER w", claimOf("q", 1, "x", 1, 2, start+30_000, "w"))
	c.ask("QNACK q 1 2 DEAD REASON poison", bulkReply("dead"))
	c.ask("LLEN grave", ":1\r\n")
	c.ask("QREDRIVE grave", ":1\r\n")
	c.ask("LLEN q", ":1\r\n")
	c.ask("EXISTS grave", ":0\r\n")
	c.send(request("QCLAIM", "q"))
	c.payloads()
	c.ask("QNACK q 1 3 DEAD", bulkReply("dead"))
	c.ask("QDROP q", "+OK\r\n")
	c.ask("QREDRIVE grave 1", "-ERR the queues where they died are gone: name one with TO\r\n")
	c.ask("QREDRIVE grave", "-ERR none of 1 can go back: the queues where they died are gone: name one with TO\r\n")
	c.ask("QREDRIVE grave TO q", ":1\r\n")
}

func TestOneDeadPacketIsRedriven(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	c.ask("QREDRIVE nothing 1", ":0\r\n")
	c.ask("QSET q dead-letter grave", "+OK\r\n")
	c.fill("q", 1, 2)
	c.ask("QCLAIM q CONSUMER w", claimOf("q", 1, "x", 1, 3, start+30_000, "w"))
	c.ask("QNACK q 1 3 DEAD", bulkReply("dead"))
	c.ask("QREDRIVE grave 2", ":0\r\n")
	c.ask("QREDRIVE q 2", ":0\r\n")
	c.ask("QREDRIVE grave 1", ":1\r\n")
	c.ask("LLEN q", ":2\r\n")
	c.ask("QSET q dead-letter  max-attempts 1", "+OK\r\n")
	c.send(request("QCLAIM", "q", "COUNT", "2"))
	c.payloads()
	c.ask("QREDRIVE q 1", ":0\r\n")
	c.ask("QNACK q 1 4 DEAD", bulkReply("dead"))
	c.ask("QNACK q 2 5 DEAD", bulkReply("dead"))
	c.ask("QREDRIVE q 2", ":1\r\n")
	if got := c.shown("q", "1")["state"] + " " + c.shown("q", "2")["state"]; got != "dead ready" {
		t.Errorf("the packets are %s, want the one that was named ready", got)
	}
}

func TestAQueueMovesWithoutTheIdsOfItsPackets(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	c.fill("q", 1, 1500)
	c.ask("QPUSH q late DELAY 500", bulkReply("1501"))
	c.ask("QCLAIM q CONSUMER w", claimOf("q", 1, "x", 1, 1502, start+30_000, "w"))
	c.ask("QMOVE nothing TO other", ":0\r\n")
	c.ask("QMOVE q TO other DRYRUN", ":1500\r\n")
	c.ask("QLEN q", ":1501\r\n")
	c.ask("EXISTS other", ":0\r\n")
	c.ask("qmove q to other count 2 state ready", ":2\r\n")
	c.ask("QMOVE q TO q", ":1498\r\n")
	c.ask("QMOVE q TO other STATE delayed", ":1\r\n")
	c.ask("QMOVE q TO other STATE claimed", ":0\r\n")
	c.ask("QMOVE q TO other", ":1497\r\n")
	c.ask("QLEN other", ":1500\r\n")
	c.ask("QACK q 1 1502", ":1\r\n")
	c.ask("EXISTS q", ":0\r\n")
	c.ask("SET s x", "+OK\r\n")
	c.ask("QMOVE s TO other", "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n")
	c.ask("QMOVE other TO s", "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n")
}

func TestAMoveToAQueueThatBecomesFullSaysHowFarItCame(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	c.ask("QSET other bound 2", "+OK\r\n")
	c.fill("q", 1, 5)
	const full = "-FULL queue is full: it holds 2 packets with 2 bytes, its bound is 2 packets"
	c.ask("QMOVE q TO other", full+"; done before: 2 packets\r\n")
	c.ask("QMOVE q TO other", full+"\r\n")
	if got := c.shownBy("QPEEK q"); got != "x x x" {
		t.Errorf("what is left is %q", got)
	}
}

func TestADryRunOnlyCounts(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	c.ask("QSET q max-attempts 1", "+OK\r\n")
	c.fill("q", 1, 3)
	c.send(request("QCLAIM", "q", "COUNT", "2"))
	c.payloads()
	c.ask("QNACK q 1 4", bulkReply("dead"))
	before := fmt.Sprint(c.pairs("QSTAT", "q"))
	for words, want := range map[string]string{"QPURGE q": ":3", "QHARVEST q OLDER 0": ":1", "QREDRIVE q": ":1", "QMOVE q TO other STATE dead": ":1"} {
		c.ask(words+" DRYRUN", want+"\r\n")
		if got := fmt.Sprint(c.pairs("QSTAT", "q")); got != before {
			t.Fatalf("%s with DRYRUN makes of\n%s\n%s", words, before, got)
		}
	}
	c.ask("EXISTS other", ":0\r\n")
}

func TestManyPacketsAreDeletedInSlicesWhileOthersAreServed(t *testing.T) {
	d := newDoor(t, Config{})
	c, other := d.dial(), d.dial()
	const n = 30_000
	c.fill("q", 1, n)
	c.send(request("QPURGE", "q", "STATE", "ready") + request("PING"))
	other.ask("QLEN other", ":0\r\n")
	c.want(fmt.Sprintf(":%d\r\n+PONG\r\n", n))
	c.ask("EXISTS q", ":0\r\n")
	c.fill("q", 1+n, 10)
	c.send("CLIENT REPLY SKIP\r\nQPURGE q\r\nPING\r\n")
	c.want("+PONG\r\n")
	c.ask("EXISTS q", ":0\r\n")
}

func TestBadInputChangesNothingInAQueue(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	c.ask("QPUSH q x", bulkReply("1"))
	c.ask("QPUSH q y", bulkReply("2"))
	c.ask("QCLAIM q CONSUMER w", claimOf("q", 1, "x", 1, 3, start+30_000, "w"))
	before := fmt.Sprint(c.shown("q", "1"), c.shown("q", "2"), c.pairs("QSTAT", "q"), c.pairs("QGET", "q"))
	requests := []string{"QACK q 1 4", "QACK q 2 3", "QNACK q 1 2 DEAD", "QEXTEND q 1 2 5", "QPROGRESS q 1 4 5", "QACK other 1 3"}
	for _, bad := range badInput {
		if !strings.Contains(bad.reply, "no queue has this name") {
			requests = append(requests, bad.request)
		}
	}
	for _, bad := range requests {
		if got := c.line(wordsOf(bad)...); !strings.HasPrefix(got, "-") {
			t.Errorf("%.60s: %q, want an error", bad, got)
			continue
		}
		if got := fmt.Sprint(c.shown("q", "1"), c.shown("q", "2"), c.pairs("QSTAT", "q"), c.pairs("QGET", "q")); got != before {
			t.Fatalf("%.60s: %s, was %s", bad, got, before)
		}
	}
}
