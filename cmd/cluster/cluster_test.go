package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-queue/holdfast/cmd/cluster/peer"
	"github.com/holdfast-queue/holdfast/cmd/daemon"
	"github.com/holdfast-queue/holdfast/netproto/admin"
	"github.com/holdfast-queue/holdfast/storage/cell"
)

func TestANodeThatWaitsForAMajorityEndsWell(t *testing.T) {
	n := among(t)
	b := n.pair(t)
	n.member.Close()
	b.Close()
	m := &machine{Config: Config{Node: n.Node, Nodes: map[string]string{n.Node: n.Nodes[n.Node]}}, folder: n.folder}
	m.operator = &admin.Client{Address: freeAddress(t), Timeout: patience}
	m.redis = redis.NewClient(&redis.Options{Addr: freeAddress(t), MaxRetries: -1})
	defer m.redis.Close()
	m.launch(t)
	for begun := time.Now(); ; time.Sleep(changePause) { // its etcd serves others, and has no leader
		if r, err := http.Get("http://" + n.Nodes[n.Node] + "/version"); err == nil {
			_ = r.Body.Close()
			break
		}
		if time.Since(begun) > patience {
			t.Fatal("its etcd does not serve")
		}
	}
	m.halt(t)
}

func TestANodeEndsThoughEtcdKeepsACallForEver(t *testing.T) {
	n := among(t)
	n.found(t)
	var work sync.WaitGroup
	kept := make(chan struct{})
	work.Go(func() { <-kept })
	defer close(kept)
	awaited := make(chan struct{})
	go func() { // ends with the member
		defer close(awaited)
		n.await(&work)
	}()
	select {
	case <-awaited:
		t.Error("it waits for no work while etcd runs")
	case <-time.After(endTime + time.Second):
	}
	n.member.Close()
	select {
	case <-awaited:
	case <-time.After(patience):
		t.Error("it waits for ever")
	}
}

func TestANodeThatJoinsTellsEachReasonWhyItWaitsOnce(t *testing.T) {
	n := among(t)
	ctx, end := context.WithCancel(t.Context())
	var asked atomic.Int64
	n.neighbour(t, "b", peer.Config{Join: func(context.Context, string, string, string) (string, error) {
		i := asked.Add(1)
		if i == 5 {
			end()
		}
		return "", fmt.Errorf("reason %d", i/2)
	}})
	var log bytes.Buffer
	n.logger, n.passing = slog.New(slog.NewTextHandler(&log, nil)), func() {} // it has no doors
	if err := n.enter(ctx); err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{1, 1, 1} {
		if got := strings.Count(log.String(), fmt.Sprint("reason ", i)); got != want {
			t.Errorf("reason %d is told %d times, want %d: %s", i, got, want, log.String())
		}
	}
}

func TestANodeThatIsCutOffNamesNoOwner(t *testing.T) {
	n := among(t)
	n.owner = peer.NewOwner()
	n.owned.Store(&cell.Owner{Node: "b", Addresses: "10.0.0.2:7381 10.0.0.2:6379"})
	names := func(want string) {
		t.Helper()
		if got := n.ownerRedis(); got != want {
			t.Errorf("it names %q, want %q", got, want)
		}
	}
	names("10.0.0.2:6379")
	n.alone.Store(true)
	names("")
	n.term.Store(&cell.Term{}) // an owner that has missed one look
	names("10.0.0.2:6379")
}

func TestANodeGivesUpNothingOfItsFolder(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	c := Config{Node: "a", Nodes: map[string]string{"a": freeAddress(t)}}
	err := Run(ctx, daemon.Config{Data: t.TempDir(), AcceptLoss: true, Redis: "127.0.0.1:0", Logger: quiet}, c)
	if err == nil || !strings.Contains(err.Error(), "--accept-loss") {
		t.Errorf("it starts, and accepts a loss: %v", err)
	}
}

func TestUsersNeedNodesWithCertificates(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	c := Config{Node: "a", Nodes: map[string]string{"a": freeAddress(t)}}
	err := Run(ctx, daemon.Config{Data: t.TempDir(), RedisPassword: "x", Redis: "127.0.0.1:0", Logger: quiet}, c)
	if !errors.Is(err, peer.ErrPlain) {
		t.Errorf("it starts, and every program of this machine passes by its users: %v", err)
	}
}

func TestANodeTakesNoPayloadsThatEtcdIsTooSlowFor(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	c := Config{Node: "a", Nodes: map[string]string{"a": freeAddress(t)}}
	for most, refused := range map[int64]bool{0: false, maxPayload: false, maxPayload + 1: true} {
		err := Run(ctx, daemon.Config{Data: t.TempDir(), MaxPayload: most, Redis: "127.0.0.1:0", Logger: quiet}, c)
		if is := err != nil && strings.Contains(err.Error(), "take 4 MiB at most"); is != refused {
			t.Errorf("payloads of %d bytes: %v", most, err)
		}
	}
}
