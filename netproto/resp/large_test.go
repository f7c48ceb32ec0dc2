package resp_test

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/broker"
)

// numbers are the words of a command, and a value for each number below n.
func numbers(n int, words ...string) []string {
	for i := range n {
		words = append(words, strconv.Itoa(i))
	}
	return words
}

// expect sends commands and holds their replies, each cut to a line, against what is wanted.
func (c *client) expect(rows ...[2]string) {
	c.t.Helper()
	for _, row := range rows {
		if got := c.do(strings.Fields(row[0])...).String(); got != row[1] {
			c.t.Errorf("%.60s: %.100s, want %.100s", row[0], got, row[1])
		}
	}
}

func TestALargeRequestIsNotKeptWhenItWasServed(t *testing.T) {
	d := newDoor(t)
	heap := func() int64 {
		_ = d.loop.Do(func(*broker.Tx) error { return nil }) // behind the end of the last request
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	value, clients := strings.Repeat("v", 1<<20), make([]*client, 32)
	dial(t, d.addr()).do("SET", "k", value)
	before := heap()
	for i := range clients {
		clients[i] = dial(t, d.addr())
		clients[i].do("SET", "k", value)
	}
	if grown := heap() - before; grown > 16<<20 {
		t.Errorf("%d connections that sent 1 MiB keep %d bytes", len(clients), grown)
	}
}

func TestOneCommandChangesAsMuchAsItNames(t *testing.T) {
	if testing.Short() {
		t.Skip("one client after the other, 200,000 elements at a time")
	}
	d := newDoor(t)
	c := dial(t, d.addr())
	const n = 200_000
	half := numbers(n/2, "RPUSH", "l")
	if got := c.do(half...).String(); got != ":100000" {
		t.Fatalf("RPUSH of half a list: %.100s", got)
	}
	if got := c.do(half...).String(); got != ":200000" {
		t.Fatalf("RPUSH of the other half: %.100s", got)
	}
	pairs := []string{"MSET"}
	for i := range 10_000 {
		pairs = append(pairs, fmt.Sprintf("k%d", i), strings.Repeat("v", 100))
	}
	if got := c.do(pairs...).String(); got != "+OK" {
		t.Fatalf("MSET of 10,000 pairs: %.100s", got)
	}
	d.restart() // nothing is in memory any more
	c = dial(t, d.addr())
	c.expect(
		[2]string{"DBSIZE", ":10001"},
		[2]string{"LINSERT l BEFORE 99999 new", ":200001"},
		[2]string{"LRANGE l 99998 100001", `["99998" "new" "99999" "0"]`},
		[2]string{"LTRIM l 50000 199999", "+OK"},
		[2]string{"LLEN l", ":150000"},
		[2]string{"LRANGE l 0 1", `["50000" "50001"]`},
		[2]string{"LRANGE l -2 -1", `["99997" "99998"]`},
	)
	for i := range 2 {
		if got := c.do(append([]string{"RPUSH", "same"}, strings.Fields(strings.Repeat("x ", n/2))...)...).String(); got != fmt.Sprintf(":%d", (i+1)*n/2) {
			t.Fatalf("RPUSH of one value: %.100s", got)
		}
	}
	c.expect([2]string{"LPUSH same y", ":200001"}, [2]string{"LREM same 0 x", ":200000"}, [2]string{"LRANGE same 0 -1", `["y"]`})
	d.restart()
	c = dial(t, d.addr())
	c.expect(
		[2]string{"LRANGE same 0 -1", `["y"]`}, [2]string{"LLEN l", ":150000"}, [2]string{"LINDEX l 49999", `"new"`},
	)
}

func TestATransactionChangesWhateverItHolds(t *testing.T) {
	d := newDoor(t)
	c := dial(t, d.addr())
	value := strings.Repeat("x", 1_000_000)
	c.expect([2]string{"MULTI", "+OK"})
	const small = 9000
	for i := range small {
		c.send("RPUSH", "l", strconv.Itoa(i))
	}
	for i := range 2 {
		c.send("SET", fmt.Sprint("large", i), value)
	}
	for range small + 2 {
		if got := c.read().String(); got != "+QUEUED" {
			t.Fatalf("a command: %.100s", got)
		}
	}
	if got := len(c.do("EXEC").elements); got != small+2 {
		t.Errorf("EXEC gave %d replies", got)
	}
	d.restart()
	c = dial(t, d.addr())
	c.expect([2]string{"LLEN l", fmt.Sprint(":", small)}, [2]string{"STRLEN large1", fmt.Sprint(":", len(value))})
}

func TestACommandOfATransactionIsRefusedWholeOrDoneWhole(t *testing.T) {
	c := dial(t, newDoor(t).addr())
	value := strings.Repeat("x", 600_000)
	const large = 300
	c.expect([2]string{"MULTI", "+OK"})
	for i := range large {
		c.expect([2]string{fmt.Sprintf("SETRANGE large%d 999999 x", i), "+QUEUED"})
	}
	for _, queued := range []string{"MSET a # b # c #", "HSET h a # b #", "DEL large0 large1"} {
		c.expect([2]string{strings.ReplaceAll(queued, "#", value), "+QUEUED"})
	}
	replies := c.do("EXEC").elements
	if got := replies[large].String(); got != "+OK" {
		t.Errorf("MSET beyond the limit gave %.100s", got)
	}
	for _, r := range append(replies[large-1:large], replies[large+1:]...) {
		if !strings.HasPrefix(r.text, "ERR too large: what waits to be written at once") {
			t.Errorf("a command behind the limit gave %.100s", r)
		}
	}
	c.expect([2]string{"EXISTS a b c", ":3"}, [2]string{"EXISTS h", ":0"}, [2]string{"EXISTS large0 large1", ":2"})
}
