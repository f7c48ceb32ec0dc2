package redis

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/daemon"
)

// longestWait asks PING over and over while attack runs, and returns the longest wait for a reply.
func longestWait(t *testing.T, addr string, attack func()) (longest time.Duration) {
	t.Helper()
	other := dial(t, addr)
	done := make(chan struct{})
	go func() { // ends with the attack, or the test
		defer close(done)
		attack()
	}()
	for {
		asked := time.Now()
		other.do("+PONG\r\n", "PING")
		longest = max(longest, time.Since(asked))
		select {
		case <-done:
			return longest
		case <-time.After(time.Millisecond):
		}
	}
}

// What a second client waits is logged, not judged: it depends on the machine.
func TestCostlyRequestsHoldNobodyUp(t *testing.T) {
	addr := startHoldfast(t, daemon.Config{})
	c := dial(t, addr)
	name := strings.Repeat("a", 65_000)
	for i := range 40 {
		c.do(number(1), "HSET", fmt.Sprint(name, i), name, "v")
	}
	const sets = 9_999 // the limit of a queue
	for q := range 3 {
		pushes := make([]command, 0, sets)
		for i := range sets {
			pushes = append(pushes, command{"QPUSH", fmt.Sprint("q", q), "x", "TAG", "n", fmt.Sprint(i)})
		}
		go c.write(pushes...) // ends when all is sent, or the test has ended
		for range pushes {
			if reply := c.read(); reply[0] == '-' {
				t.Fatal(reply)
			}
		}
	}
	filter := []string{}
	for i := range 64 {
		filter = append(filter, "FILTER", "n", "ne", fmt.Sprint("x", i))
	}
	filter = append(filter, "MATCH", "ANY", "64", "FILTER", "n", "eq", "x")
	filter = append(filter[4:len(filter)-7], "FILTER", "n", "eq", "x", "MATCH", "ALL") // all but the last match
	literal := "*" + strings.Repeat("a", 1000) + "b"
	costly := "*" + strings.Repeat("[ab]", 250) + "[c]*"
	listener := dial(t, addr)
	listener.write(command{"PSUBSCRIBE", literal, costly})
	for what, request := range map[string]command{
		"KEYS of letters":        {"KEYS", literal},
		"KEYS of classes":        {"KEYS", costly},
		"SCAN":                   {"SCAN", "0", "COUNT", "1000", "MATCH", costly},
		"HSCAN":                  {"HSCAN", name + "0", "0", "MATCH", costly},
		"PUBLISH":                {"PUBLISH", name, "x"},
		"QPOP with 64 filters":   append(command{"QPOP", "q0", "OR", "q1", "OR", "q2"}, filter...),
		"QCLAIM with 64 filters": append(command{"QCLAIM", "q0", "OR", "q1", "OR", "q2"}, filter...),
	} {
		wait := longestWait(t, addr, func() {
			c.write(request, request, request, request, request)
			for range 5 {
				c.read()
			}
		})
		t.Logf("%-24s another waits %v at most", what, wait.Round(time.Microsecond))
	}
}

func TestUnfinishedRequestsTakeBoundedMemory(t *testing.T) {
	const bound, clients = 64 << 20, 200
	addr := startHoldfast(t, daemon.Config{MaxBuffers: bound})
	honest := dial(t, addr)
	part := "*4\r\n$3\r\nSET\r\n$1\r\nk\r\n$1048576\r\n" + strings.Repeat("x", 1<<20) + "\r\n$1048576\r\n" + strings.Repeat("x", 1<<20-2)
	conns := make([]*conn, clients)
	wait := longestWait(t, addr, func() {
		for i := range conns {
			conns[i] = dial(t, addr)
			_, _ = io.WriteString(conns[i].socket, part) // it may be closed at once
		}
	})
	// Long requests are read one after the other: the last may still be on its way.
	const largest = bound / (2<<20 - 64<<10) // buffers of 2 MiB, which the requests announce
	refused, over := 0, time.Now().Add(time.Minute)
	for waiting := conns; clients-refused > largest && time.Now().Before(over); {
		waiting = slices.DeleteFunc(waiting, func(c *conn) bool {
			c.socket.limit = 10 * time.Millisecond
			reply, err := c.next()
			if err == nil && reply != "-ERR the server keeps too much for this connection\r\n" {
				t.Fatalf("half a request is answered %q", reply)
			}
			if err == nil {
				refused++
			}
			return err == nil || !errors.Is(err, os.ErrDeadlineExceeded)
		})
	}
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	t.Logf("%d of %d refused, %d MiB in use, another waits %v at most", refused, clients, m.HeapAlloc>>20, wait.Round(time.Microsecond))
	if clients-refused > largest {
		t.Errorf("%d of %d clients hold a buffer of 2 MiB, want %d at most", clients-refused, clients, largest)
	}
	honest.do("+OK\r\n", "SET", "k", strings.Repeat("x", 1_000_000))
}
