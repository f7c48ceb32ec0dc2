package cell_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"

	"github.com/holdfast-queue/holdfast/storage/cell"
)

// member is a member of etcd in this process.
type member struct {
	*embed.Etcd
	client *clientv3.Client
	name   string
	stop   func()
}

// members starts members that know each other. One alone is quicker.
func members(t testing.TB, names ...string) []*member {
	t.Helper()
	t.Chdir(t.TempDir()) // for sockets with names as short as they must be
	address := func(name string) url.URL { return url.URL{Scheme: "unix", Host: name} }
	initial := ""
	for _, name := range names {
		initial += fmt.Sprintf(",%s=unix://%s:1", name, name)
	}
	var all []*member
	for _, name := range names {
		c := embed.NewConfig()
		c.Name, c.Dir, c.InitialCluster = name, t.TempDir(), initial[1:]
		c.TickMs, c.ElectionMs = 10, 100
		if len(names) > 1 {
			c.TickMs, c.ElectionMs = 50, 500
		}
		c.ListenPeerUrls = []url.URL{address(name + ":1")}
		c.AdvertisePeerUrls = c.ListenPeerUrls
		c.ListenClientUrls = []url.URL{address(name + ":2")}
		c.AdvertiseClientUrls = c.ListenClientUrls
		c.EnableGRPCGateway, c.LogLevel, c.LogOutputs = false, "panic", []string{"/dev/null"}
		e, err := embed.StartEtcd(c)
		if err != nil {
			t.Fatal(err)
		}
		m := &member{Etcd: e, client: v3client.New(e.Server), name: name}
		m.stop = sync.OnceFunc(func() {
			_ = m.client.Close()
			m.Close()
		})
		t.Cleanup(m.stop)
		all = append(all, m)
	}
	for _, m := range all {
		<-m.Server.ReadyNotify()
	}
	return all
}

// alone starts one member, and returns its client and a log to it.
func alone(t testing.TB) (*clientv3.Client, *cell.Log) {
	t.Helper()
	client := members(t, "a")[0].client
	return client, newLog(client, "a")
}

// newLog returns a log whose claims do not lapse because the machine is busy.
func newLog(client *clientv3.Client, node string) *cell.Log {
	return cell.NewLog(cell.Config{Client: client, Node: node, Lease: 10 * time.Second})
}

// claim claims on a log whose node has nothing yet to follow.
func claim(t testing.TB, l *cell.Log, reach uint64) *cell.Term {
	t.Helper()
	term, _, err := l.Claim(t.Context(), reach, "")
	if err != nil {
		t.Fatal(err)
	}
	return term
}

// ended fails the test unless an error is another's, and the claim has ended.
func ended(t testing.TB, term *cell.Term, err error) {
	t.Helper()
	if !errors.Is(err, cell.ErrFenced) {
		t.Errorf("error %v, want ErrFenced", err)
	}
	select {
	case <-term.Done():
	default:
		t.Error("the claim has not ended")
	}
	if term.Held() {
		t.Error("a claim that has ended is held")
	}
}

// set writes a key by hand.
func set(t testing.TB, client *clientv3.Client, key, value string) {
	t.Helper()
	if _, err := client.Put(t.Context(), key, value); err != nil {
		t.Fatal(err)
	}
}

// del deletes a key by hand.
func del(t testing.TB, client *clientv3.Client, key string) {
	t.Helper()
	if r, err := client.Delete(t.Context(), key); err != nil || r.Deleted != 1 {
		t.Fatalf("%d keys deleted, want 1: %v", r.Deleted, err)
	}
}

// between is a client's KV that calls a function with the answer of each transaction, and answers
// with what that returns.
type between struct {
	clientv3.KV
	lock *sync.Mutex // held by then
	then func(*clientv3.TxnResponse, error) (*clientv3.TxnResponse, error)
}

func (b between) Txn(ctx context.Context) clientv3.Txn { return txn{b.KV.Txn(ctx), b} }

type txn struct {
	clientv3.Txn
	between
}

func (x txn) If(c ...clientv3.Cmp) clientv3.Txn  { return txn{x.Txn.If(c...), x.between} }
func (x txn) Then(o ...clientv3.Op) clientv3.Txn { return txn{x.Txn.Then(o...), x.between} }
func (x txn) Else(o ...clientv3.Op) clientv3.Txn { return txn{x.Txn.Else(o...), x.between} }

func (x txn) Commit() (*clientv3.TxnResponse, error) {
	r, err := x.Txn.Commit()
	x.lock.Lock()
	defer x.lock.Unlock()
	return x.then(r, err)
}

// withKV returns a client of a member whose transactions pass through a function.
func withKV(t testing.TB, m *member, then func(*clientv3.TxnResponse, error) (*clientv3.TxnResponse, error)) *clientv3.Client {
	client := v3client.New(m.Server)
	t.Cleanup(func() { _ = client.Close() })
	client.KV = between{client.KV, new(sync.Mutex), then}
	return client
}
