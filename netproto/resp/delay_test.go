package resp

import (
	"fmt"
	"strings"
	"testing"
)

const doorTime = 1_700_000_000_000 // of newDoor

func TestAPacketPushedForAMomentIsReadyThen(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	c.ask(fmt.Sprint("QPUSH q now AT ", doorTime), bulkReply("1"))
	c.ask("QMPUSH q 1 past AT 0", onTheWire(`*1 | "2"`))
	c.ask(fmt.Sprint("QMPUSH q 2 later last AT ", doorTime+1000), onTheWire(`*2 | "3" | "4"`))
	c.ask("QPUSH q latest AT 4398046511103", bulkReply("5"))
	if got := c.shown("q", "3")["not-before"]; got != fmt.Sprint(doorTime+1000) {
		t.Errorf("it is delayed until %s", got)
	}
	d.stop()
	d.now += 999
	d.start()
	c = d.dial()
	c.ask("LLEN q", ":2\r\n")
	d.now += 1
	c.ask("LLEN q", ":4\r\n")
}

func TestAPacketThatFailedIsReadyAgainAtTheMomentOfItsNack(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	c.ask("QMPUSH q 2 a b", onTheWire(`*2 | "1" | "2"`))
	c.line("QCLAIM", "q", "COUNT", "2", "CONSUMER", "w")
	d.restart()
	c = d.dial()
	c.ask(fmt.Sprint("QNACK q 1 3 AT ", doorTime-1), bulkReply("ready"))
	c.ask(fmt.Sprint("QNACK q 2 4 AT ", doorTime+5), bulkReply("delayed"))
	c.ask("LLEN q", ":1\r\n")
	d.now += 5
	c.ask("LLEN q", ":2\r\n")
}

func TestDelayedPacketsAreListedSoonestFirst(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	c.ask("QPUSH q 0", bulkReply("1"))
	for i, at := range []int{50, 10, 40, 20, 30, 10} {
		c.ask(fmt.Sprintf("QPUSH q %d PRIO %d AT %d", i+1, 1+i%3, doorTime+at), bulkReply(fmt.Sprint(i+2)))
	}
	var got []string
	for cursor := ""; cursor != "0"; {
		if cursor == "" {
			cursor = "0"
		}
		c.send(request("QLIST", "q", "COUNT", "2", "CURSOR", cursor))
		c.want("*2\r\n")
		cursor = c.value()
		got = append(got, c.payloads())
		if len(got) == 2 { // a packet that comes meanwhile moves no other
			c.ask(fmt.Sprint("QPUSH q y AT ", doorTime+1), bulkReply("8"))
		}
	}
	if all := strings.Join(got, " "); all != "0 2 6 4 5 3 1" {
		t.Errorf("the packets are listed as %s", all)
	}
}

func TestATakeGoesOnWhereTheHeadOfTheQueueHasExpired(t *testing.T) {
	const many = 20_000 // more than a take deletes
	for name, take := range map[string]func(c *conn){
		"pop":   func(c *conn) { c.ask("LPOP q", bulkReply("alive")) },
		"claim": func(c *conn) { c.send(request("QCLAIM", "q", "BLOCK", "0")); c.batch("alive") },
		"move":  func(c *conn) { c.ask("LMOVE q other LEFT LEFT", bulkReply("alive")) },
		"look":  func(c *conn) { c.ask("QPEEK q", onTheWire("*0")) },
		"transaction": func(c *conn) {
			c.ask("MULTI", "+OK\r\n")
			c.ask("LPOP q", "+QUEUED\r\n")
			c.ask("EXEC", "*1\r\n"+bulkReply("alive"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDoor(t, Config{})
			c := d.dial()
			c.send(request("CLIENT", "REPLY", "OFF") + strings.Repeat(request("QPUSH", "q", "x", "TTL", "1000"), many) + request("CLIENT", "REPLY", "ON"))
			c.want("+OK\r\n")
			if name != "look" {
				c.ask("QPUSH q alive PRIO 4294967295", bulkReply(fmt.Sprint(many+1)))
			}
			d.now += 1000
			take(c)
		})
	}
}
