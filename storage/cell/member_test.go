package cell

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// ports is where freeAddress looks next: below the ports that a system gives to those who dial.
var ports atomic.Int32

func init() { ports.Store(10_000 + rand.Int32N(4_000)) }

// freeAddress is one of loopback that nobody listens at. It is below the ports that a system gives
// to those who dial, so that no connection of another test takes it.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range 100 {
		address := fmt.Sprint("127.0.0.1:", ports.Add(1))
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
	if _, err := Found(c, 0); err != nil {
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
	if name := m.Leader(); name != "a" {
		t.Errorf("leader %q", name)
	}
	m.Close()
	if err := m.Err(); !errors.Is(err, context.Canceled) {
		t.Errorf("closed member says %v", err)
	}
	m = run(t)(Start(t.Context(), a))
	if m.Cell() != id || len(id) < 20 || countKeys(t, m, "k") != 1 {
		t.Errorf("cell %q was %q, %d keys", m.Cell(), id, countKeys(t, m, "k"))
	}
}

func TestNobodyElseReadsTheFolder(t *testing.T) {
	t.Parallel()
	a, _, _ := trio(t)
	founded(t, a)
	err := filepath.WalkDir(a.Dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		about, err := e.Info()
		if err == nil && about.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %o", path, about.Mode().Perm())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestACellIsFoundedOnce(t *testing.T) {
	t.Parallel()
	a, _, _ := trio(t)
	if _, err := Start(t.Context(), a); err == nil {
		t.Error("a folder of no cell starts")
	}
	// A founding that was cut off left this.
	if err := os.MkdirAll(filepath.Join(a.Dir+".new", "member", "wal"), 0o700); err != nil {
		t.Fatal(err)
	}
	id, err := Found(a, 7)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Found(a, 7); err == nil {
		t.Error("founded twice")
	}
	if _, err := Join(t.Context(), a, "a=http://"+a.Nodes["a"]); err == nil {
		t.Error("a member joins")
	}

	m := run(t)(Start(t.Context(), a))
	if s, err := NewLog(Config{Client: m.Client(), Node: "a"}).Status(t.Context()); m.Cell() != id || s.Cut != 7 || s.Head != 7 || err != nil {
		t.Errorf("cell %s, %+v, %v: founded was %s behind 7", m.Cell(), s, err, id)
	}
	if _, err := m.Client().Delete(t.Context(), cellKey); err != nil {
		t.Fatal(err)
	}
	m.Close()
	if _, err := Start(t.Context(), a); err == nil || !strings.Contains(err.Error(), "expected an id") {
		t.Errorf("a cell without an id: %v", err)
	}
}

func TestAFolderOfAnotherCellIsRefused(t *testing.T) {
	t.Parallel()
	a, b, _ := trio(t)
	a.Cell = founded(t, b).Cell()
	if _, err := Found(a, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(t.Context(), a); err == nil || !strings.Contains(err.Error(), a.Cell) {
		t.Errorf("got %v, want a refusal that names cell %s", err, a.Cell)
	}
}

func TestAStartWithoutAMajorityWaitsAndEndsWithItsContext(t *testing.T) {
	t.Parallel()
	a, b, _ := trio(t)
	ma := founded(t, a)
	mb := votes(t, ma, b)
	mb.Close()
	ma.Close()
	enough := errors.New("enough")
	ctx, end := context.WithCancelCause(t.Context())
	time.AfterFunc(time.Second, func() { end(enough) })
	if _, err := Start(ctx, a); !errors.Is(err, enough) {
		t.Errorf("got %v, want that of the context", err)
	}
	started := make(chan *Member)
	go func() {
		m, err := Start(t.Context(), a)
		if err != nil {
			t.Error(err)
		}
		started <- m
	}()
	run(t)(Start(t.Context(), b))
	if m := <-started; m != nil {
		m.Close()
	}
}

func TestAnAddressChangesAtAStart(t *testing.T) {
	t.Parallel()
	a, b, c := trio(t)
	ma := founded(t, a)
	joins(t, ma, b).Close()
	b.Nodes = map[string]string{"a": a.Nodes["a"], "b": c.Nodes["c"]}
	mb := run(t)(Start(t.Context(), b))
	if p := members(t, mb)["b"]; p.Address != c.Nodes["c"] {
		t.Errorf("b is at %s, want %s", p.Address, c.Nodes["c"])
	}
	putKey(t, mb, "k")
}
