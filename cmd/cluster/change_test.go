package cluster

import (
	"cmp"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/netproto/admin"
	"github.com/holdfast-queue/holdfast/storage/cell"
)

func TestANodeIsRemovedOnlyWhereThoseThatStayGoOn(t *testing.T) {
	for name, c := range map[string]struct {
		nodes, remove, want string
		by                  string // a unless given
		minority            bool
	}{
		"one of three":                  {nodes: "VVV", remove: "c"},
		"one of three that is gone":     {nodes: "VVv", remove: "c"},
		"one of two":                    {nodes: "VV", remove: "c", want: "no node"},
		"one of two that is there":      {nodes: "VVv", remove: "b", want: "majority"},
		"a learner":                     {nodes: "VVl", remove: "c"},
		"a learner beside one gone":     {nodes: "VvL", remove: "c", want: "majority"},
		"the owner":                     {nodes: "VVV", remove: "a", want: "owns"},
		"one that is asked":             {nodes: "VVV", remove: "b", by: "b", want: "ask another"},
		"one of whom nobody knows":      {nodes: "VVV", remove: "x", want: "no node"},
		"any of a cell without answers": {nodes: "VVV", remove: "c", minority: true, want: "no majority"},
	} {
		err := removable(&admin.Cluster{Nodes: cellOf(c.nodes), Owner: "a", By: cmp.Or(c.by, "a"), Majority: !c.minority}, c.remove)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestThoseThatStayReachABatchByTheTablesOfAMajorityOfThem(t *testing.T) {
	nodes := cellOf("VVV")
	for i, floor := range []uint64{10, 10, 5} {
		nodes[i].Floor = floor
	}
	for name, want := range map[string]bool{"a": false, "b": false, "c": true} {
		if got := reach(nodes, name, 10); got != want {
			t.Errorf("without %s: %v, want %v", name, got, want)
		}
	}
}

func TestARemovedNodeEndsAndTheOthersGoOnWithoutIt(t *testing.T) {
	all := settled(t)
	all[0].push(t, 10)
	if err := all[0].operator.ChangeCluster(t.Context(), admin.Remove, "a"); !errors.Is(err, admin.ErrRefused) {
		t.Fatalf("the owner is removed: %v", err)
	}
	if err := all[1].operator.ChangeCluster(t.Context(), admin.Remove, "c"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-all[2].ended:
	case <-time.After(patience):
		t.Fatal("the node that was removed runs on")
	}
	if !errors.Is(all[2].err, cell.ErrRemoved) {
		t.Errorf("the node that was removed ends with %v", all[2].err)
	}
	all[2].launch(t)
	if <-all[2].ended; !errors.Is(all[2].err, cell.ErrRemoved) {
		t.Errorf("started again it ends with %v", all[2].err)
	}
	all[1].await(t, func(c *admin.Cluster) bool { return len(c.Nodes) == 2 && c.Majority && c.Owner == "a" })
	all[1].push(t, 10)
	if err := all[0].operator.ChangeCluster(t.Context(), admin.Remove, "b"); err != nil {
		t.Fatalf("the last but one is not removed: %v", err)
	}
	all[0].await(t, func(c *admin.Cluster) bool { return len(c.Nodes) == 1 && c.Majority && c.Owner == "a" })
	if n := all[0].redis.LLen(t.Context(), "q").Val(); n != 20 {
		t.Errorf("%d packets are left, want 20", n)
	}
}
