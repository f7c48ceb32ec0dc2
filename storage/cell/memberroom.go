package cell

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Used is the part of its quota that etcd's database of this node holds; at 1 no key can be put.
func (m *Member) Used() float64 {
	return float64(m.etcd.Server.Backend().SizeInUse()) / float64(cmp.Or(m.config.quota, defaultQuota))
}

// Size is what etcd's database of this node takes in its file, in bytes.
func (m *Member) Size() int64 { return m.etcd.Server.Backend().Size() }

// Replaced says whether a snapshot of etcd's leader has replaced the database since the last
// call, or the start. One goroutine calls it.
func (m *Member) Replaced() bool {
	was := m.data
	m.data = m.etcd.Server.Backend()
	return m.data != was
}

// Clear ends the alarm that etcd raises when a database has reached its quota: under it no key can
// be put. It does nothing, and returns false, if there is no alarm.
//
// Each node calls it, and the log must have been cut before. It compacts, gives the room in this
// node's database back, while calls wait, and disarms; in this order, since the alarm is back at
// once otherwise. An alarm of another node is disarmed too, since that one may be gone: if not, it
// raises a new one.
func (m *Member) Clear(ctx context.Context) (cleared bool, err error) {
	full := slices.DeleteFunc(m.etcd.Server.Alarms(), func(a *etcdserverpb.AlarmMember) bool { return a.Alarm != etcdserverpb.AlarmType_NOSPACE })
	if len(full) == 0 {
		return false, nil
	}
	now, err := m.client.Get(ctx, cellKey)
	if err == nil {
		_, err = m.client.Compact(ctx, now.Header.Revision, clientv3.WithCompactPhysical())
	}
	if errors.Is(err, rpctypes.ErrCompacted) { // no key has changed since the last time
		err = nil
	}
	if err == nil {
		err = m.etcd.Server.Defragment()
	}
	for _, alarm := range full {
		if err == nil {
			_, err = m.client.AlarmDisarm(ctx, (*clientv3.AlarmMember)(alarm))
		}
	}
	return err == nil, err
}
