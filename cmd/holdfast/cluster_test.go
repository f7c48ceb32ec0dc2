package main

import (
	"context"
	"net"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/netproto/admin"
)

// oneOfTwo is a node of a cell whose other node does not answer.
type oneOfTwo struct{ admin.Nodes }

func (oneOfTwo) Status(context.Context) (admin.Cluster, error) {
	return admin.Cluster{
		Cell: "main", ID: "ID", By: "a", Majority: true, Owner: "a", Fence: 7, Leader: "a", Head: 30, Cut: 20,
		Nodes: []admin.Node{
			{Name: "a", Address: "10.0.0.1:7380", Voter: true, Heard: true, Role: "owner", Batch: 29, Lag: 1, LagMS: 1500, Floor: 20, ClockMS: -20, Room: 5 << 30, Version: "1.0"},
			{Name: "b", Address: "10.0.0.2:7380", Floor: 10},
		},
	}, nil
}

func TestTheStatusOfACellIsATable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := admin.NewServer(l, admin.Config{Nodes: oneOfTwo{}})
	go func() { _ = s.Serve() }() // ends with Close
	defer s.Close()
	r := command{}.run(t.Context(), "cluster", "status", "--admin", l.Addr().String())
	want := `NODE  ROLE    LAG  BEHIND  FLOOR  CLOCK  FREE     VERSION  ADDRESS
a     owner   1    1s      20     -20ms  5.0 GiB  1.0      10.0.0.1:7380
b     silent  -    -       10     -      -        -        10.0.0.2:7380
cell main: owner a, log from batch 21 to 30
nodes that may be lost now: 0
`
	if r.code != exitOK || r.stdout != want {
		t.Errorf("%+v, want\n%s", r, want)
	}
	if r = (command{}).run(t.Context(), "cluster", "status", "--admin", l.Addr().String(), "--json"); !strings.Contains(r.stdout, `"cut":20,"spare":0,"clock_ms":0,"nodes":[{"node":"a"`) {
		t.Errorf("%+v", r)
	}
}
