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

// add appends batches, each with its number as content.
func add(t testing.TB, term *cell.Term, first, last uint64) {
	t.Helper()
	for n := first; n <= last; n++ {
		if err := term.Append(n, [][]byte{[]byte(content(n))}); err != nil {
			t.Fatal(err)
		}
	}
}

func content(n uint64) string { return fmt.Sprint("content ", n) }

// added is what add appends.
func added(first, last uint64) (all []batch) {
	for n := first; n <= last; n++ {
		all = append(all, batch{n, content(n)})
	}
	return all
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

// get reads a key; "" if it is absent.
func get(t testing.TB, client *clientv3.Client, key string) string {
	t.Helper()
	r, err := client.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Kvs) == 0 {
		return ""
	}
	return string(r.Kvs[0].Value)
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

// empty ends a claim and deletes the log.
func empty(t testing.TB, client *clientv3.Client, term *cell.Term) {
	t.Helper()
	if err := term.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Delete(t.Context(), "", clientv3.WithFromKey()); err != nil {
		t.Fatal(err)
	}
}

// revokeAll takes all leases away.
func revokeAll(t testing.TB, client *clientv3.Client) {
	t.Helper()
	r, err := client.Leases(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, lease := range r.Leases {
		if _, err := client.Revoke(t.Context(), lease.ID); err != nil {
			t.Fatal(err)
		}
	}
}

// batch is a content as Follow handed it over.
type batch struct {
	number  uint64
	content string
}

// follow returns the next n batches behind after.
func follow(t testing.TB, l *cell.Log, after uint64, n int) []batch {
	t.Helper()
	got, err := followed(t.Context(), l, after, n)
	if err != nil {
		t.Fatalf("behind batch %d, after %d of %d: %v", after, len(got), n, err)
	}
	return got
}

// followed returns the next n batches behind after, fewer if there is an error.
func followed(ctx context.Context, l *cell.Log, after uint64, n int) (got []batch, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	err = l.Follow(ctx, after, func(number uint64, content []byte) error {
		if got = append(got, batch{number, string(content)}); len(got) == n {
			cancel()
		}
		return nil
	})
	if len(got) >= n && ctx.Err() != nil {
		err = nil
	}
	return got, err
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

// puts is how many keys a transaction has put.
func puts(r *clientv3.TxnResponse) (n int) {
	for _, one := range r.Responses {
		if one.GetResponsePut() != nil {
			n++
		}
	}
	return n
}
