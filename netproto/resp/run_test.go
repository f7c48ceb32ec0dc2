package resp

import (
	"strings"
	"sync/atomic"
	"testing"
)

func TestARunOfRequestsEndsByTheClock(t *testing.T) {
	const requests = 100
	for what, least := range map[string]int64{
		"LINDEX l 0\r\n":  requests / 2, // the clock is looked at behind each
		"PUBLISH c x\r\n": requests / 2, // a pattern is a step
		"ECHO x\r\n":      requests / 64,
	} {
		d := newDoor(t, Config{})
		c, listener := d.dial(), d.dial()
		c.ask("RPUSH l a", ":1\r\n")
		listener.ask("PSUBSCRIBE c*", event("psubscribe", "c*", ":1"))
		var turns atomic.Int64
		count := func() { turns.Add(1) }
		d.disk.turn.Store(&count)
		d.tick.Store(1)
		c.send(strings.Repeat(what, requests) + request("ECHO", "end"))
		for c.readLine() != "end" {
		}
		if n := turns.Load(); n < least {
			t.Errorf("%d requests %q were served in %d turns, want at least %d", requests, what, n, least)
		}
	}
}
