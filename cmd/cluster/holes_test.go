package cluster

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/netproto/admin"
	"github.com/holdfast-queue/holdfast/storage/cell"
)

// holes are what a hand puts at the key of a batch; "" deletes it.
var holes = map[string]string{
	"a key is deleted":       "",
	"a key has other bytes":  "\x01another content",
	"a key is cut too short": "\x01",
}

// hole has a hand change the log's second batch behind one.
func hole(t *testing.T, etcd *cell.Member, behind uint64, value string) {
	t.Helper()
	key := fmt.Sprintf("j/%016x/0000", behind+2)
	r, err := etcd.Client().Delete(t.Context(), key)
	if err != nil || r.Deleted != 1 {
		t.Fatalf("the log has nothing at %s, %v", key, err)
	}
	if value != "" {
		_, err = etcd.Client().Put(t.Context(), key, value)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// batch is what a node has applied, as it said itself.
func (m *machine) batch(c *admin.Cluster) uint64 {
	i := slices.IndexFunc(c.Nodes, func(at admin.Node) bool { return at.Name == m.Node })
	return c.Nodes[i].Batch
}

// haveAll says whether all three nodes follow or own with all that there is.
func haveAll(c *admin.Cluster) bool {
	well := 0
	for _, at := range c.Nodes {
		if (at.Role == follower || at.Role == owning) && at.Batch == c.Head {
			well++
		}
	}
	return well == 3 && c.Owner != ""
}

func TestANodeThatComesToAHoleOfTheLogCopiesFromOneBehindIt(t *testing.T) {
	all := settled(t)
	a, c := all[0], all[2]
	for name, value := range holes {
		had := c.batch(a.await(t, haveAll))
		c.halt(t)
		c.alter(t, func(etcd *cell.Member) error {
			if _, err := etcd.Client().Put(t.Context(), "copy/test", fmt.Sprint(had)); err != nil { // so that it is not cut
				return err
			}
			a.push(t, 10)
			hole(t, etcd, had, value)
			return nil
		})
		c.launch(t)
		a.await(t, haveAll)
		t.Logf("%s: all have all", name)
	}
	if n := a.redis.LLen(t.Context(), "q").Val(); n != int64(10*len(holes)) {
		t.Errorf("%d packets are left", n)
	}
}

// lines is a log that is written and read at once.
type lines struct {
	sync.Mutex
	bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.Lock()
	defer l.Unlock()
	return l.Buffer.Write(b)
}

// await waits until a text was logged.
func (l *lines) await(t *testing.T, text string) {
	t.Helper()
	for begun := time.Now(); time.Since(begun) < patience; time.Sleep(changePause) {
		l.Lock()
		told := l.String()
		l.Unlock()
		if strings.Contains(told, text) {
			return
		}
	}
	t.Fatalf("%q is not told of", text)
}

func TestWhatOnlyADeadOwnerHasBehindAHoleComesBackWithIt(t *testing.T) {
	all := settled(t)
	a, b, c := all[0], all[1], all[2]
	had := a.await(t, haveAll).Head
	b.halt(t)
	c.halt(t)
	b.alter(t, func(eb *cell.Member) error { // b and c decide what a appends, and take nothing of it
		c.alter(t, func(ec *cell.Member) error {
			a.await(t, func(c *admin.Cluster) bool { return c.Owner == "a" && c.Majority })
			a.push(t, 10)
			hole(t, ec, had, holes["a key is deleted"])
			return nil
		})
		return nil
	})
	a.halt(t)
	var log lines
	b.log, c.log = &log, &log
	b.launch(t)
	c.launch(t)
	log.await(t, fmt.Sprintf("no other node that has batch %d", had+2))
	log.await(t, "CLUSTER.md")
	a.launch(t)
	a.await(t, haveAll)
	if n := b.redis.LLen(t.Context(), "q").Val(); n != 10 {
		t.Errorf("%d packets are left", n)
	}
}

func TestACellWithoutItsCutGoesOnAndOneWithoutItsHeadIsFoundedAnew(t *testing.T) {
	all := settled(t)
	a, b, c := all[0], all[1], all[2]
	deletes := func(key string) {
		t.Helper()
		c.halt(t)
		c.alter(t, func(etcd *cell.Member) error {
			r, err := etcd.Client().Delete(t.Context(), key)
			if err == nil && r.Deleted != 1 {
				t.Errorf("%d keys were deleted", r.Deleted)
			}
			return err
		})
	}
	a.push(t, 10)
	deletes("cut")
	a.push(t, 10)
	c.launch(t)
	a.await(t, haveAll)

	var log lines
	b.halt(t)
	b.log = &log
	b.launch(t)
	a.await(t, haveAll)
	deletes("head")
	if err := a.redis.RPush(t.Context(), "q", "x").Err(); err == nil {
		t.Error("a push has no place in the log, and is acknowledged")
	}
	log.await(t, "cannot be claimed\" on=b error=\"no claim: the log is damaged")
	a.halt(t)
	b.halt(t)
	if err := FoundAnew(t.Context(), a.folder, a.Config, quiet); err != nil {
		t.Fatal(err)
	}
	a.launch(t)
	a.await(t, func(c *admin.Cluster) bool { return len(c.Nodes) == 1 && c.Nodes[0].Role == owning })
	if n := a.redis.LLen(t.Context(), "q").Val(); n != 20 {
		t.Errorf("%d packets are left, want 20", n)
	}
}
