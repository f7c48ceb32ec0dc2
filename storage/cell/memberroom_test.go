package cell

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

func TestAFullDatabaseIsClearedOnceTheLogIsCut(t *testing.T) {
	t.Parallel()
	a, _, _ := trio(t)
	a.quota = 4 << 20
	m := founded(t, a)
	if cleared, err := m.Clear(t.Context()); cleared || err != nil {
		t.Errorf("without an alarm: %v, %v", cleared, err)
	}
	part := strings.Repeat("x", 256<<10)
	var err error
	for n := 0; err == nil; n++ {
		_, err = m.Client().Put(t.Context(), fmt.Sprint("j/", n), part)
	}
	if !errors.Is(err, rpctypes.ErrNoSpace) {
		t.Fatal(err)
	}
	gone := &etcdserverpb.AlarmRequest{Action: etcdserverpb.AlarmRequest_ACTIVATE, MemberID: 1, Alarm: etcdserverpb.AlarmType_NOSPACE}
	if _, err := m.etcd.Server.Alarm(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	full := m.Size()
	if _, err := m.Client().Delete(t.Context(), "j/", clientv3.WithPrefix()); err != nil {
		t.Fatal(err)
	}
	if cleared, err := m.Clear(t.Context()); !cleared || err != nil {
		t.Fatalf("cleared: %v, %v", cleared, err)
	}
	if m.Size() >= full/2 {
		t.Errorf("%d bytes, were %d", m.Size(), full)
	}
	if _, err := m.etcd.Server.Alarm(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	if cleared, err := m.Clear(t.Context()); !cleared || err != nil { // no key has changed since
		t.Fatalf("cleared once more: %v, %v", cleared, err)
	}
	putKey(t, m, "k")
}

func TestAStartGivesBackWhatTheDatabaseDoesNotUse(t *testing.T) {
	t.Parallel()
	a, _, _ := trio(t)
	m := founded(t, a)
	fill := func(prefix string, size int64) {
		t.Helper()
		for i := 0; m.Size() < size; i++ {
			if _, err := m.Client().Put(t.Context(), fmt.Sprint(prefix, i), string(make([]byte, 1<<20))); err != nil {
				t.Fatal(err)
			}
		}
	}
	again := func() {
		t.Helper()
		m.Close()
		m = run(t)(Start(t.Context(), a))
	}
	fill("stays", shrinkFrom+1)
	stays := countKeys(t, m, "stays")
	full := m.Size()
	if again(); m.Size() < full {
		t.Errorf("%d bytes of a database in use, were %d", m.Size(), full)
	}
	fill("goes", 5*shrinkFrom)
	r, err := m.Client().Delete(t.Context(), "goes", clientv3.WithPrefix())
	if err == nil {
		_, err = m.Client().Compact(t.Context(), r.Header.Revision, clientv3.WithCompactPhysical())
	}
	if err != nil {
		t.Fatal(err)
	}
	m.Close() // what is pending is in the database then
	left := filepath.Join(a.Dir, "member", "snap", "db.tmp.cut")
	if err := os.WriteFile(left, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if again(); m.Size() > 2*full {
		t.Errorf("%d bytes behind a start, %d are used", m.Size(), m.etcd.Server.Backend().SizeInUse())
	}
	if n := countKeys(t, m, "stays"); n != stays {
		t.Errorf("%d keys of %d are left", n, stays)
	}
	putKey(t, m, "k")
	if _, err := os.Stat(left); err == nil {
		t.Error("a copy that was cut off is there still")
	}
}

func TestACellWhoseDatabaseWasFullComesBackByItself(t *testing.T) {
	t.Parallel()
	a, _, _ := trio(t)
	a.quota = 6 << 20
	m := founded(t, a)
	log := NewLog(Config{Client: m.Client(), Node: "a", Lease: 10 * time.Second})
	term, _, err := log.Claim(t.Context(), 0, "")
	if err != nil {
		t.Fatal(err)
	}
	content, last := [][]byte{make([]byte, 100<<10)}, uint64(0)
	for ; err == nil; last++ {
		_, err = m.Client().Put(t.Context(), "node/a", string(content[0])) // nothing has etcd forget what was
		if err == nil {
			err = term.Append(last+1, content)
		}
	}
	if !errors.Is(err, rpctypes.ErrNoSpace) {
		t.Fatalf("behind batch %d: %v", last, err)
	}
	if err := term.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	s, err := log.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	last = s.Head     // etcd may have put what it said to have no room for
	log.Release(last) // it waits for room, too
	if _, _, err := log.Claim(t.Context(), last, ""); !errors.Is(err, rpctypes.ErrNoSpace) {
		t.Fatalf("claimed without room: %v", err)
	}
	if cleared, err := m.Clear(t.Context()); !cleared || err != nil {
		t.Fatal(cleared, err)
	}
	if term, last, err = log.Claim(t.Context(), last, ""); err != nil {
		t.Fatal(err)
	}
	go term.Trim() // it ends with the claim
	for ; s.Cut < last; time.Sleep(pause) {
		if s, err = log.Status(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for range 5 { // what was cut is forgotten a little later
		if last++; term.Append(last, content) != nil {
			t.Fatalf("batch %d: %v", last, term.Err())
		}
	}
	if err := term.End(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestANodeWhoseFullDatabaseWasReplacedByASnapshotPutsAgain(t *testing.T) {
	t.Parallel()
	a, b, _ := trio(t)
	m := founded(t, a)
	behind := joins(t, m, b)
	if behind.Replaced() {
		t.Error("its database was replaced before it got a snapshot")
	}
	const full = 16 << 20
	for i := range full>>20 + 8 {
		if _, err := m.Client().Put(t.Context(), fmt.Sprint("foreign", i), string(make([]byte, 1<<20))); err != nil {
			t.Fatal(err)
		}
	}
	for behind.Size() < full {
		time.Sleep(pause)
	}
	behind.Close()
	r, err := m.Client().Delete(t.Context(), "foreign", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	for range 1200 { // etcd's own log begins behind what it has
		putKey(t, m, "k")
	}
	_, err = m.Client().Compact(t.Context(), r.Header.Revision, clientv3.WithCompactPhysical())
	if err = errors.Join(err, m.etcd.Server.Defragment()); err != nil {
		t.Fatal(err)
	}
	b.quota = full
	behind = run(t)(Start(t.Context(), b))
	for !behind.Replaced() {
		time.Sleep(pause)
	}
	for tries := 0; ; tries++ { // before the snapshot it may have found itself full, rightly
		_, err := behind.Client().Put(t.Context(), "k", "")
		if err == nil {
			break
		}
		if _, cleared := m.Clear(t.Context()); tries == 5 || cleared != nil {
			t.Fatal(err, cleared)
		}
	}
}
