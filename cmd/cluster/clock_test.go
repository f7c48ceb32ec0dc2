package cluster

import (
	"testing"
	"time"
)

func TestTheClockOfATermMovesTowardsTheMachinesByAHundredthOfWhatPasses(t *testing.T) {
	for name, off := range map[string]time.Duration{"an hour behind": -time.Hour, "an hour ahead": time.Hour, "right": 0} {
		c := newClock(time.Now().Add(off).UnixMilli())
		begun := c.says
		c.at = c.at.Add(-100 * time.Second) // so much passes at once
		passed := time.Duration(c.now()*int64(time.Millisecond) - begun).Round(100 * time.Millisecond)
		want := 100 * time.Second
		switch {
		case off < 0:
			want += time.Second
		case off > 0:
			want -= time.Second
		default:
			want -= time.Second // it began at the machine's, and that is 100 s behind now
		}
		if passed != want {
			t.Errorf("%s: in 100 s it goes on by %v, want %v", name, passed, want)
		}
	}
}

func TestTheClockOfATermNeverRunsBack(t *testing.T) {
	c := newClock(time.Now().Add(time.Hour).UnixMilli())
	until := time.Now().Add(time.Hour + 20*time.Millisecond).UnixNano()
	for last := int64(0); c.says < until; {
		now := c.now()
		if now < last {
			t.Fatalf("%d comes behind %d", now, last)
		}
		last = now
	}
}

func TestAnArrivalTellsTheTimeSinceTheLastContent(t *testing.T) {
	var a arrival
	if _, ok := a.now(); ok {
		t.Error("a node that saw nothing come knows when")
	}
	a.note(5000)
	a.at = a.at.Add(-time.Minute)
	if ms, ok := a.now(); !ok || ms < 65000 || ms > 66000 {
		t.Errorf("a minute behind 5 s it is %d, %v", ms, ok)
	}
}

func TestTheNodesOwnPortIsTheNextOne(t *testing.T) {
	for address, want := range map[string]string{"10.0.0.1:7380": "10.0.0.1:7381", "[::1]:1": "[::1]:2", "host:65535": "", "host": "", "host:0": "", "host:x": ""} {
		if got, err := nextPort(address); got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v, want %q", address, got, err, want)
		}
	}
}
