package resp

import (
	"fmt"
	"strings"
	"testing"
)

// batch reads what a QCLAIM that fills a batch was answered with.
func (c *conn) batch(want string) {
	c.t.Helper()
	if got := c.payloads(); got != want {
		c.t.Fatalf("the batch has %q, want %q", got, want)
	}
}

// pass lets time go by.
func (d *door) pass(c *conn, ms int64) {
	d.t.Helper()
	d.now += ms
	c.ask("PING", "+PONG\r\n")
}

func TestAClaimWaitsForAWholeBatch(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	filler := d.waiting(c, 0, "QCLAIM q COUNT 3 FILL 60000 BLOCK 0")
	for i := range 3 {
		c.ask("QLEN q", fmt.Sprintf(":%d\r\n", i)) // nothing is claimed before it answers
		c.ask(fmt.Sprintf("QPUSH q p%d", i), bulkReply(fmt.Sprint(i+1)))
		if i < 2 {
			c.awaitBlocked(1)
			if got := c.shown("q", fmt.Sprint(i+1))["state"]; got != "ready" {
				t.Fatalf("packet %d is %s while a batch is filled", i+1, got)
			}
		}
	}
	filler.batch("p0 p1 p2")
	c.ask("QMPUSH q 2 a b", onTheWire(`*2 | "7" | "8"`))
	filler.send(request(strings.Split("QCLAIM q COUNT 2 FILL 60000", " ")...)) // there already
	filler.batch("a b")
	filler.ask("QCLAIM q COUNT 2 FILL 60000", "*0\r\n") // there is nothing, and no BLOCK
	filler.send(request(strings.Split("QCLAIM q COUNT 2 FILL 60000 BLOCK 1", " ")...))
	c.awaitBlocked(1)
	d.pass(c, 1)
	filler.want("*-1\r\n")
}

func TestAClaimTakesWhatThereIsWhenItsTimeToFillIsOver(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	c.ask("QPUSH q a", bulkReply("1"))
	filler := d.waiting(c, 0, "QCLAIM q COUNT 3 FILL 50")
	d.pass(c, 49)
	c.awaitBlocked(1)
	d.pass(c, 1)
	filler.batch("a")
	filler = d.waiting(c, 0, "QCLAIM q COUNT 3 FILL 50 BLOCK 0")
	c.ask("QPUSH q b", bulkReply("3"))
	d.pass(c, 49)
	c.awaitBlocked(1)
	d.pass(c, 1)
	filler.batch("b")
	c.ask("MULTI", "+OK\r\n")
	c.ask("QPUSH q c", "+QUEUED\r\n")
	c.ask("QCLAIM q COUNT 3 FILL 60000", "+QUEUED\r\n") // in a transaction nothing waits
	c.send(request("EXEC"))
	c.want("*2\r\n" + bulkReply("5"))
	c.batch("c")
}

func TestOthersMayTakeWhileABatchIsFilled(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	filler := d.waiting(c, 0, "QCLAIM q COUNT 2 FILL 50 BLOCK 60000")
	plain := d.waiting(c, 1, "QCLAIM q BLOCK 0")
	c.ask("QPUSH q a", bulkReply("1"))
	plain.batch("a")
	d.pass(c, 100) // its time is over, and there is nothing: it goes on
	c.awaitBlocked(1)
	plain = d.waiting(c, 1, "QCLAIM q COUNT 2 FILL 60000 BLOCK 0") // of another time: it waits by itself
	c.ask("QPUSH q b", bulkReply("3"))
	d.pass(c, 50)
	filler.batch("b")
	c.ask("QMPUSH q 2 c d", onTheWire(`*2 | "5" | "6"`))
	plain.batch("c d")
}

func TestOneOfThoseWhoFillLikeBatchesBeginsAtATime(t *testing.T) {
	for _, filter := range []string{"", " FILTER n ge 5"} {
		d := newDoor(t, Config{})
		c := d.dial()
		first := d.waiting(c, 0, "QCLAIM q COUNT 3 FILL 500 BLOCK 0"+filter)
		second := d.waiting(c, 1, "QCLAIM q COUNT 3 FILL 500 BLOCK 0"+filter)
		c.ask("QPUSH q a TAG n 5", bulkReply("1"))
		d.pass(c, 400)
		_ = first.Close() // who goes away claims nothing
		c.awaitBlocked(1)
		if got := c.shown("q", "1")["state"]; got != "ready" {
			t.Fatal(got)
		}
		d.pass(c, 400)
		c.ask("QPUSH q b TAG n 6", bulkReply("2"))
		c.awaitBlocked(1) // its time began when the first one went
		d.pass(c, 100)
		second.batch("a b")
	}
}

func TestAWaitToFillABatchEndsLikeAnyOther(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	c.ask("QPUSH q a", bulkReply("1"))
	c.ask("QPUSH q z TAG n 1", bulkReply("2"))
	filler := d.dial()
	filler.ask("CLIENT ID", ":2\r\n")
	for reason, reply := range map[string]string{"TIMEOUT": "*-1\r\n", "ERROR": "-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n"} {
		for _, filter := range []string{"", " FILTER n ne 2"} {
			filler.send(request(strings.Split("QCLAIM q COUNT 3 FILL 60000"+filter, " ")...))
			c.awaitBlocked(1)
			c.ask("CLIENT UNBLOCK 2 "+reason, ":1\r\n")
			filler.want(reply)
		}
	}
	filler.send(request(strings.Split("QCLAIM q COUNT 3 FILL 100 BLOCK 0", " ")...))
	c.awaitBlocked(1)
	c.ask("QSET q pause-out yes", "+OK\r\n")
	d.pass(c, 150)
	c.awaitBlocked(1) // a queue that is paused gives nothing
	c.ask("QSET q pause-out no", "+OK\r\n")
	d.pass(c, 100)
	filler.batch("a z")
	c.ask("QPUSH q b", bulkReply("5"))
	filler.send(request(strings.Split("QCLAIM q COUNT 2 FILL 60000", " ")...))
	c.awaitBlocked(1)
	c.ask("QCLOSE q", ":1\r\n")
	c.awaitBlocked(1) // a closed queue is not drained
	c.ask("QDEL q 5 1 2", ":3\r\n")
	if got := filler.readLine(); !strings.HasPrefix(got, "-CLOSED") {
		t.Error(got)
	}
	filler.ask("QCLAIM q OR r COUNT 2 FILL 5", "-ERR FILL: expected one queue, from which the batch is filled\r\n")
	filler.ask("QCLAIM q FILL 5", "-ERR FILL: expected COUNT with it\r\n")
}

func TestABatchIsFilledByAFilter(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	filler := d.waiting(c, 0, "QCLAIM q COUNT 2 FILL 60000 BLOCK 0 FILTER n ge 5")
	other := d.waiting(c, 1, "QCLAIM q COUNT 3 FILL 60000 BLOCK 0 FILTER n ge 5")
	for i, n := range []string{"1", "7", "2", "3"} {
		c.ask("QPUSH q v"+n+" TAG n "+n, bulkReply(fmt.Sprint(i+1)))
	}
	c.awaitBlocked(2)
	c.ask("QPUSH q v5 TAG n 5", bulkReply("5"))
	filler.batch("v7 v5")
	c.ask("QMPUSH q 3 x y z TAG n 6", onTheWire(`*3 | "8" | "9" | "10"`))
	other.batch("x y z")
}
