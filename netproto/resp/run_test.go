package resp

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/broker"
)

func TestARunOfRequestsEndsByTheClock(t *testing.T) {
	const requests = 100
	for what, turnsOf := range map[string][2]int{
		"LINDEX l 0\r\n":  {requests / 2, 10 * requests}, // the clock is looked at behind each
		"PUBLISH c x\r\n": {requests / 2, 10 * requests}, // a pattern is a step
		"ECHO x\r\n":      {2, requests / 2},
	} {
		d := newDoor(t, Config{})
		c, listener := d.dial(), d.dial()
		c.ask("RPUSH l a", ":1\r\n")
		listener.ask("PSUBSCRIBE c*", event("psubscribe", "c*", ":1"))
		turns := 0
		d.disk.turn = func() { turns++ }
		d.tick = 1
		c.send(strings.Repeat(what, requests) + request("ECHO", "end"))
		for c.readLine() != "end" {
		}
		if n := turns; n < turnsOf[0] || n > turnsOf[1] {
			t.Errorf("%d requests %q were served in %d turns, want %d to %d", requests, what, n, turnsOf[0], turnsOf[1])
		}
	}
}

// refused makes a transaction of requests and a SET, and returns how many of them were refused, as
// they look at too much or reply with too much.
func (c *conn) refused(requests string) (costly, large int) {
	c.t.Helper()
	c.send("MULTI\r\n" + requests + "SET after 1\r\nEXEC\r\nEXISTS after\r\nDEL after\r\nECHO that-is-all\r\n")
	for last, done := "", 0; ; {
		switch last = c.readLine(); {
		case last == "-"+errLooks:
			costly++
		case strings.Contains(last, "too large"):
			large++
		case last == ":1": // EXISTS and DEL
			done++
		case last == "that-is-all":
			if done < 2 {
				c.t.Error("what follows the looks was not carried out")
			}
			return costly, large
		}
	}
}

func TestTheLooksOfATransactionAreBounded(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	put := func(words ...string) {
		c.send(request(words...))
		c.readLine()
	}
	list, fields := []string{"RPUSH", "l"}, []string{"HSET", "h"}
	for i := range 5000 {
		list, fields = append(list, "v"), append(fields, fmt.Sprint(i), "v")
		put("SET", fmt.Sprint("name", i), "v")
	}
	put(list...)
	put(fields...)
	put("QSET", "empty", "bound", "1")
	for look, fit := range map[string]int{
		"KEYS none*":          broker.MaxLooks / 5100,
		"KEYS name*":          broker.MaxLooks / 5100 / 12,
		"SCAN 0 COUNT 1000":   broker.MaxLooks / 1100 / 12,
		"HKEYS h":             broker.MaxLooks / 5000 / 75,
		"HSCAN h 0 COUNT 500": broker.MaxLooks / 550 / 75,
		"LRANGE l 0 -1":       broker.MaxLooks / 5000 / 76,
		"LPOS l v RANK 5000":  broker.MaxLooks / 5000 / 75,
		"QLIST l COUNT 1000":  broker.MaxLooks / 1000 / 75 / 3,
		"COMMAND":             10,
		"COMMAND DOCS":        3,
	} {
		if n, large := c.refused(strings.Repeat(look+"\r\n", fit)); n+large > 0 {
			t.Errorf("%s: %d and %d of %d are refused, want all carried out", look, n, large, fit)
		}
		most := 4*fit + 2
		if n, large := c.refused(strings.Repeat(look+"\r\n", most)); n == 0 && look[:3] != "COM" || n+large == most {
			t.Errorf("%s: %d and %d of %d are refused, want some of them", look, n, large, most)
		}
	}
}

func TestWhatATransactionPassesOverCountsAmongItsLooks(t *testing.T) {
	const n = 200_000 // some 30 of them are a leaf of the index
	d := newDoor(t, Config{})
	c := d.dial()
	c.push("l", n)
	for priority := range 1024 {
		c.pushEqual("priorities", 1, "PRIO", fmt.Sprint(priority+1))
	}
	c.send(request("QPUSH", "l", "x"))
	c.readLine()
	id := c.readLine()
	c.line(append([]string{"LPUSH", "l"}, slices.Repeat([]string{"x"}, 1000)...)...)
	fields, gone := []string{"HSET", "sparse"}, []string{"HDEL", "sparse"}
	for i := range 16_000 {
		fields, gone = append(fields, fmt.Sprint(i), "v"), append(gone, fmt.Sprint(i))
	}
	c.line(fields...)
	c.line(gone[:len(gone)-1]...)
	c.line("SETRANGE", "large", "1000000", "x")
	for i := range 100 {
		c.line("SET", strings.Repeat("name", 15_000)+fmt.Sprint(i), "v")
	}
	c.pushEqual("claimed", 1)
	for i := range 300 {
		c.send(request("QCLAIM", "claimed", "CONSUMER", fmt.Sprint(i)) + request("ECHO", "end"))
		for c.readLine() != "end" {
		}
	}
	order := []string{"QSET", "ordered", "enum", "tag"}
	for i := range 3000 {
		order = append(order, fmt.Sprint(i))
	}
	c.line(order...)
	c.ask("QSET lettered dead-letter "+strings.Repeat("x", maxQueueName), "+OK\r\n")
	for i := range 2000 {
		c.pushEqual("tagged", 1, "TAG", "set", fmt.Sprint(i))
	}
	d.dial().send(request("QCLAIM", "tagged", "OR", "away", "FILTER", "set", "eq", "none", "BLOCK", "0"))
	awaited := []string{"BLPOP"}
	for i := range 1000 {
		awaited = append(awaited, fmt.Sprint("awaited", i))
	}
	d.dial().send(request(append(awaited, "0")...))
	for _, request := range []string{
		"QSET tagged pause-out yes\r\nQSET tagged pause-out no", "RENAME tagged away\r\nRENAME away tagged",
		"QSET ordered lease 5", "QSET lettered lease 5", "INCRBYFLOAT float 1e3900", "HINCRBYFLOAT floats x 1e3900", "INCR large", "GETEX large", "KEYS x", "HKEYS sparse", "MEMORY USAGE sparse", "QCONSUMERS claimed",
		fmt.Sprint("LPOS l ", n/4), fmt.Sprint("LSET l ", n/2, " new"), fmt.Sprint("LINSERT l AFTER ", n-1, " ", n-1),
		fmt.Sprint("LINDEX l ", n/2), "QSHOW l " + id, "QSTAT priorities", "FLUSHALL",
	} {
		const most = 3000
		if n, _ := c.refused(strings.Repeat(request+"\r\n", most)); n == 0 || n == most {
			t.Errorf("%d of %d %s were refused, want some", n, most, request)
		}
	}
}

// pushEqual pushes n packets "x" with options.
func (c *conn) pushEqual(queue string, n int, options ...string) {
	c.t.Helper()
	words := append([]string{"QMPUSH", queue, fmt.Sprint(n)}, slices.Repeat([]string{"x"}, n)...)
	c.send(request(append(words, options...)...))
	c.skipArray(c.readLine())
}

func TestASearchInManySetsOfTagsIsBounded(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	for i := range 200 {
		c.pushEqual("q", 300, "TAG", "set", fmt.Sprint(i))
	}
	c.ask("LPOS q x COUNT 3", "*3\r\n:0\r\n:1\r\n:2\r\n")
	c.ask("LPOS q x COUNT 0", "-"+errLooks+"\r\n")
	c.ask("LREM q 2 x", ":2\r\n")
}

func TestASearchInSeveralPrioritiesFindsABoundedNumber(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	const n = 1 << 14
	for i := range n / 512 {
		c.pushEqual("q", 512, "PRIO", fmt.Sprint(1+i%2))
	}
	c.ask("LPOS q x RANK -1", fmt.Sprintf(":%d\r\n", n-1))
	c.pushEqual("q", 1, "PRIO", "3")
	many := "-ERR too many elements equal the value: where a list has several priorities, 16384 are found at most\r\n"
	for _, request := range []string{"LPOS q x", "LREM q 1 x", "LINSERT q AFTER x y"} {
		c.ask(request, many)
	}
	c.ask("LLEN q", fmt.Sprintf(":%d\r\n", n+1))
}

func TestLPOSLooksAtABoundedNumberOfMatches(t *testing.T) {
	const n = maxPlaces + 100
	d := newDoor(t, Config{})
	c := d.dial()
	for left := n; left > 0; left -= broker.MaxChanged {
		c.send(request(append([]string{"RPUSH", "l"}, strings.Fields(strings.Repeat("v ", min(left, broker.MaxChanged)))...)...))
		c.want(fmt.Sprintf(":%d\r\n", n-left+min(left, broker.MaxChanged)))
	}
	for options, want := range map[string]string{
		"RANK 16384":                 ":16383",
		"RANK -60000":                fmt.Sprint(":", n-60_000),
		"RANK -60000 MAXLEN 59999":   "$-1",
		"RANK 9999999":               "$-1", // there are not as many elements
		"RANK 16384 COUNT 0":         fmt.Sprint("*", n-16_383),
		"RANK -2 COUNT 0 MAXLEN 100": "*99",
		"COUNT 0":                    "*65535",
	} {
		c := d.dial()
		if got := strings.TrimSpace(c.line(append([]string{"LPOS", "l", "v"}, strings.Fields(options)...)...)); got != want {
			t.Errorf("LPOS %s replies %q, want %q", options, got, want)
		}
	}
}

func TestASearchThatWasNotPreparedCountsAmongTheLooksOfATransaction(t *testing.T) {
	const n = 170_000 // one search builds a table of 160,000 at once
	d := newDoor(t, Config{})
	c := d.dial()
	c.push("l", n)
	for _, words := range []string{"MULTI", "LPOS l 1", "RENAME l other", "LPOS other 1", "EXEC"} {
		c.send(request(strings.Fields(words)...))
		c.readLine()
	}
	c.want(":1\r\n+OK\r\n:1\r\n") // the table goes with the list
	c.ask("DEL other", ":1\r\n")
	c.push("l", n)
	for _, words := range []string{"MULTI", "RENAME l other", "LPOS other 1", "LREM other 0 1", "LINSERT other AFTER 1 x", "EXEC"} {
		c.send(request(strings.Fields(words)...))
		c.readLine()
	}
	c.want("+OK\r\n" + strings.Repeat("-"+errLooks+"\r\n", 3))
	c.ask("LINSERT other AFTER 1 x", fmt.Sprintf(":%d\r\n", n+1))
	c.ask("LREM other 0 1", ":1\r\n")
}

func TestALookThatCostsTooMuchByItselfIsRefusedInATransaction(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	c.push("l", 4*broker.MaxChanged)
	for _, words := range []string{"MULTI", "LRANGE l 0 -1", "SET a b", "GET a"} {
		c.send(request(strings.Fields(words)...))
		c.readLine()
	}
	c.ask("EXEC", "*3\r\n-"+errLooks+"\r\n+OK\r\n-"+errLooks+"\r\n")
	c.ask("LLEN l", fmt.Sprintf(":%d\r\n", 4*broker.MaxChanged))
	c.send(request("SETRANGE", "s", "1000000", "x"))
	c.readLine()
	if costly, large := c.refused("MGET" + strings.Repeat(" s", 68) + "\r\n" + strings.Repeat("GET s\r\n", 5)); costly != 6 || large != 0 {
		t.Errorf("%d looks were refused, and %d replies were too large", costly, large)
	}
}
