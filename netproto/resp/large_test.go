package resp

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
func (c *conn) expect(rows ...[2]string) {
	c.t.Helper()
	for _, row := range rows {
		if got := c.do(strings.Fields(row[0])...).String(); got != row[1] {
			c.t.Errorf("%.60s: %.100s, want %.100s", row[0], got, row[1])
		}
	}
}

func TestSystemALargeRequestIsNotKeptWhenItWasServed(t *testing.T) {
	large := strings.Repeat("v", 1<<20)
	for what, text := range map[string]string{
		"a request": request("EXISTS", large),
		"a line":    "EXISTS " + large[:63<<10] + "\r\n",
	} {
		d := openDoor(&door{t: t}) // it runs by itself
		heap := func() int64 {
			d.settle()
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return int64(m.HeapAlloc)
		}
		clients := make([]*conn, 64)
		for i := range clients {
			clients[i] = d.dial()
			clients[i].do("EXISTS", large[:63<<10]) // for which a loop may keep room
		}
		before := heap()
		for _, c := range clients {
			c.send(text)
			c.read()
		}
		// Who keeps the requests has all their bytes.
		if grown := heap() - before; grown > int64(len(clients)*len(text)*3/4) {
			t.Errorf("%d connections that sent %s of %d bytes keep %d bytes", len(clients), what, len(text), grown)
		}
	}
}

func TestOneCommandTakesAndMovesNoMoreThanItsLimit(t *testing.T) {
	d := newOther(t)
	c := d.dial()
	const most = broker.MaxChanged
	const n = 3 * most
	fill(c, "l", n)
	for range 3 {
		c.do(append([]string{"RPUSH", "same"}, strings.Fields(strings.Repeat("x ", most))...)...)
	}
	tooMany := "-ERR too many elements: one command or transaction takes, removes or moves at most 16384, and writes at most 32 MiB of them again"
	c.expect(
		[2]string{fmt.Sprint("LINSERT l BEFORE ", most+1, " new"), tooMany},
		[2]string{fmt.Sprint("LINSERT l BEFORE ", n-most-1, " new"), tooMany},
		[2]string{fmt.Sprint("LINSERT l BEFORE ", most, " new"), fmt.Sprint(":", n+1)},
		[2]string{fmt.Sprint("LINSERT l BEFORE ", n-most, " new"), fmt.Sprint(":", n+2)},
		[2]string{fmt.Sprint("LINDEX l ", most), `"new"`}, [2]string{fmt.Sprint("LINDEX l ", n-most+1), `"new"`},
		[2]string{"LREM same 0 x", tooMany},
		[2]string{fmt.Sprint("LREM same ", -most-1, " x"), tooMany},
		[2]string{fmt.Sprint("LREM same ", -most, " x"), fmt.Sprint(":", most)},
		[2]string{"MULTI", "+OK"}, [2]string{"LREM same 1 x", "+QUEUED"}, [2]string{fmt.Sprint("LREM same ", most, " x"), "+QUEUED"},
		[2]string{"LPOP l 40000", "+QUEUED"}, [2]string{"LPOP l", "+QUEUED"}, [2]string{"LTRIM l 5 -1", "+QUEUED"},
	)
	replies := c.do("EXEC").elements
	if got := len(replies[2].elements); replies[0].String() != ":1" || replies[1].String() != tooMany || got != most-1 ||
		replies[3].String() != tooMany || replies[4].String() != tooMany {
		t.Errorf("EXEC gave %.300s", replies)
	}
	d.restart()
	c = d.dial()
	c.expect(
		[2]string{"LLEN same", fmt.Sprint(":", 2*most-1)}, [2]string{"LLEN l", fmt.Sprint(":", n+3-most)},
		[2]string{"LTRIM l 20000 -2", "+OK"}, [2]string{"LLEN l", fmt.Sprint(":", n+3-most-20_000-1)},
		[2]string{"DEL l", ":1"},
	)
}

func TestOneCommandTakesNoMoreOfAGroupThanItsLimit(t *testing.T) {
	d := newOther(t)
	c := d.dial()
	const n = broker.MaxChanged + 1
	for range n {
		c.send(request("QPUSH", "q", "x", "KEY", "k"))
	}
	for range n {
		c.read()
	}
	if got := len(c.do("QPOP", "q", "GROUP").elements); got != broker.MaxChanged {
		t.Errorf("QPOP took %d of a group of %d", got, n)
	}
	if got := len(c.do("QPOP", "q", "GROUP").elements); got != 1 {
		t.Errorf("QPOP took %d of the rest", got)
	}
}

func TestATransactionOfTooManyChangesIsNotBegun(t *testing.T) {
	c := newOther(t).dial()
	c.expect([2]string{"MULTI", "+OK"})
	c.do(append([]string{"RPUSH", "l"}, numbers(broker.MaxChanged-1)...)...)
	c.expect(
		[2]string{"GET a", "+QUEUED"}, [2]string{"SET a b", "+QUEUED"},
		[2]string{"DEL a", "-ERR transaction too large: its commands may change 16384 elements and names"},
		[2]string{"EXEC", "-EXECABORT Transaction discarded because of previous errors."}, [2]string{"EXISTS l a", ":0"},
		[2]string{"MULTI", "+OK"},
	)
	move := append(numbers(1000, "QMOVE", "q"), "TO", "r")
	for range broker.MaxChanged / 1000 {
		c.do(move...)
	}
	want := "-ERR transaction too large: its commands may change 16384 elements and names"
	if got := c.do(move...).String(); got != want {
		t.Errorf("QMOVE of many packets in a transaction: %.100s, want %s", got, want)
	}
	c.do("DISCARD")
	c.do("MULTI")
	del := append([]string{"DEL"}, numbers(broker.MaxChanged+1)...)
	if got := c.do(del...).String(); got != want {
		t.Errorf("DEL of many names in a transaction: %.100s, want %s", got, want)
	}
	c.do("DISCARD")
	if got := c.do(del...).String(); got != ":0" {
		t.Errorf("DEL of many names alone: %.100s", got)
	}
}

func TestATransactionChangesWhateverItHolds(t *testing.T) {
	d := newOther(t)
	c := d.dial()
	value := strings.Repeat("x", 1_000_000)
	c.expect([2]string{"MULTI", "+OK"})
	const small = 9000
	for i := range small {
		c.send(request("RPUSH", "l", strconv.Itoa(i)))
	}
	for i := range 2 {
		c.send(request("SET", fmt.Sprint("large", i), value))
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
	c = d.dial()
	c.expect([2]string{"LLEN l", fmt.Sprint(":", small)}, [2]string{"STRLEN large1", fmt.Sprint(":", len(value))})
}

func TestACommandOfATransactionIsRefusedWholeOrDoneWhole(t *testing.T) {
	c := newOther(t).dial()
	const large = 33 // and a little more is 32 MiB
	element := strings.Repeat("x", 1_000_000)
	for range large / 3 {
		c.do("RPUSH", "list", element, element, element)
	}
	c.do(append([]string{"RPUSH", "list"}, numbers(large+1)...)...) // so the large ones move
	value := element[:600_000]
	c.expect([2]string{"MULTI", "+OK"})
	for _, queued := range []string{"LINSERT list BEFORE 0 new", "LINSERT list BEFORE 0 refused", "MSET a # b # c #", "HSET h a # b #"} {
		c.expect([2]string{strings.ReplaceAll(queued, "#", value), "+QUEUED"})
	}
	replies := c.do("EXEC").elements
	for i, want := range []string{fmt.Sprint(":", 2*large+2), "", "+OK", ":2"} {
		if got := replies[i].String(); got != want && want != "" {
			t.Errorf("command %d: got %.100s, want %s", i, got, want)
		}
	}
	if !strings.HasPrefix(replies[1].text, "ERR too many elements") {
		t.Errorf("a command beyond the limit gave %.100s", replies[1])
	}
	c.expect([2]string{"EXISTS a b c h", ":4"}, [2]string{"LLEN list", fmt.Sprint(":", 2*large+2)}, [2]string{"LPOS list refused", "$-1"})
	if got := c.do("LPOS", "list", "new").String(); got != fmt.Sprint(":", large) {
		t.Errorf("what was inserted is at %s", got)
	}
}

func TestATransactionPatchesThirtyTwoMiB(t *testing.T) {
	c := newOther(t).dial()
	c.expect([2]string{"SET s " + strings.Repeat("x", 1_000_000), "+OK"}, [2]string{"MULTI", "+OK"})
	const patches = broker.MaxChanged / (1 + 1_000_000/2048)
	for range patches + 1 {
		c.expect([2]string{"SETRANGE s 5 y", "+QUEUED"})
	}
	for i, r := range c.do("EXEC").elements {
		if refused := strings.HasPrefix(r.text, "ERR too many elements"); refused != (i == patches) {
			t.Errorf("patch %d gave %.100s", i+1, r)
		}
	}
	c.expect([2]string{"SETRANGE s 5 y", ":1000000"})
}
