package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/cluster/peer"
	"github.com/holdfast-queue/holdfast/storage/cell"
	"github.com/holdfast-queue/holdfast/storage/content"
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

// kept is a store whose last content is of a time.
type kept struct {
	taker
	ms int64
}

func (k kept) Control() content.Control { return content.Control{Time: k.ms} }

func TestATermBeginsWhereAMajorityOfVotersSays(t *testing.T) {
	n := among(t)
	n.found(t)
	now := time.Now()
	at := func(off time.Duration) int64 { return now.Add(off).UnixMilli() }
	for name, off := range map[string]time.Duration{"self": -5 * time.Hour, "b": time.Hour, "c": -time.Hour} {
		n.log = cell.NewLog(cell.Config{Client: n.member.Client(), Node: name})
		about, err := json.Marshal(peer.Node{Clock: at(off)})
		if err := errors.Join(err, n.log.PutNode(t.Context(), about)); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		came       bool
		last, want time.Duration
	}{
		"it saw the last content come, of another clock": {true, 2 * time.Hour, 0},
		"it saw it come, of a clock that is behind":      {true, -2 * time.Hour, 0},
		"it did not, long ago":                           {false, -2 * time.Hour, 0},
		"it did not, and it is of a clock ahead":         {false, 2 * time.Hour, 0},
	} {
		n.arrived = arrival{}
		if c.came {
			n.arrived.note(at(c.last))
		}
		if got := n.began(t.Context(), kept{ms: at(c.last)}); got < at(c.want) || got > at(c.want+10*time.Minute) {
			t.Errorf("%s: it begins %v ahead, want %v", name, time.Duration(got-at(0))*time.Millisecond, c.want)
		}
	}
}

func TestATermOfNodesThatDisagreeGoesOnWhereItWas(t *testing.T) {
	n := among(t)
	n.pair(t)
	now := time.Now()
	at := func(off time.Duration) int64 { return now.Add(off).UnixMilli() }
	about, err := json.Marshal(peer.Node{Clock: at(-time.Hour)})
	if err = errors.Join(err, cell.NewLog(cell.Config{Client: n.member.Client(), Node: "b"}).PutNode(t.Context(), about)); err != nil {
		t.Fatal(err)
	}
	n.arrived.note(at(-2 * time.Hour))
	kept := kept{ms: at(-3 * time.Hour)}
	if got := n.began(t.Context(), kept); got < at(-2*time.Hour) || got > at(-2*time.Hour+10*time.Minute) {
		t.Errorf("behind the last content, which came 2 h ago by its clock, it begins at %v", time.UnixMilli(got))
	}
	n.arrived = arrival{}
	nobody, cancel := context.WithCancel(t.Context())
	cancel() // the other node does not answer
	if got := n.began(nobody, kept); got != kept.ms {
		t.Errorf("without the clock of a majority it begins at %v, want that of the last batch", time.UnixMilli(got))
	}
}

// taking is a store that takes what comes.
type taking struct{ kept }

func (taking) Take(uint64, []byte) error { return nil }

func TestWhatWasInTheLogBeforeHasNotJustCome(t *testing.T) {
	n := &node{}
	n.old.Store(5)
	take := n.take(t.Context(), taking{kept{ms: 5000}})
	if err := take(5, nil); err != nil {
		t.Fatal(err)
	}
	if _, ok := n.arrived.now(); ok {
		t.Error("a batch that is of any time before counts as one that came")
	}
	if err := take(6, nil); err != nil {
		t.Fatal(err)
	}
	if ms, ok := n.arrived.now(); !ok || ms < 5000 {
		t.Errorf("behind a batch that came it is %d, %v", ms, ok)
	}
}

func TestTheNodesOwnPortIsTheNextOne(t *testing.T) {
	for address, want := range map[string]string{"10.0.0.1:7380": "10.0.0.1:7381", "[::1]:1": "[::1]:2", "host:65535": "", "host": "", "host:0": "", "host:x": ""} {
		if got, err := peer.NextPort(address); got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v, want %q", address, got, err, want)
		}
	}
}
