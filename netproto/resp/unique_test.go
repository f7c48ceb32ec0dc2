package resp

import (
	"strings"
	"testing"
)

func TestAUniquePushIsAnsweredWithThePacketThatHasTheID(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	c.ask("QPUSH q a UNIQUE u", bulkReply("0"))
	c.ask("QPUSH q b unique u", bulkReply("0"))
	c.ask("QPUSH other b UNIQUE u", bulkReply("1"))
	c.ask("QPEEK q", wire(`*1 | *14 | "id" | "0" | "queue" | "q" | "payload" | "a" | "priority" | :100 | "unique" | "u" | "enqueued" | :1700000000000 | "state" | "ready"`))
	c.line("QCLAIM", "q", "CONSUMER", "w")
	d.stop()
	d.start()
	c = d.dial()
	c.ask("QPUSH q b UNIQUE u", bulkReply("0"))
	c.ask("QNACK q 0 2 DEAD", bulkReply("dead"))
	c.ask("QPUSH q b UNIQUE u", bulkReply("3"))
	c.ask("QREDRIVE q", ":1\r\n")
	c.ask("QPUSH q c UNIQUE u", bulkReply("3"))
	c.ask("QDEL q 3", ":1\r\n")
	c.ask("QPUSH q c UNIQUE u", bulkReply("0"))
	c.ask("QLEN q", ":1\r\n")
}

func TestAUniquePushIsAnsweredForItsWindow(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	c.ask("QPUSH q a UNIQUE u WINDOW 1000", bulkReply("0"))
	c.line("QPOP", "q")
	d.stop()
	d.now.Add(999)
	d.start()
	c = d.dial()
	c.ask("GET unique:1:q:u", bulkReply("0"))
	c.ask("PTTL unique:1:q:u", ":1\r\n")
	c.ask("QPUSH q b WINDOW 1000 UNIQUE u", bulkReply("0"))
	c.ask("QLEN q", ":0\r\n")
	d.now.Add(1)
	c.ask("QPUSH q b UNIQUE u WINDOW 1000", bulkReply("1"))
	c.ask("DEL unique:1:q:u", ":1\r\n")
	c.ask("QPUSH q c UNIQUE u WINDOW 1000", bulkReply("2"))
}

func TestATransactionHasRoomForItsUniquePushes(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	u := strings.Repeat("u", 255)
	c.ask("MULTI", "+OK\r\n")
	for _, push := range []string{"QPUSH q a UNIQUE " + u + " WINDOW 5", "QPUSH q b UNIQUE " + u, "QPUSH q c UNIQUE " + u + " window 5", "QPUSH q d UNIQUE " + u} {
		c.ask(push, "+QUEUED\r\n")
	}
	c.ask("EXEC", wire(`*4 | "0" | "1" | "0" | "1"`))
	c.ask("QLEN q", ":2\r\n")
	c.ask("HSET unique:1:q:h f v", ":1\r\n")
	c.ask("QPUSH q a UNIQUE h WINDOW 5", "-"+errWrongType+"\r\n")
	c.ask("QLEN q", ":2\r\n")
}
