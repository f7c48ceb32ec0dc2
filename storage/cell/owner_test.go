package cell_test

import (
	"maps"
	"testing"
)

func TestNodesSeeWhatEachSaysOfItself(t *testing.T) {
	client, a := alone(t)
	b := newLog(client, "b")
	for i, about := range []string{"one", "two", "three"} {
		if i == 2 { // the lease of the first two is over
			revokeAll(t, client)
		}
		if err := a.PutNode(t.Context(), []byte(about)); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.PutNode(t.Context(), []byte("other")); err != nil {
		t.Fatal(err)
	}
	nodes, err := b.Nodes(t.Context())
	got := make(map[string]string)
	for name, about := range nodes {
		got[name] = string(about)
	}
	if want := map[string]string{"a": "three", "b": "other"}; err != nil || !maps.Equal(got, want) {
		t.Errorf("nodes %q, %v; want %q", got, err, want)
	}
	revokeAll(t, client)
	if nodes, err := b.Nodes(t.Context()); err != nil || len(nodes) > 0 {
		t.Errorf("nodes %v, %v are left when their leases are over", nodes, err)
	}
}
