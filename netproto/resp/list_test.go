package resp

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/broker"
)

// fill pushes n elements to the right end of a list, 0 to n-1.
func fill(c *conn, name string, n int) {
	c.t.Helper()
	args := []string{"RPUSH", name}
	for i := range n {
		if args = append(args, strconv.Itoa(i)); len(args) == 2000 || i == n-1 {
			if r := c.do(args...); r.String() != fmt.Sprint(":", i+1) {
				c.t.Fatalf("RPUSH: %s, want %d", r, i+1)
			}
			args = args[:2]
		}
	}
}

func TestAPopTakesNoMoreThanItsLimit(t *testing.T) {
	c := newOther(t).dial()
	const n = broker.MaxChanged + 5000
	fill(c, "k", n)
	list := c.do("LPOP", "k", strconv.Itoa(n)).elements
	if len(list) != broker.MaxChanged || list[0].text != "0" || list[broker.MaxChanged-1].text != strconv.Itoa(broker.MaxChanged-1) {
		t.Fatalf("LPOP of %d elements: %d of them, want the first %d", n, len(list), broker.MaxChanged)
	}
	r := c.do("LMPOP", "1", "k", "RIGHT", "COUNT", strconv.Itoa(n))
	if got := r.elements[1].elements; len(got) != n-broker.MaxChanged || got[0].text != strconv.Itoa(n-1) {
		t.Fatalf("LMPOP of the rest: %d elements, want %d", len(got), n-broker.MaxChanged)
	}
	if r := c.do("EXISTS", "k"); r.text != "0" {
		t.Errorf("EXISTS of what was emptied: %s", r)
	}
}

func TestPacketsOfOtherProtocolsAreElements(t *testing.T) {
	d := newOther(t)
	c := d.dial()
	push := func(priority uint32, key, payload string) {
		t.Helper()
		d.do(func(tx *broker.Tx) error {
			r := broker.PushRequest{Queue: []byte("q"), Priority: priority, Payload: []byte(payload)}
			if key != "" {
				r.Key = []byte(key)
			}
			return tx.Atomic(func() error { return pushError(tx.Push(r)) })
		})
	}
	push(200, "", "last")
	push(1, "key", "best")
	push(1, "", "better")
	push(0, "", "never")
	c.do("LPUSH", "q", "middle", "best")
	for _, step := range []struct{ command, want string }{
		{"TYPE q", "+list"},
		{"LLEN q", ":5"},
		{"LRANGE q 0 -1", `["better" "best" "best" "middle" "last"]`},
		{"LINDEX q 1", `"best"`},
		{"LPOS q best COUNT 0", "[:2]"}, // not the one with a key
		{"LREM q 0 best", ":1"},
		{"LRANGE q 0 -1", `["better" "best" "middle" "last"]`},
		{"LINSERT q AFTER middle behind", ":5"},
		{"LRANGE q 0 -1", `["better" "best" "middle" "behind" "last"]`},
		{"RPOP q", `"best"`}, // the oldest of the best priority
		{"RPOPLPUSH q other", `"better"`},
		{"LRANGE other 0 -1", `["better"]`},
		{"LPOP q 9", `["middle" "behind" "last"]`},
		{"LLEN q", ":0"},
		{"EXISTS q", ":1"}, // it holds a packet that no pop selects
		{"SET q v XX", "+OK"},
		{"GET q", `"v"`},
	} {
		if got := c.do(strings.Fields(step.command)...).String(); got != step.want {
			t.Errorf("%s: %s, want %s", step.command, got, step.want)
		}
	}
}

// A trim of many elements goes on in the next turns; a transaction has one turn.
func TestATrimOfManyElements(t *testing.T) {
	d := newOther(t)
	c := d.dial()
	c.do(numbers(10_000, "RPUSH", "l")...)
	c.expect([2]string{"LTRIM l 3000 8999", "+OK"}, [2]string{"LLEN l", ":6000"}, [2]string{"LINDEX l 0", `"3000"`}, [2]string{"LINDEX l -1", `"8999"`})
	for range 3 {
		c.do(numbers(10_000, "RPUSH", "l")...)
	}
	c.expect([2]string{"MULTI", "+OK"}, [2]string{"LTRIM l 0 9999", "+QUEUED"}, [2]string{"LTRIM l 10000 -1", "+QUEUED"})
	if got := c.do("EXEC").String(); !strings.Contains(got, "too many elements") || !strings.HasSuffix(got, " +OK]") {
		t.Errorf("EXEC replied %s, want a refusal and +OK", got)
	}
	c.expect([2]string{"LLEN l", ":26000"}, [2]string{"LTRIM l 1 0", "+OK"}, [2]string{"EXISTS l", ":0"})
	c.expect([2]string{"SET s v", "+OK"})
	if got := c.do("LTRIM", "s", "0", "1").String(); !strings.Contains(got, "WRONGTYPE") {
		t.Errorf("LTRIM of a string replied %s", got)
	}
}
