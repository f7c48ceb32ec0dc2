package cell

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/storage/backend"
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

// Judge acts on what etcd's own checks have found: a member has other keys than a majority. From
// then on no key can be put anywhere. If it is this one it ends, by ErrDiffers. If it is another
// one the alarm ends when that runs no longer. Where no majority agrees the alarm stands.
func (m *Member) Judge(ctx context.Context, runs func(Peer) bool) error {
	all, err := m.client.MemberList(ctx, local...)
	if err != nil {
		return err
	}
	for _, a := range m.etcd.Server.Alarms() {
		if a.Alarm != etcdserverpb.AlarmType_CORRUPT || a.MemberID == 0 {
			continue
		}
		if a.MemberID == uint64(m.etcd.Server.MemberID()) {
			m.end(ErrDiffers)
			return ErrDiffers
		}
		is := func(p Peer) bool { return p.ID == a.MemberID && runs(p) }
		if slices.ContainsFunc(peers(all), is) {
			continue
		}
		if _, err := m.client.AlarmDisarm(ctx, (*clientv3.AlarmMember)(a)); err != nil {
			return err
		}
	}
	return nil
}

// shrinkFrom is the size of a database's file, in bytes, below which it need not shrink.
const shrinkFrom = 32 << 20

// shrink makes the file of etcd's database small before etcd starts, where most of it is empty. It
// does not shrink by itself while etcd runs, and by its size a node asks for room. A node without
// room for the copy starts as it is.
func (m *Member) shrink() {
	folder := filepath.Join(m.config.Dir, "member", "snap")
	name := filepath.Join(folder, "db")
	clean := func() { // etcd leaves a copy behind that a kill or a full disk has cut off
		cut, _ := filepath.Glob(name + ".tmp.*")
		for _, copied := range cut {
			_ = os.Remove(copied)
		}
	}
	clean()
	if info, err := os.Stat(name); err != nil || info.Size() < shrinkFrom {
		return
	}
	b := backend.NewDefaultBackend(m.zap(), name)
	if b.SizeInUse() > b.Size()/2 {
		_ = b.Close() // most is in use
		return
	}
	err := b.Defrag()
	err = errors.Join(err, b.Close())
	if d, opened := os.Open(folder); opened == nil { // a power cut must not bring the old file back later
		err = errors.Join(err, d.Sync(), d.Close())
	}
	if err != nil {
		clean()
		m.config.Logger.Warn("the file of etcd's database did not shrink as it should", "error", err)
	}
}
