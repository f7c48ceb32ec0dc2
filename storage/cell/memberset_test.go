package cell

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// joins adds a node by one that runs.
func joins(t *testing.T, by *Member, c MemberConfig) *Member {
	t.Helper()
	initial, err := by.Add(t.Context(), c.Node, c.Nodes[c.Node])
	if err != nil {
		t.Fatal(err)
	}
	m := run(t)(Join(t.Context(), c, initial))
	for members(t, by)[c.Node].Name == "" { // etcd tells the name a moment later
		time.Sleep(pause)
	}
	return m
}

// votes adds a node that has a vote.
func votes(t *testing.T, by *Member, c MemberConfig) *Member {
	t.Helper()
	m := joins(t, by, c)
	if err := by.Promote(t.Context(), c.Node); err != nil {
		t.Fatal(err)
	}
	return m
}

// members are the nodes of a cell by name.
func members(t *testing.T, m *Member) map[string]Peer {
	t.Helper()
	s, err := NewLog(Config{Client: m.Client()}).Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	named := make(map[string]Peer)
	for _, p := range s.Members {
		named[p.Name] = p
	}
	return named
}

func TestNodesJoinWhileWritesGoOnAndAWipedOneAsAnotherMember(t *testing.T) {
	t.Parallel()
	a, b, c := trio(t)
	ma := founded(t, a)
	ctx, stop := context.WithCancel(t.Context())
	written := make(chan int64)
	go func() {
		n := int64(0)
		for ctx.Err() == nil {
			if _, err := ma.Client().Put(ctx, fmt.Sprint("w/", n), "x"); err == nil {
				n++
			}
		}
		written <- n
	}()
	mb, mc := votes(t, ma, b), votes(t, ma, c)
	if !ma.Votes() {
		t.Error("who founded has no vote")
	}
	if name := mc.Leader(); name != "a" {
		t.Errorf("leader of c: %q", name)
	}
	old := members(t, mb)
	if len(old) != 3 || old["b"].Learner || old["c"].Learner || old["c"].Address != c.Nodes["c"] {
		t.Errorf("members: %v", old)
	}

	putKey(t, mb, "floor/b")
	mb.Close()
	if err := os.RemoveAll(b.Dir); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(t.Context(), b); err == nil {
		t.Error("a wiped node starts")
	}
	if _, err := ma.Add(t.Context(), "b", b.Nodes["b"]); err == nil || !strings.Contains(err.Error(), "has a vote") {
		t.Errorf("a node is added in the place of one that has a vote: %v", err)
	}
	if err := ma.Remove(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	mb = joins(t, ma, b)
	if mb.Votes() {
		t.Error("a learner takes itself for a voter")
	}
	if err := ma.Promote(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	for !mb.Votes() {
		putKey(t, mb, "k")
	}
	stop()
	if n := <-written; n == 0 || countKeys(t, mb, "w/") < n || countKeys(t, mb, "floor/") != 0 {
		t.Errorf("%d written, %d are there, and %d floors", n, countKeys(t, mb, "w/"), countKeys(t, mb, "floor/"))
	}
	now := members(t, mb)
	if len(now) != 3 || now["b"].ID == old["b"].ID || now["b"].Learner {
		t.Errorf("members: %v, were %v", now, old)
	}
}

func TestANodeThatWasAddedAndNeverStartedIsAddedAgain(t *testing.T) {
	t.Parallel()
	a, b, _ := trio(t)
	m := founded(t, a)
	if _, err := m.Add(t.Context(), "b", b.Nodes["b"]); err != nil {
		t.Fatal(err)
	}
	cutOff := filepath.Join(b.Dir, "member", "snap")
	if err := errors.Join(os.MkdirAll(cutOff, 0o700), os.WriteFile(filepath.Join(cutOff, "db"), []byte("x"), 0o600)); err != nil {
		t.Fatal(err)
	}
	joins(t, m, b)
	if all := members(t, m); len(all) != 2 || all["b"].ID == 0 {
		t.Errorf("members: %v", all)
	}
	if _, err := m.Add(t.Context(), "a", a.Nodes["a"]); err == nil || !strings.Contains(err.Error(), "itself") {
		t.Errorf("a node adds itself: %v", err)
	}
}

func TestARemovedNodeEndsAndDoesNotStartAgain(t *testing.T) {
	t.Parallel()
	a, b, _ := trio(t)
	ma := founded(t, a)
	mb := joins(t, ma, b)
	putKey(t, mb, "floor/b")
	if err := ma.Remove(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	if n := countKeys(t, ma, "floor/"); n != 0 {
		t.Errorf("%d floors are left", n)
	}
	<-mb.Done()
	if err := mb.Err(); !errors.Is(err, ErrRemoved) {
		t.Errorf("removed member says %v", err)
	}
	mb.Close()
	if _, err := Start(t.Context(), b); !errors.Is(err, ErrRemoved) {
		t.Errorf("removed member starts: %v", err)
	}
	if err := ma.Remove(t.Context(), "b"); err == nil {
		t.Error("removed twice")
	}
}

func TestTheLeaderIsRemovedWithAllThatIsKnownOfIt(t *testing.T) {
	t.Parallel()
	a, b, c := trio(t)
	ma := founded(t, a)
	all := map[string]*Member{"a": ma, "b": votes(t, ma, b), "c": votes(t, ma, c)}
	leader := ma.Leader()
	leads := all[leader]
	delete(all, leader)
	for _, by := range all {
		putKey(t, by, "floor/"+leader)
		if err := by.Remove(t.Context(), leader); err != nil {
			t.Fatal(err)
		}
		<-leads.Done()
		if n := countKeys(t, by, "floor/"); n != 0 {
			t.Errorf("%d floors are left", n)
		}
		break
	}
}

// dropping is the cluster of an etcd whose raft drops the first change in silence.
type dropping struct {
	clientv3.Cluster
	dropped bool
}

func (d *dropping) drops(ctx context.Context) error {
	if d.dropped {
		return nil
	}
	d.dropped = true
	<-ctx.Done()
	return rpctypes.ErrTimeout
}

func (d *dropping) MemberUpdate(ctx context.Context, id uint64, urls []string) (*clientv3.MemberUpdateResponse, error) {
	if err := d.drops(ctx); err != nil {
		return nil, err
	}
	return d.Cluster.MemberUpdate(ctx, id, urls)
}

func (d *dropping) MemberAddAsLearner(ctx context.Context, urls []string) (*clientv3.MemberAddResponse, error) {
	if err := d.drops(ctx); err != nil {
		return nil, err
	}
	return d.Cluster.MemberAddAsLearner(ctx, urls)
}

func (d *dropping) MemberRemove(ctx context.Context, id uint64) (*clientv3.MemberRemoveResponse, error) {
	if err := d.drops(ctx); err != nil {
		return nil, err
	}
	return d.Cluster.MemberRemove(ctx, id)
}

func TestAChangeOfMembersThatRaftDropsIsMadeAgain(t *testing.T) {
	t.Parallel()
	a, b, _ := trio(t)
	m := founded(t, a)
	etcd, moved := m.client.Cluster, freeAddress(t)
	m.config.Nodes = map[string]string{"a": moved}
	for what, change := range map[string]func() error{
		"update": func() error { return m.moved(t.Context()) },
		"add": func() error {
			_, err := m.Add(t.Context(), "b", b.Nodes["b"])
			return err
		},
	} {
		m.client.Cluster = &dropping{Cluster: etcd}
		if err := change(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, peer := range members(t, m) {
		if want := map[string]string{"a": moved, b.Nodes["b"]: b.Nodes["b"]}[peer.Name]; peer.Address != want {
			t.Errorf("node %q is at %s, want %s", peer.Name, peer.Address, want)
		}
	}
	m.client.Cluster = &dropping{Cluster: etcd}
	if err := m.change(t.Context(), "b", b.Nodes["b"], m.drop); err != nil {
		t.Errorf("remove: %v", err)
	}
	if all := members(t, m); len(all) != 1 {
		t.Errorf("members: %v", all)
	}
}

// late is the cluster of an etcd whose answers to the first promotion and addition come too late.
// Its leader changes within the first look at the members.
type late struct {
	clientv3.Cluster
	bound  time.Duration // that the try had; 0: none came
	looked bool
}

func (l *late) MemberList(ctx context.Context, opts ...clientv3.OpOption) (*clientv3.MemberListResponse, error) {
	if !l.looked {
		l.looked = true
		return nil, rpctypes.ErrLeaderChanged
	}
	return l.Cluster.MemberList(ctx, opts...)
}

func (l *late) MemberPromote(ctx context.Context, id uint64) (*clientv3.MemberPromoteResponse, error) {
	r, err := l.Cluster.MemberPromote(ctx, id)
	if err == nil {
		deadline, _ := ctx.Deadline()
		l.bound = time.Until(deadline)
		return nil, context.DeadlineExceeded
	}
	return r, err
}

func (l *late) MemberAddAsLearner(ctx context.Context, urls []string) (*clientv3.MemberAddResponse, error) {
	r, err := l.Cluster.MemberAddAsLearner(ctx, urls)
	if err == nil {
		return nil, context.DeadlineExceeded
	}
	return r, err
}

func TestAnAdditionWhoseAnswerCameLateIsDone(t *testing.T) {
	t.Parallel()
	a, b, c := trio(t)
	m := founded(t, a)
	m.client.Cluster = &late{Cluster: m.client.Cluster}
	joins(t, m, b)
	if all := members(t, m); len(all) != 2 || !all["b"].Learner {
		t.Errorf("members: %v", all)
	}
	if _, err := m.Add(t.Context(), "c", a.Nodes["a"]); !errors.Is(err, rpctypes.ErrPeerURLExist) {
		t.Errorf("node %s at the address of a: %v", c.Node, err)
	}
}

func TestAPromotionWhoseAnswerCameLateIsDone(t *testing.T) {
	t.Parallel()
	a, b, _ := trio(t)
	m := founded(t, a)
	joins(t, m, b)
	etcd := &late{Cluster: m.client.Cluster}
	m.client.Cluster, m.config.Election = etcd, 30*time.Second
	if err := m.Promote(t.Context(), "b"); err != nil || members(t, m)["b"].Learner {
		t.Errorf("it has no vote, or is not known to have it: %v", err)
	}
	if etcd.bound < 50*time.Second {
		t.Errorf("a change has %v where an election takes half a minute", etcd.bound)
	}
}

func TestANodeDoesNotMoveToTheAddressOfAnotherOne(t *testing.T) {
	t.Parallel()
	a, b, _ := trio(t)
	m := founded(t, a)
	if _, err := m.Add(t.Context(), "b", b.Nodes["b"]); err != nil {
		t.Fatal(err)
	}
	m.config.Nodes = map[string]string{"a": b.Nodes["b"]}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := m.moved(ctx); ctx.Err() != nil || err == nil || !strings.Contains(err.Error(), "another node of the cell has the address "+b.Nodes["b"]) {
		t.Errorf("it moves, or is not told why not: %v", err)
	}
}

func TestANodeThatNeverStartedIsRemovedByItsAddress(t *testing.T) {
	t.Parallel()
	a, b, _ := trio(t)
	m := founded(t, a)
	if _, err := m.Add(t.Context(), "b", b.Nodes["b"]); err != nil {
		t.Fatal(err)
	}
	if err := m.Remove(t.Context(), b.Nodes["b"]); err != nil {
		t.Error(err)
	}
	if all := members(t, m); len(all) != 1 || all["a"].ID == 0 {
		t.Errorf("members: %v", all)
	}
}

func TestANodeThatWaitsForAnotherOneToJoinAsksEtcdForNothing(t *testing.T) {
	t.Parallel()
	a, b, c := trio(t)
	var log bytes.Buffer
	a.Logger = slog.New(slog.NewTextHandler(&log, nil))
	m := founded(t, a)
	if _, err := m.Add(t.Context(), "b", b.Nodes["b"]); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := m.Add(ctx, "c", c.Nodes["c"]); !errors.Is(err, rpctypes.ErrTooManyLearners) {
		t.Errorf("it does not wait: %v", err)
	}
	m.Close()
	if strings.Contains(log.String(), "learner") {
		t.Errorf("etcd was asked:\n%s", &log)
	}
}
