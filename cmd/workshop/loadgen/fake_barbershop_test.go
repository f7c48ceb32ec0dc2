package loadgen

import (
	"bufio"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// fakeBarbershop is a barbershop server without a disk, for the loops to run against.
type fakeBarbershop struct {
	addr string

	mu      sync.Mutex
	scores  map[uint64]uint64 // of the items; under mu
	updates int               // under mu
	taken   int               // items that left; under mu
}

// startFakeBarbershop serves until the test ends.
func startFakeBarbershop(t *testing.T) *fakeBarbershop {
	t.Helper()
	f := &fakeBarbershop{scores: map[uint64]uint64{}}
	f.addr = listenFake(t, f.serve)
	return f
}

func (f *fakeBarbershop) serve(conn net.Conn) {
	defer conn.Close()
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		if _, err := fmt.Fprintf(conn, "%s\r\n", f.answer(strings.Fields(lines.Text()))); err != nil {
			return
		}
	}
}

func (f *fakeBarbershop) answer(words []string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case len(words) == 3 && words[0] == "update":
		item, itemErr := strconv.ParseUint(words[1], 10, 32)
		by, byErr := strconv.ParseUint(words[2], 10, 32)
		if itemErr != nil || byErr != nil {
			return "CLIENT_ERROR expected two numbers"
		}
		f.scores[item] += by
		f.updates++
		return "OK"
	case len(words) == 1 && words[0] == "next":
		return f.nextLocked()
	}
	return "ERROR"
}

func (f *fakeBarbershop) nextLocked() string {
	best, found := uint64(0), false
	for item, score := range f.scores {
		if !found || score > f.scores[best] {
			best, found = item, true
		}
	}
	if !found {
		return "-1"
	}
	delete(f.scores, best)
	f.taken++
	return strconv.FormatUint(best, 10)
}
