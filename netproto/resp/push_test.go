package resp

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// fullReply is the refusal of a push to a queue that holds so many packets, with their bytes.
func fullReply(holds, bound string) string {
	return "-FULL queue is full: it holds " + holds + ", its bound is " + bound + "\r\n"
}

const nullReply = "$-1\r\n"

// waiting makes a push on a connection of its own, and returns when that waits beside some others.
func (d *door) waiting(c *conn, others int, command string) *conn {
	d.t.Helper()
	blocked := d.dial()
	blocked.send(request(strings.Split(command, " ")...))
	c.awaitBlocked(others + 1)
	return blocked
}

func TestAPushToAFullQueueIsRefused(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	c.ask("QSET q bound 2 bound-bytes 5", "+OK\r\n")
	c.ask("QPUSH q ab", bulkReply("1"))
	c.ask("QMPUSH q 2 c d", fullReply("1 packet with 2 bytes", "2 packets and 5 bytes"))
	c.ask("QPUSH q cdef", fullReply("1 packet with 2 bytes", "2 packets and 5 bytes"))
	c.ask("LPUSH q c d e", "-ERR too large: 3 packets with 3 bytes came at once, the bound of the queue is 2 packets and 5 bytes\r\n")
	c.ask("QPUSH q cdefgh BLOCK 0", "-ERR too large: 1 packet with 6 bytes came at once, the bound of the queue is 2 packets and 5 bytes\r\n")
	c.ask("QPUSH q cde", bulkReply("2"))
	c.ask("LPUSH other x", ":1\r\n")
	for _, push := range []string{"QPUSH q x", "QMPUSH q 1 x", "LPUSH q x", "RPUSHX q x", "LINSERT q BEFORE ab x", "RPOPLPUSH other q", "BLMOVE other q LEFT LEFT 0"} {
		if c.ask(push, fullReply("2 packets with 5 bytes", "2 packets and 5 bytes")); t.Failed() {
			t.Fatal(push)
		}
	}
	c.ask("LSET q 0 abcd", fullReply("2 packets with 5 bytes", "2 packets and 5 bytes"))
	c.ask("LLEN other", ":1\r\n")
	c.ask("RENAME other q", "+OK\r\n") // in place of the queue and its settings
	c.ask("LPUSH q a b c d e f g", ":8\r\n")
}

func TestPushesWaitForRoomInTheOrderInWhichTheyCame(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	c.ask("QSET q bound 3", "+OK\r\n")
	c.ask("QMPUSH q 3 a b c", onTheWire(`*3 | "1" | "2" | "3"`))
	first := d.waiting(c, 0, "QMPUSH q 2 d e BLOCK 0")
	second := d.waiting(c, 1, "QPUSH q f BLOCK 60000")
	c.ask("RPOP q", bulkReply("a"))
	c.ask("QPUSH q x", "-FULL queue is full: others wait for room, and come first\r\n")
	c.ask("RPOP q", bulkReply("b"))
	first.want(onTheWire(`*2 | "4" | "5"`))
	c.ask("RPOP q", bulkReply("c"))
	second.want(bulkReply("6"))
	c.ask("RPOP q 9", onTheWire(`*3 | "d" | "e" | "f"`))
	first.ask("QPUSH q last", bulkReply("7")) // and the connection goes on
}

func TestAPushThatWaitedGoesToAWaitingConsumerAtOnce(t *testing.T) {
	d := newDoor(t, Config{})
	c, consumer := d.dial(), d.dial()
	c.ask("QSET q bound 1", "+OK\r\n")
	c.ask("QPUSH q a", bulkReply("1"))
	pushes := []*conn{d.waiting(c, 0, "QPUSH q b BLOCK 0"), d.waiting(c, 1, "QPUSH q c BLOCK 0")}
	consumer.send(request("BRPOP", "q", "0") + request("BRPOP", "q", "0") + request("BRPOP", "q", "0") + request("BRPOP", "q", "0"))
	for _, p := range []string{"a", "b", "c"} {
		consumer.want("*2\r\n" + bulkReply("q") + bulkReply(p))
	}
	pushes[0].want(bulkReply("2"))
	pushes[1].want(bulkReply("3"))
	c.awaitBlocked(1)
	c.ask("QPUSH q d BLOCK 0", bulkReply("4"))
	consumer.want("*2\r\n" + bulkReply("q") + bulkReply("d"))
}

func TestEveryPushWaitsWhereAFullQueueBlocks(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	c.ask("QSET q bound 1 full block", "+OK\r\n")
	c.ask("QPUSH q a", bulkReply("1"))
	push := d.waiting(c, 0, "QPUSH q b")
	c.ask("LPUSH q c", "-FULL queue is full: others wait for room, and come first\r\n")
	c.ask("MULTI", "+OK\r\n")
	c.ask("QPUSH q c", queuedReply)
	c.ask("QPUSH q c BLOCK 0", queuedReply)
	c.ask("RPOP q", queuedReply)
	c.ask("EXEC", "*3\r\n"+strings.Repeat("-FULL queue is full: others wait for room, and come first\r\n", 2)+bulkReply("a"))
	push.want(bulkReply("2"))
}

// Each way ends the wait of two pushes.
func TestAPushThatWaitsEndsAsABlockedPopDoes(t *testing.T) {
	for name, end := range map[string]struct {
		by          func(d *door, c *conn)
		push, mpush string // what they reply; "": the connection ends
	}{
		"its time":      {func(d *door, c *conn) { d.now += 60_000; c.ask("PING", "+PONG\r\n") }, nullReply, nullArray},
		"unblocked":     {func(_ *door, c *conn) { c.ask("CLIENT UNBLOCK 2", ":1\r\n"); c.ask("CLIENT UNBLOCK 3", ":1\r\n") }, nullReply, nullArray},
		"killed":        {func(_ *door, c *conn) { c.ask("CLIENT KILL TYPE normal SKIPME yes", ":2\r\n") }, "", ""},
		"more room":     {func(_ *door, c *conn) { c.ask("QSET q bound 5", "+OK\r\n") }, bulkReply("3"), onTheWire(`*2 | "4" | "5"`)},
		"no bound":      {func(_ *door, c *conn) { c.ask("DEL q", ":1\r\n") }, bulkReply("3"), onTheWire(`*2 | "4" | "5"`)},
		"everything":    {func(_ *door, c *conn) { c.ask("FLUSHALL", "+OK\r\n") }, bulkReply("3"), onTheWire(`*2 | "4" | "5"`)},
		"another queue": {func(_ *door, c *conn) { c.ask("RENAME q other", "+OK\r\n") }, bulkReply("3"), onTheWire(`*2 | "4" | "5"`)},
		"closed":        {func(_ *door, c *conn) { c.ask("QCLOSE q", ":1\r\n") }, closedReply, closedReply},
		"a string":      {func(_ *door, c *conn) { c.ask("SET q v", "+OK\r\n") }, "", ""},
		"less room": {
			func(_ *door, c *conn) {
				c.ask("QSET q bound 0 bound-bytes 1", "+OK\r\n")
				c.ask("RPOP q 2", onTheWire(`*2 | "a" | "z"`))
			},
			bulkReply("3"), "-ERR too large: 2 packets with 2 bytes came at once, the bound of the queue is 1 byte\r\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDoor(t, Config{})
			c := d.dial()
			c.ask("QSET q bound 2", "+OK\r\n")
			c.ask("QMPUSH q 2 a z", onTheWire(`*2 | "1" | "2"`))
			push := d.waiting(c, 0, "QPUSH q b BLOCK 60000")
			mpush := d.waiting(c, 1, "QMPUSH q 2 c d BLOCK 60000")
			end.by(d, c)
			if name == "a string" { // no queue, no bound
				push.want("-WRONGTYPE Operation against a key holding the wrong kind of value\r\n")
				mpush.want("-WRONGTYPE Operation against a key holding the wrong kind of value\r\n")
			} else if end.push == "" {
				push.wantEnd()
				mpush.wantEnd()
			} else {
				push.want(end.push)
				mpush.want(end.mpush)
				push.ask("PING", "+PONG\r\n")
			}
			if n := d.held(); n != 0 {
				t.Errorf("%d bytes are held", n)
			}
		})
	}
}

func TestAPushThatHungUpLeavesItsPlaceToTheNext(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	c.ask("QSET q bound 2", "+OK\r\n")
	c.ask("QPUSH q a", bulkReply("1"))
	large := d.waiting(c, 0, "QMPUSH q 2 b c BLOCK 0")
	small := d.waiting(c, 1, "QPUSH q d BLOCK 0")
	_ = large.Close()
	small.want(bulkReply("2"))
	c.ask("LRANGE q 0 -1", onTheWire(`*2 | "d" | "a"`))
}

func TestAPushWaitsWhileTheQueueIsPaused(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	c.ask("QSET q pause-in yes bound 1", "+OK\r\n")
	push := d.waiting(c, 0, "QPUSH q a BLOCK 0")
	c.ask("QSET q bound 2", "+OK\r\n")
	c.ask("QPUSH q x", pausedReply)
	c.awaitBlocked(1)
	c.ask("QSET q pause-in no", "+OK\r\n")
	push.want(bulkReply("1"))
}

func TestAUniquePushThatWaitedFindsTheFirst(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	c.ask("QSET q bound 1", "+OK\r\n")
	c.ask("QPUSH q a", bulkReply("1"))
	first := d.waiting(c, 0, "QPUSH q b UNIQUE u BLOCK 0")
	second := d.waiting(c, 1, "QPUSH q c UNIQUE u BLOCK 0")
	c.ask("QSET q bound 3", "+OK\r\n")
	first.want(bulkReply("2"))
	second.want(bulkReply("2"))
	c.ask("QLEN q", ":2\r\n")
}

func TestAFullQueueThatDropsRepliesWithNullToWhatIsNoBetter(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	c.ask("QSET q bound 2 full drop", "+OK\r\n")
	c.ask("QMPUSH q 2 a b", onTheWire(`*2 | "1" | "2"`))
	c.ask("QPUSH q c", nullReply)
	c.ask("QPUSH q c PRIO 0 KEY k", nullReply)
	c.ask("QMPUSH q 2 c d PRIO 129", "*2\r\n"+nullReply+nullReply)
	c.ask("QPUSH q c PRIO 99", bulkReply("3"))
	c.ask("QMPUSH q 2 d e PRIO 99", "*2\r\n"+nullReply+nullReply) // one place would not do
	c.ask("RPUSH q x y", "-FULL queue is full and cannot drop enough packets that are worse: its bound is 2 packets, and one push drops at most 1000, none of them claimed\r\n")
	push := d.waiting(c, 0, "QPUSH q best PRIO 1 BLOCK 0") // nothing is dropped for it
	c.ask("LRANGE q 0 -1", onTheWire(`*2 | "c" | "a"`))
	c.ask("LPOP q", bulkReply("c"))
	push.want(bulkReply("4"))
	c.ask("MULTI", "+OK\r\n")
	c.ask("QPUSH q d PRIO 3", queuedReply)
	c.ask("QPUSH q e PRIO 2", queuedReply)
	c.ask("EXEC", "*2\r\n"+bulkReply("5")+bulkReply("6"))
	c.ask("LRANGE q 0 -1", onTheWire(`*2 | "best" | "e"`))
	if got := c.pairs("QSTAT", "q")["dropped"]; got != "3" {
		t.Errorf("%s packets were dropped", got)
	}
	c.ask("DEL q", ":1\r\n")
	c.ask("QSET q bound 2 full drop", "+OK\r\n")
	c.ask("QMPUSH q 2 a b PRIO 200", onTheWire(`*2 | "7" | "8"`))
	c.ask("RPUSH q x y", ":2\r\n")
	c.ask("LRANGE q 0 -1", onTheWire(`*2 | "x" | "y"`))
	c.ask("QMPUSH q 2 c d PRIO 1", onTheWire(`*2 | "9" | "10"`))
	c.ask("LRANGE q 0 -1", onTheWire(`*2 | "d" | "c"`))
}

// Producers and consumers that wait for each other all come to an end, and the queue is never
// fuller than its bound.
func TestProducersAndConsumersOfAFullQueueWaitForEachOther(t *testing.T) {
	const clients, packets, bound = 6, 300, 4
	d := newDoor(t, Config{})
	c := d.dial()
	c.ask("QSET q bound "+fmt.Sprint(bound), "+OK\r\n")
	type worker struct {
		*conn
		commands []string // then they begin anew
		left     int      // of requests
		lines    int      // of the reply that has not come; 0: none
	}
	var workers []*worker
	for range clients {
		workers = append(workers, &worker{conn: d.dial(), commands: []string{"QMPUSH q 2 b c BLOCK 0", "QPUSH q a BLOCK 0"}, left: packets},
			&worker{conn: d.dial(), commands: []string{"BRPOP q 0"}, left: packets * 3 / 2})
	}
	random := rand.New(rand.NewPCG(1, 2))
	for ended, rounds := 0, 0; ended < len(workers); rounds++ {
		if rounds == 100*packets {
			t.Fatalf("only %d clients came to an end", ended)
		}
		for _, w := range workers {
			if w.lines > 0 && bytes.Count(w.wire.Arrived(), []byte("\n")) == w.lines {
				for ; w.lines > 0; w.lines-- {
					w.readLine()
				}
				if w.left == 0 {
					ended++
				}
			}
			if w.lines > 0 || w.left == 0 || random.IntN(2) == 0 {
				continue
			}
			command := w.commands[w.left%len(w.commands)]
			w.lines = map[byte]int{'Q': 2, 'B': 5}[command[0]] // of an id, or of an array of two
			if command[1] == 'M' {
				w.lines = 5
			}
			w.send(command + "\r\n")
			w.left--
		}
		if n := c.line("QLEN", "q"); n > fmt.Sprint(":", bound) {
			t.Fatalf("the queue holds %s packets", n)
		}
	}
	c.ask("QLEN q", ":0\r\n")
}
