package cell_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/holdfast-queue/holdfast/storage/cell"
)

// voters is a client's Cluster that has other members than there are.
type voters struct {
	clientv3.Cluster
	members []*etcdserverpb.Member
	then    func() // called before it answers
}

func (v *voters) MemberList(context.Context, ...clientv3.OpOption) (*clientv3.MemberListResponse, error) {
	if v.then != nil {
		v.then()
		v.then = nil
	}
	return &clientv3.MemberListResponse{Members: v.members}, nil
}

func voting(names ...string) (all []*etcdserverpb.Member) {
	for _, name := range names {
		all = append(all, &etcdserverpb.Member{Name: name})
	}
	return all
}

func TestAShortLogIsKeptForAllNodes(t *testing.T) {
	client, log := alone(t)
	client.Cluster = &voters{members: voting("a", "b", "c")}
	term := claim(t, log, 0)
	add(t, term, 1, 10)
	for _, c := range []struct {
		keep int64
		c    string // its floor
		want string
	}{{1 << 30, "", ""}, {1 << 30, "4", "4"}, {1, "4", "7"}} {
		for key, value := range map[string]string{"floor/a": "9", "floor/b": "7", "floor/c": c.c} {
			if value != "" {
				set(t, client, key, value)
			}
		}
		log.Keep = c.keep
		if err := term.Cut(t.Context()); err != nil {
			t.Error(err)
		}
		if got := get(t, client, "cut"); got != c.want {
			t.Errorf("with a floor of c of %q and %d bytes to keep, cut is %q, want %q", c.c, c.keep, got, c.want)
		}
	}
}

func TestTheLogIsCutWhereTheTablesOfAMajorityHaveIt(t *testing.T) {
	client, log := alone(t)
	for name, c := range map[string]struct {
		members []*etcdserverpb.Member
		keys    map[string]string
		want    string
	}{
		"the second of three":         {voting("a", "b", "c"), map[string]string{"floor/a": "9", "floor/b": "4", "floor/c": "7"}, "7"},
		"one of three has a floor":    {voting("a", "b", "c"), map[string]string{"floor/a": "9"}, ""},
		"two of three have one":       {voting("a", "b", "c"), map[string]string{"floor/a": "9", "floor/c": "3"}, "3"},
		"alone":                       {voting("a"), map[string]string{"floor/a": "8"}, "8"},
		"both of two":                 {voting("a", "b"), map[string]string{"floor/a": "8", "floor/b": "5"}, "5"},
		"three of four":               {voting("a", "b", "c", "d"), map[string]string{"floor/a": "8", "floor/b": "5", "floor/c": "6", "floor/d": "2"}, "5"},
		"one that is no member":       {voting("a", "b", "c"), map[string]string{"floor/a": "2", "floor/b": "3", "floor/x": "9"}, "2"},
		"a learner":                   {append(voting("a", "b", "c"), &etcdserverpb.Member{Name: "d", IsLearner: true}), map[string]string{"floor/a": "2", "floor/b": "3", "floor/c": "1"}, "2"},
		"one that never started":      {voting("a", "b", ""), map[string]string{"floor/a": "2", "floor/b": "3"}, "2"},
		"a copy holds it":             {voting("a"), map[string]string{"floor/a": "8", "copy/b": "5", "copy/c": "6"}, "5"},
		"a copy holds what is cut":    {voting("a"), map[string]string{"floor/a": "8", "cut": "3", "copy/b": "2"}, "3"},
		"a removal holds it":          {voting("a"), map[string]string{"floor/a": "8", "copy/-b": "0"}, ""},
		"a floor behind the log":      {voting("a"), map[string]string{"floor/a": "90"}, "10"},
		"a floor before what was cut": {voting("a"), map[string]string{"floor/a": "2", "cut": "4"}, "4"},
		"a floor that is none":        {voting("a"), map[string]string{"floor/a": "2x"}, ""},
	} {
		client.Cluster = &voters{members: c.members}
		term := claim(t, log, 0)
		add(t, term, 1, 10)
		for key, value := range c.keys {
			set(t, client, key, value)
		}
		if err := term.Cut(t.Context()); (err != nil) != (name == "a floor that is none") {
			t.Errorf("%s: %v", name, err)
		}
		if got := get(t, client, "cut"); got != c.want {
			t.Errorf("%s: cut is %q, want %q", name, got, c.want)
		}
		var cut uint64
		_, _ = fmt.Sscan(c.want, &cut)
		add(t, term, 11, 11)
		if got := follow(t, log, cut, 11-int(cut)); !slices.Equal(got, added(cut+1, 11)) {
			t.Errorf("%s: behind the cut are %v", name, got)
		}
		if _, set := c.keys["cut"]; cut > 0 && !set {
			if _, err := followed(t.Context(), log, cut-1, 1); !errors.Is(err, cell.ErrCut) {
				t.Errorf("%s: following before the cut: %v, want ErrCut", name, err)
			}
			if first := get(t, client, fmt.Sprintf("j/%016x/0000", cut)); first != "" {
				t.Errorf("%s: batch %d is still there", name, cut)
			}
		}
		empty(t, client, term)
	}
}

func TestTheLogIsNotCutByWhatHasChanged(t *testing.T) {
	client, log := alone(t)
	for name, change := range map[string]func(){
		"a floor was taken back":    func() { set(t, client, "floor/b", "0") },
		"a member and its floor go": func() { del(t, client, "floor/b") },
		"a copy begins":             func() { set(t, client, "copy/c", "2") },
		"a copy is whole":           func() { del(t, client, "copy/d") },
		"another claims":            func() { del(t, client, "owner") },
		"another has cut":           func() { set(t, client, "cut", "1") },
		"a node has a first floor":  func() { set(t, client, "floor/c", "1") },
		"a node got its vote": func() {
			_, free, err := log.HoldCut(bounded(t, time.Minute), "c")
			if err != nil {
				t.Fatal(err)
			}
			free()
		},
	} {
		client.Cluster = &voters{members: voting("a", "b", "c"), then: change}
		term := claim(t, log, 0)
		add(t, term, 1, 10)
		for _, key := range []string{"floor/a", "floor/b", "copy/d"} {
			set(t, client, key, "8")
		}
		if err := term.Cut(t.Context()); err == nil {
			t.Errorf("%s: cut at %s", name, get(t, client, "cut"))
		}
		if first := get(t, client, "j/0000000000000001/0000"); first == "" {
			t.Errorf("%s: batch 1 is gone", name)
		}
		empty(t, client, term)
	}
}

func TestACutThatWaitsForTheNextTimeIsNoTrouble(t *testing.T) {
	client, _ := alone(t)
	var told bytes.Buffer
	log := cell.NewLog(cell.Config{Client: client, Node: "a", Lease: 10 * time.Second, Logger: slog.New(slog.NewTextHandler(&told, nil))})
	held := false
	client.Cluster = &voters{members: voting("a"), then: func() { // a node gets its vote meanwhile
		_, free, err := log.HoldCut(bounded(t, time.Minute), "b")
		if held = err == nil; held {
			free()
		}
	}}
	term := claim(t, log, 0)
	add(t, term, 1, 10)
	set(t, client, "floor/a", "8")
	trimmed := make(chan struct{})
	go func() { // ends with the claim
		defer close(trimmed)
		term.Trim()
	}()
	for get(t, client, "cut") != "8" && term.Err() == nil {
		time.Sleep(10 * time.Millisecond)
	}
	if err := term.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-trimmed
	if !held || told.Len() > 0 {
		t.Errorf("held: %v; it tells %s", held, told.String())
	}
}

func TestManyBatchesAreCutAndForgotten(t *testing.T) {
	client, log := alone(t)
	set(t, client, "head", `{"batch":25000}`)
	set(t, client, "j/00000000000061a8/0000", "the last one")
	term := claim(t, log, 0)
	log.Release(24999)
	for get(t, client, "floor/a") == "" {
	}
	before := get(t, client, "cut")
	r, err := client.Get(t.Context(), "cut")
	if err != nil || before != "" {
		t.Fatal(err, before)
	}
	if err := term.Cut(t.Context()); err != nil || get(t, client, "cut") != "24999" {
		t.Errorf("cut is %s, want 24999: %v", get(t, client, "cut"), err)
	}
	if _, err := client.Get(t.Context(), "head", clientv3.WithRev(r.Header.Revision-1)); err == nil {
		t.Error("what was before the cut is still in etcd's history")
	}
	if get(t, client, "j/00000000000061a8/0000") == "" {
		t.Error("a batch behind the cut is gone")
	}
}

func TestEtcdForgetsAlsoWhenNothingCanBeCut(t *testing.T) {
	m := members(t, "a")[0]
	isFull := false
	log := newLog(withKV(t, m, func(r *clientv3.TxnResponse, err error) (*clientv3.TxnResponse, error) {
		if err == nil && isFull && puts(r) > 0 {
			err = rpctypes.ErrNoSpace
		}
		return r, err
	}), "a")
	set(t, m.client, "head", `{"batch":5}`)
	set(t, m.client, "floor/a", "5")
	r, err := m.client.Get(t.Context(), "head")
	if err != nil {
		t.Fatal(err)
	}
	term := claim(t, log, 0)
	isFull = true
	if err := term.Cut(t.Context()); !errors.Is(err, rpctypes.ErrNoSpace) {
		t.Errorf("error %v, want ErrNoSpace", err)
	}
	if _, err := m.client.Get(t.Context(), "head", clientv3.WithRev(r.Header.Revision)); !errors.Is(err, rpctypes.ErrCompacted) {
		t.Errorf("what was is still known: %v", err)
	}
}

func TestTheNewestFloorIsWritten(t *testing.T) {
	m := members(t, "a")[0]
	fails := 3
	log := newLog(withKV(t, m, func(r *clientv3.TxnResponse, err error) (*clientv3.TxnResponse, error) {
		if fails > 0 {
			fails--
			return nil, errDropped
		}
		return r, err
	}), "a")
	set(t, m.client, "floor/a", "3") // from before the node started
	set(t, m.client, "other", "")
	for n := range uint64(20) {
		log.Release(n + 4)
	}
	for got := ""; got != "23"; {
		got = get(t, m.client, "floor/a")
	}
	set(t, m.client, "floor/b", "7")
	if s, err := log.Status(t.Context()); err != nil || !maps.Equal(s.Floors, map[string]uint64{"a": 23, "b": 7}) {
		t.Errorf("the floors are %v, %v", s.Floors, err)
	}
	if err := log.Forget(t.Context()); err != nil || get(t, m.client, "floor/a") != "0" {
		t.Errorf("a floor that was taken back is %s, %v", get(t, m.client, "floor/a"), err)
	}
}

// bounded is a context that ends after a time, and with the test.
func bounded(t *testing.T, most time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), most)
	t.Cleanup(cancel)
	return ctx
}

func TestTheCutIsHeldALittleLongerThanWhatItIsHeldFor(t *testing.T) {
	client, l := alone(t)
	if _, _, err := l.HoldCut(bounded(t, 8*time.Second), "b"); err != nil { // whose node is killed then
		t.Fatal(err)
	}
	all, err := client.Leases(t.Context())
	if err != nil || len(all.Leases) != 1 {
		t.Fatalf("leases %v, %v", all, err)
	}
	lease, err := client.TimeToLive(t.Context(), all.Leases[0].ID)
	if err != nil || lease.GrantedTTL < 10 || lease.GrantedTTL > 11 {
		t.Errorf("it is held for %d s, want 10 or 11: %v", lease.GrantedTTL, err)
	}
}

func TestTheCutIsHeldForOneNodeAtATime(t *testing.T) {
	client, l := alone(t)
	term := claim(t, l, 0)
	add(t, term, 1, 4)
	set(t, client, "floor/a", "2")
	cutTo := func(want string) {
		t.Helper()
		if err := term.Cut(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := get(t, client, "cut"); got != want {
			t.Errorf("the log was cut up to %s, want %s", got, want)
		}
	}
	cutTo("2")
	ctx := bounded(t, time.Minute)
	cut, free, err := l.HoldCut(ctx, "b")
	if cut != 2 || err != nil {
		t.Fatalf("held at %d, %v; want 2", cut, err)
	}
	for limit := time.Second; err == nil || !strings.Contains(err.Error(), "node b"); limit *= 2 { // a busy machine does not get to it at first
		if _, _, err = l.HoldCut(bounded(t, limit), "c"); err == nil || limit > time.Minute {
			t.Fatalf("held twice: %v", err)
		}
	}
	set(t, client, "floor/a", "4")
	cutTo("2")
	waits := make(chan error)
	go func() {
		_, freeC, err := l.HoldCut(ctx, "c")
		if err == nil {
			freeC()
		}
		waits <- err
	}()
	select {
	case err := <-waits:
		t.Errorf("held twice, or it does not wait: %v", err)
	case <-time.After(time.Second):
		free()
		if err := <-waits; err != nil {
			t.Errorf("the other one waits: %v", err)
		}
	}
	cutTo("4")
	if cut, free, err = l.HoldCut(ctx, "d"); cut != 4 || err != nil {
		t.Errorf("held at %d, %v; want 4", cut, err)
	}
	free()
}
