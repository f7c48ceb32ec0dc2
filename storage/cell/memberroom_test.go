package cell

import (
	"errors"
	"fmt"
	"strings"
	"testing"

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
	putKey(t, m, "k")
}
