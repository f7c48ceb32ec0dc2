package cell

import (
	"context"
	"fmt"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Size is what etcd's database of this node takes in its file, in bytes.
func (m *Member) Size() int64 { return m.etcd.Server.Backend().Size() }

// Clear ends the alarm that etcd raises when a database has reached its quota: under it no key can
// be put. It does nothing, and returns false, if there is no alarm.
//
// Each node calls it, and the log must have been cut before. It compacts, gives the room in this
// node's database back, and disarms; in this order, since the alarm is back at once otherwise. An
// alarm of another node is disarmed too, since that one may be gone: if not, it raises a new one.
func (m *Member) Clear(ctx context.Context) (cleared bool, err error) {
	alarms, err := m.client.AlarmList(ctx)
	if err != nil {
		return false, err
	}
	for _, alarm := range alarms.Alarms {
		if alarm.Alarm != etcdserverpb.AlarmType_NOSPACE {
			continue
		}
		if !cleared {
			if err := m.giveBack(ctx); err != nil {
				return false, fmt.Errorf("give room of etcd's database back: %w", err)
			}
		}
		if _, err := m.client.AlarmDisarm(ctx, (*clientv3.AlarmMember)(alarm)); err != nil {
			return false, fmt.Errorf("disarm etcd's alarm: %w", err)
		}
		cleared = true
	}
	return cleared, nil
}

// giveBack compacts all history and shrinks the file. Calls of this node wait meanwhile.
func (m *Member) giveBack(ctx context.Context) error {
	now, err := m.client.Get(ctx, cellKey)
	if err != nil {
		return err
	}
	if _, err := m.client.Compact(ctx, now.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
		return err
	}
	return m.etcd.Server.Defragment()
}
