package cluster

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/cluster/peer"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/cell"
)

func TestPushesNeedRoomOnAMajorityAndInTheLog(t *testing.T) {
	const mib = 1 << 20
	roomy := func(floor uint64) peer.Node { return peer.Node{Floor: floor, Room: 357 * mib, Database: 50 * mib} }
	full := func(floor uint64) peer.Node { return peer.Node{Floor: floor, Room: 356 * mib, Database: 50 * mib} }
	three := []cell.Peer{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	waits := room{wait: pushWait}
	for name, c := range map[string]struct {
		used    float64
		members []cell.Peer
		about   map[string]peer.Node
		want    room
		lag     []string
	}{
		"all have room":        {0, three, map[string]peer.Node{"a": roomy(9), "b": roomy(9), "c": roomy(9)}, room{}, []string{"a", "b"}},
		"two have room":        {0, three, map[string]peer.Node{"a": full(9), "b": roomy(8), "c": roomy(7)}, room{}, []string{"c", "b"}},
		"one has room":         {0, three, map[string]peer.Node{"a": full(9), "b": roomy(8), "c": full(7)}, room{level: storage.NoPush}, []string{"c", "b"}},
		"one says nothing":     {0, three, map[string]peer.Node{"a": roomy(9), "b": roomy(8)}, room{}, []string{"c", "b"}},
		"two say nothing":      {0, three, map[string]peer.Node{"a": roomy(9)}, room{level: storage.NoPush}, []string{"b", "c"}},
		"alone":                {0, three[:1], map[string]peer.Node{"a": roomy(9)}, room{}, []string{"a"}},
		"one of two":           {0, three[:2], map[string]peer.Node{"a": roomy(9), "b": full(1)}, room{level: storage.NoPush}, []string{"b"}},
		"a learner has none":   {0, []cell.Peer{{Name: "a"}, {Name: "b", Learner: true}}, map[string]peer.Node{"a": roomy(9)}, room{}, []string{"b"}},
		"a fourth of the log":  {0.25, three, map[string]peer.Node{"a": roomy(9), "b": roomy(8), "c": roomy(7)}, room{}, []string{"c", "b"}},
		"more than a fourth":   {0.26, three, map[string]peer.Node{"a": roomy(9), "b": roomy(1), "c": roomy(2)}, waits, []string{"b", "c"}},
		"half of it":           {0.5, three, map[string]peer.Node{"a": roomy(9), "b": roomy(1), "c": roomy(2)}, waits, []string{"b", "c"}},
		"more than half of it": {0.51, three, map[string]peer.Node{"a": roomy(9), "b": roomy(1), "c": roomy(2)}, room{storage.Stop, pushWait}, []string{"b", "c"}},
		"much, and no room":    {0.26, three, nil, room{storage.NoPush, pushWait}, []string{"a", "b"}},
	} {
		r, lag := roomOf(c.used, c.members, c.about)
		if r != c.want || !slices.Equal(lag, c.lag) {
			t.Errorf("%s: %+v, and %v lag; want %+v, %v", name, r, lag, c.want, c.lag)
		}
	}
}

func TestANodeWithoutAVoteHoldsTheLogNoMoreWherePushesWait(t *testing.T) {
	n := among(t)
	n.found(t)
	for _, name := range []string{"l", "v"} {
		if err := cell.NewLog(cell.Config{Client: n.member.Client(), Node: name}).Hold(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
	}
	for _, isLate := range []bool{false, true} {
		n.letGo(t.Context(), []cell.Peer{{Name: "l", Learner: true}, {Name: "v"}}, isLate)
		if n.isHeldBy(t, "l") || n.isHeldBy(t, "v") == isLate {
			t.Errorf("late: %v; held by one without a vote: %v, by a voter: %v", isLate, n.isHeldBy(t, "l"), n.isHeldBy(t, "v"))
		}
	}
}

func TestAVoterHoldsTheLogUntilPushesHaveWaitedOrItIsLong(t *testing.T) {
	for _, c := range []struct {
		used   float64
		waited time.Duration
		want   bool
	}{{0.26, 0, false}, {0.4, holdTime, false}, {0.41, 0, true}, {0.26, holdTime + 1, true}} {
		if got := isLate(c.used, c.waited); got != c.want {
			t.Errorf("with %v of the quota, and pushes that waited for %v, it is late: %v", c.used, c.waited, got)
		}
	}
}

func TestAnOwnerAppendsSlowlyWhileANodeCatchesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &node{}
		content := [][]byte{make([]byte, pacedRate), make([]byte, pacedRate)}
		for _, c := range []struct {
			catchUp bool
			took    time.Duration // of etcd
			ends    time.Duration // of the term
			want    time.Duration
		}{{false, 0, time.Hour, 0}, {true, 0, time.Hour, 2 * time.Second}, {true, time.Second, time.Hour, 2 * time.Second}, {true, 3 * time.Second, time.Hour, 3 * time.Second}, {true, 0, time.Second, time.Second}} {
			n.catchUp.Store(c.catchUp)
			term, end := context.WithTimeout(t.Context(), c.ends)
			begun := time.Now()
			err := n.paced(t.Context(), func(uint64, [][]byte) error { time.Sleep(c.took); return nil }, term.Done())(1, content)
			if got := time.Since(begun); got != c.want || err != nil {
				t.Errorf("%+v: it took %v, %v", c, got, err)
			}
			end()
		}
	})
}
