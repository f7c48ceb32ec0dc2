package cell

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"path/filepath"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// freeAddress is one of loopback that nobody listens at. It is below the ports that a system gives
// to those who dial, so that no connection of another test takes it.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", 15000+rand.IntN(15000))
		if l, err := net.Listen("tcp", address); err == nil {
			l.Close()
			return address
		}
	}
	t.Fatal("no free port")
	return ""
}

// trio is the configuration of three nodes, none of which runs.
func trio(t *testing.T) (a, b, c MemberConfig) {
	t.Helper()
	nodes := map[string]string{"a": freeAddress(t), "b": freeAddress(t), "c": freeAddress(t)}
	of := func(node string) MemberConfig {
		return MemberConfig{Dir: filepath.Join(t.TempDir(), "etcd"), Node: node, Nodes: nodes}
	}
	return of("a"), of("b"), of("c")
}

// run closes what was started when the test ends.
func run(t *testing.T) func(m *Member, err error) *Member {
	return func(m *Member, err error) *Member {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(m.Close)
		return m
	}
}

// founded is a cell of one node that runs.
func founded(t *testing.T, c MemberConfig) *Member {
	t.Helper()
	if err := Found(c); err != nil {
		t.Fatal(err)
	}
	return run(t)(Start(t.Context(), c))
}

func putKey(t *testing.T, m *Member, key string) {
	t.Helper()
	if _, err := m.Client().Put(t.Context(), key, "x"); err != nil {
		t.Fatalf("put %s: %v", key, err)
	}
}

func countKeys(t *testing.T, m *Member, prefix string) int64 {
	t.Helper()
	got, err := m.Client().Get(t.Context(), prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		t.Fatal(err)
	}
	return got.Count
}

func TestACellStopsAndStartsWithItsKeysAndId(t *testing.T) {
	t.Parallel()
	a, _, _ := trio(t)
	m := founded(t, a)
	id := m.Cell()
	putKey(t, m, "k")
	m.Close()
	if err := m.Err(); !errors.Is(err, ErrClosed) {
		t.Errorf("closed member says %v", err)
	}
	m = run(t)(Start(t.Context(), a))
	if m.Cell() != id || len(id) < 20 || countKeys(t, m, "k") != 1 {
		t.Errorf("cell %q was %q, %d keys", m.Cell(), id, countKeys(t, m, "k"))
	}
}
