package resp_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

// longLook is far more elements than a slice of a look takes.
const longLook = 10_000

func TestALongLookIsOfOneMoment(t *testing.T) {
	d := newDoor(t)
	c := dial(t, d.addr())
	c.do(numbers(longLook, "RPUSH", "l")...)
	pairs := []string{"HSET", "h"}
	for i := range longLook {
		pairs = append(pairs, strconv.Itoa(i), "0")
	}
	c.do(pairs...)

	end, ended := make(chan struct{}), make(chan struct{})
	go func() { // ends when end is closed
		defer close(ended)
		w := dial(t, d.addr())
		for i := 0; ; i++ {
			select {
			case <-end:
				return
			default:
			}
			w.do("LMOVE", "l", "l", "LEFT", "RIGHT") // turns the list by one
			w.do("HDEL", "h", strconv.Itoa(i%longLook))
			w.do("HSET", "h", strconv.Itoa(i%longLook), strconv.Itoa(i))
		}
	}()
	want := numbers(longLook)
	for range 20 {
		got := words(c, "LRANGE", "l", "0", "-1")
		if len(got) != longLook {
			t.Fatalf("LRANGE replied %d elements, want %d", len(got), longLook)
		}
		first := slices.Index(got, "0")
		if got = slices.Concat(got[first:], got[:first]); !slices.Equal(got, want) {
			t.Fatal("LRANGE replied elements of several moments")
		}
		if n := len(words(c, "HKEYS", "h")); n != longLook && n != longLook-1 {
			t.Fatalf("HKEYS replied %d fields, want %d, or one less", n, longLook)
		}
	}
	close(end)
	<-ended
}

func TestALookInATransactionIsMadeAtOnce(t *testing.T) {
	d := newDoor(t)
	c := dial(t, d.addr())
	c.do(numbers(longLook, "RPUSH", "l")...)
	c.expect([2]string{"MULTI", "+OK"}, [2]string{"LRANGE l 0 -1", "+QUEUED"}, [2]string{"LPUSH l x", "+QUEUED"}, [2]string{"KEYS *", "+QUEUED"})
	got := c.do("EXEC").String()
	if want := ` :10001 ["l"]]`; !strings.HasPrefix(got, `[["0" "1" `) || !strings.HasSuffix(got, `"9999"]`+want) {
		t.Errorf("EXEC replied %.40s … %s", got, got[max(0, len(got)-40):])
	}
}

func TestALookWithoutAReplyRepliesNothing(t *testing.T) {
	d := newDoor(t)
	c := dial(t, d.addr())
	c.do(numbers(longLook, "RPUSH", "l")...)
	c.send("CLIENT", "REPLY", "SKIP")
	c.send("LRANGE", "l", "0", "-1")
	c.expect([2]string{"LLEN l", ":10000"})
}

// words sends a command and returns the words of its reply, which is an array of bulks.
func words(c *client, args ...string) []string {
	c.t.Helper()
	all := strings.Fields(strings.Trim(c.do(args...).String(), "[]"))
	for i, w := range all {
		all[i] = strings.Trim(w, `"`)
	}
	return all
}
