package resp

import (
	"fmt"
	"strings"
	"testing"
)

func TestAUniquePushIsAnsweredWithThePacketThatHasTheID(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	c.ask("QPUSH q a UNIQUE u", bulkReply("1"))
	c.ask("QPUSH q b unique u", bulkReply("1"))
	c.ask("QPUSH other b UNIQUE u", bulkReply("2"))
	c.ask("QPEEK q", onTheWire(`*1 | *14 | "id" | "1" | "queue" | "q" | "payload" | "a" | "priority" | :128 | "unique" | "u" | "enqueued" | :1700000000000 | "state" | "ready"`))
	c.line("QCLAIM", "q", "CONSUMER", "w")
	d.restart()
	c = d.dial()
	c.ask("QPUSH q b UNIQUE u", bulkReply("1"))
	c.ask("QNACK q 1 3 DEAD", bulkReply("dead"))
	c.ask("QPUSH q b UNIQUE u", bulkReply("4"))
	c.ask("QREDRIVE q", ":1\r\n")
	c.ask("QPUSH q c UNIQUE u", bulkReply("4"))
	c.ask("QDEL q 4", ":1\r\n")
	c.ask("QPUSH q c UNIQUE u", bulkReply("1"))
	c.ask("QLEN q", ":1\r\n")
}

func TestAnIDUntilAClaimIsFreeWhenWorkBegins(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	c.ask("QPUSH q a UNIQUE u UNTIL claim", bulkReply("1"))
	c.ask("QMOVE q 1 TO r", ":1\r\n") // with its id
	c.ask("QPUSH r b UNIQUE u", bulkReply("1"))
	c.line("QCLAIM", "r", "CONSUMER", "w")
	d.restart()
	c = d.dial()
	c.ask("QPUSH r b UNIQUE u until CLAIM", bulkReply("3"))
	c.ask("QPUSH r c UNIQUE u UNTIL claim", bulkReply("3"))
	c.ask("QNACK r 1 2 UNCOUNTED DELAY 0", bulkReply("ready")) // beside the second
	c.ask("QPUSH r c UNIQUE u UNTIL claim", bulkReply("3"))
	c.ask("QLEN r", ":2\r\n")
	d.restart()
	c = d.dial()
	c.ask("QPUSH r c UNIQUE u UNTIL end", bulkReply("3"))
	c.ask("QDEL r 3", ":1\r\n")
	c.ask("QPUSH r c UNIQUE u UNTIL end", bulkReply("4")) // the first has lost its id
	c.send(request("QCLAIM", "r", "COUNT", "2"))
	c.value()
	c.ask("QPUSH r d UNIQUE u UNTIL claim", bulkReply("4"))
	c.ask("QLOAD s e UNIQUE l UNTILCLAIM", bulkReply("7"))
	c.ask("LPOP s", bulkReply("e"))
	c.ask("QPUSH s f UNIQUE l", bulkReply("8"))
	c.ask("QLOAD r e UNIQUE m UNTILCLAIM", bulkReply("9"))
	c.line("QCLAIM", "r")
	c = d.dial()
	c.ask("QPUSH r f UNIQUE m", bulkReply("11"))
}

func TestADebouncedPacketIsDeliveredOnceWithItsLastPayload(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	for i := range 1000 {
		if i%333 == 300 {
			d.restart()
			c = d.dial()
		}
		c.ask(fmt.Sprintf("QPUSH q %d UNIQUE u REPLACE DELAY 1000", i), bulkReply("1"))
		d.now += 1
	}
	d.now += 998
	c.ask("QPOP q", "*0\r\n")
	d.now += 1
	c.ask("LLEN q", ":1\r\n")
	c.ask("LPOP q", bulkReply("999"))
	c.ask("QLEN q", ":0\r\n")
}

func TestAReplacementWaitsForRoom(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	c.ask("QSET q bound-bytes 5", "+OK\r\n")
	c.ask("QPUSH q ab UNIQUE u PRIO 200", bulkReply("1"))
	c.ask("QPUSH q cd", bulkReply("2"))
	c.ask("QPUSH q ABCD UNIQUE u REPLACE", "-FULL queue is full: it holds 2 packets with 4 bytes, its bound is 5 bytes\r\n")
	c.ask("QPUSH q ABCDEF UNIQUE u REPLACE BLOCK 0", "-ERR too large: 1 packet with 6 bytes came at once, the bound of the queue is 5 bytes\r\n")
	waits := d.waiting(c, 0, "QPUSH q ABCDE UNIQUE u REPLACE BLOCK 0")
	c.ask("LPOP q", bulkReply("cd"))
	waits.want(bulkReply("1"))
	c.ask("LRANGE q 0 -1", onTheWire(`*1 | "ABCDE"`))
}

func TestAUniquePushIsToldWhatBecameOfIt(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	told := func(options, id, what string) {
		t.Helper()
		c.ask("QPUSH q x UNIQUE "+options+" TELL", onTheWire(`*2 | "`+id+`" | "`+what+`"`))
	}
	told("u DELAY 1000", "1", "new")
	told("u", "1", "delayed")
	told("u REPLACE DELAY 0", "1", "replaced")
	told("u UNTIL claim", "1", "ready")
	c.send(request("QCLAIM", "q"))
	c.value()
	told("u REPLACE", "1", "claimed")
	told("w WINDOW 1000", "3", "new")
	c.ask("LPOP q", bulkReply("x"))
	told("w REPLACE", "3", "gone")
	c.ask("QPUSH q x UNIQUE w", bulkReply("3"))
	c.ask("QSET q bound 1 full drop", "+OK\r\n")
	c.ask("QPUSH q x UNIQUE z TELL", nullReply)
}

func TestAUniquePushIsAnsweredForItsWindow(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	c.ask("QPUSH q a UNIQUE u WINDOW 1000", bulkReply("1"))
	c.line("QPOP", "q")
	d.stop()
	d.now += 999
	d.start()
	c = d.dial()
	c.ask("QPUSH q b WINDOW 1000 UNIQUE u", bulkReply("1"))
	c.ask("QLEN q", ":0\r\n")
	d.now += 1
	c.ask("QPUSH q b UNIQUE u WINDOW 1000", bulkReply("2"))
	c.ask("QPUSH q b UNIQUE u", bulkReply("2")) // with or without a window, an id is one
	c.ask("QDEL q 2", ":1\r\n")
	c.ask("QPUSH q c UNIQUE u", bulkReply("2"))
	c.ask("QPUSH q c UNIQUE other", bulkReply("3"))
	c.ask("QPUSH q c UNIQUE other WINDOW 5", bulkReply("3"))
}

func TestAWindowIsNoKeyOfTheUsers(t *testing.T) {
	for name, commands := range map[string][][2]string{
		"DEL does not end it":         {{"DEL unique:1:q:u", ":0\r\n"}},
		"SET does not disturb it":     {{"SET unique:1:q:u mine", "+OK\r\n"}},
		"RENAME does not disturb it":  {{"SET x mine", "+OK\r\n"}, {"RENAME x unique:1:q:u", "+OK\r\n"}},
		"GETDEL does not end it":      {{"GETDEL unique:1:q:u", nullReply}},
		"EXPIRE does not end it":      {{"PEXPIRE unique:1:q:u 1", ":0\r\n"}},
		"KEYS does not show it":       {{"KEYS *", "*1\r\n$1\r\nq\r\n"}},
		"DBSIZE does not count it":    {{"DBSIZE", ":1\r\n"}},
		"an emptied queue is no name": {{"QDEL q 1", ":1\r\n"}, {"KEYS *", "*0\r\n"}, {"DBSIZE", ":0\r\n"}, {"EXISTS q", ":0\r\n"}, {"TYPE q", "+none\r\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDoor(t, Config{})
			c := d.dial()
			c.ask("QPUSH q a UNIQUE u WINDOW 100000", bulkReply("1"))
			for _, command := range commands {
				c.ask(command[0], command[1])
			}
			for range 2 {
				c.ask("QPUSH q b UNIQUE u WINDOW 100000", bulkReply("1"))
				d.restart()
				c = d.dial()
			}
		})
	}
}

func TestWindowsEndWithTheirQueue(t *testing.T) {
	for _, end := range []string{"QDROP q", "DEL q", "FLUSHALL", "SET q text", "RENAME other q"} {
		for _, empty := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s %v", end, empty), func(t *testing.T) {
				d := newDoor(t, Config{})
				c := d.dial()
				c.ask("RPUSH other a", ":1\r\n")
				c.ask("QPUSH q a UNIQUE u WINDOW 100000", bulkReply("1"))
				if empty {
					c.ask("QDEL q 1", ":1\r\n")
				}
				c.line(strings.Fields(end)...)
				if end == "SET q text" {
					c.ask("DEL q", ":1\r\n")
				}
				d.restart()
				c = d.dial()
				if id := c.text("QPUSH", "q", "b", "UNIQUE", "u", "WINDOW", "100000"); id == "0" {
					t.Error("the window is still there")
				}
			})
		}
	}
}

func TestQDropOfAQueueThatHasOnlyAWindowSucceedsOnce(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	c.ask("QPUSH q a UNIQUE u WINDOW 100000", bulkReply("1"))
	c.ask("QDEL q 1", ":1\r\n")
	c.ask("QDROP q", "+OK\r\n")
	c.ask("QPUSH q b UNIQUE u WINDOW 100000", bulkReply("2"))
	c.ask("QDEL q 2", ":1\r\n")
	c.ask("QDROP q", "+OK\r\n")
	if got := c.line("QDROP", "q"); !strings.HasPrefix(got, "-NOQUEUE ") {
		t.Errorf("a second QDROP gives %q", got)
	}
}

func TestAWindowGoesWithARenamedQueue(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	c.ask("QPUSH q a UNIQUE u WINDOW 100000", bulkReply("1"))
	c.ask("RENAME q r", "+OK\r\n")
	c.ask("QPUSH r a UNIQUE u WINDOW 100000", bulkReply("1"))
	c.ask("QPUSH q a UNIQUE u WINDOW 100000", bulkReply("2"))
}

func TestATransactionHasRoomForItsUniquePushes(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	u := strings.Repeat("u", 255)
	c.ask("MULTI", "+OK\r\n")
	for _, push := range []string{"QPUSH q a UNIQUE " + u + " WINDOW 5", "QPUSH q b UNIQUE " + u, "QPUSH q c UNIQUE " + u + " window 5", "QPUSH q d UNIQUE " + u} {
		c.ask(push, "+QUEUED\r\n")
	}
	c.ask("EXEC", onTheWire(`*4 | "1" | "1" | "1" | "1"`))
	c.ask("QLEN q", ":1\r\n")
}
