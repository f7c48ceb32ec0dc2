package cluster

import (
	"log/slog"
	"net"
	"slices"
	"strconv"
	"testing"

	"github.com/holdfast-queue/holdfast/cmd/cluster/peer"
)

// among is a node that other nodes say something to.
func among(t *testing.T, others ...peer.Node) *node {
	t.Helper()
	n := &node{Config: Config{Node: "self", Nodes: map[string]string{"self": "127.0.0.1:1"}}, client: peer.NewClient(nil), logger: slog.New(slog.DiscardHandler), folder: t.TempDir()}
	for _, a := range others {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s := peer.New(peer.Config{Logger: n.logger, Node: func() peer.Node { return a }})
		go func() { _ = s.Serve(l) }() // ends with Close
		t.Cleanup(s.Close)
		port := l.Addr().(*net.TCPAddr).Port
		n.Nodes[a.Name] = net.JoinHostPort("127.0.0.1", strconv.Itoa(port-1))
	}
	return n
}

func TestACopyIsOfTheNodeWithMostInItsTablesAndLastOfTheOwner(t *testing.T) {
	n := among(t, peer.Node{Cell: "x", Name: "o", Role: owning, Floor: 9},
		peer.Node{Cell: "x", Name: "few", Role: follower, Floor: 3}, peer.Node{Cell: "x", Name: "most", Role: learner, Floor: 7},
		peer.Node{Cell: "x", Name: "new", Role: joining}, peer.Node{Cell: "x", Name: "open", Role: starting, Floor: 8},
		peer.Node{Cell: "y", Name: "other", Role: follower, Floor: 8})
	n.Nodes["gone"] = "127.0.0.1:1"
	var names []string
	for _, a := range n.sources(t.Context(), "x") {
		names = append(names, a.Name)
	}
	if want := []string{"most", "few", "o"}; !slices.Equal(names, want) {
		t.Errorf("the sources are %v, want %v", names, want)
	}
}
