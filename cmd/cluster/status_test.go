package cluster

import (
	"testing"

	"github.com/holdfast-queue/holdfast/netproto/admin"
)

// cellOf has a node for each letter: a voter (V), one that is not heard of (v), a learner (L, l).
func cellOf(letters string) (nodes []admin.Node) {
	for i, c := range letters {
		nodes = append(nodes, admin.Node{Name: string(rune('a' + i)), Voter: c == 'V' || c == 'v', Heard: c == 'V' || c == 'L', Role: follower})
	}
	return nodes
}

func TestHowManyNodesMayBeLostIsWhatAMajorityDoesNotNeed(t *testing.T) {
	for letters, want := range map[string]int{"V": 0, "VV": 0, "VVV": 1, "VVv": 0, "Vvv": 0, "VVL": 0, "VVVL": 1, "VVVVV": 2, "VVVVv": 1, "VVVV": 1} {
		if got := max(0, spare(cellOf(letters), isHeard)); got != want {
			t.Errorf("of %s %d may be lost, want %d", letters, got, want)
		}
	}
}

func TestANodeThatStartsOrLagsIsNoneThatMayStay(t *testing.T) {
	limit := maxBehind.Milliseconds()
	for _, c := range []struct {
		heard  bool
		role   string
		behind int64
		lag    uint64
		want   int
	}{
		{true, follower, limit, farBehind, 1}, {true, owning, 0, 0, 1}, {true, follower, limit + 1, 1, 0}, {true, follower, 0, farBehind + 1, 0},
		{true, starting, 0, 0, 0}, {false, follower, 0, 0, 0},
	} {
		owner := admin.Node{Voter: true, Heard: true, Role: owning}
		if got := spare([]admin.Node{owner, owner, {Voter: true, Heard: c.heard, Role: c.role, LagMS: c.behind, Lag: c.lag}}, hasQueues); got != c.want {
			t.Errorf("beside one with %+v %d may be lost", c, got)
		}
	}
}

func TestAnyNodeTellsHowAllAre(t *testing.T) {
	all := settled(t)
	all[1].push(t, 10)
	c := all[2].await(t, func(c *admin.Cluster) bool { return c.Nodes[0].Lag+c.Nodes[1].Lag+c.Nodes[2].Lag == 0 })
	if c.By != "c" || c.Owner != "a" || c.Fence == 0 || len(c.ID) < 20 || c.Leader == "" || c.Head < 10 || c.Spare != 1 || !c.Majority {
		t.Errorf("the cell is %+v", c)
	}
	for _, at := range c.Nodes {
		if !at.Voter || !at.Heard || at.Batch < c.Head || at.Epoch == 0 || at.Room == 0 || at.ClockMS > 1000 || at.ClockMS < -1000 {
			t.Errorf("node %s is %+v", at.Name, at)
		}
	}
	all[1].halt(t)
	c = all[2].await(t, func(c *admin.Cluster) bool { return c.Majority && !c.Nodes[1].Heard })
	if c.Spare != 0 || c.Nodes[1].Batch != 0 {
		t.Errorf("without b the cell is %+v", c)
	}
	all[0].halt(t)
	c = all[2].await(t, func(c *admin.Cluster) bool { return !c.Majority })
	if c.Spare != 0 || len(c.Nodes) != 3 || c.Nodes[0].Heard || !c.Nodes[2].Heard {
		t.Errorf("alone c says %+v", c)
	}
}
