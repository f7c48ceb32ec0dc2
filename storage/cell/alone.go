package cell

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/server/v3/storage"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
)

// Alone runs a copy of a member's folder as a cell of this member alone, whom nobody reaches, while
// do runs: to read without a majority all that the member has. The folder stays as it is, and its
// member cannot start meanwhile. The copy goes to another folder, which is removed in the end.
// others are how many members the cell has besides.
func Alone(ctx context.Context, dir, to string, logger *slog.Logger, do func(m *Member, others int) error) error {
	if _, err := os.Stat(dir); !IsMember(dir) {
		if err == nil {
			return fmt.Errorf("etcd's log in %s cannot be read: it is missing (%w)", dir, ErrDamaged)
		}
		return fmt.Errorf("%s is of no cell, or of none any more: a new one is founded with it as with the folder of a single server", dir)
	}
	files, err := filepath.Glob(filepath.Join(dir, "member", "wal", "*.wal"))
	if err != nil {
		return err
	}
	lock, err := fileutil.TryLockFile(slices.Max(files), os.O_RDWR, fileutil.PrivateFileMode) // as etcd does
	if errors.Is(err, fileutil.ErrLocked) {
		return fmt.Errorf("the node runs: stop it first (%w)", err)
	} else if err != nil {
		return err
	}
	defer lock.Close()
	defer os.RemoveAll(to)
	member := filepath.Join(to, "member")
	err = errors.Join(os.RemoveAll(to), os.MkdirAll(to, 0o700), os.CopyFS(member, os.DirFS(filepath.Join(dir, "member"))),
		os.Chmod(member, 0o700), os.Chmod(filepath.Join(member, "snap"), 0o700)) // etcd warns of others
	if err != nil {
		return fmt.Errorf("copy etcd's folder: %w", err)
	}
	members, err := decide(member)
	if err != nil {
		return fmt.Errorf("etcd's log in %s cannot be read: %w", dir, err)
	}
	c := MemberConfig{Dir: to, Node: "alone", Nodes: map[string]string{"alone": "127.0.0.1:0"}, Logger: logger}
	cfg, err := c.embed("")
	if err != nil {
		return err
	}
	cfg.ForceNewCluster, cfg.ListenPeerUrls = true, nil
	m, err := c.run(ctx, cfg)
	if err != nil {
		return err
	}
	defer m.Close()
	if err := m.identify(ctx); err != nil && !errors.Is(err, ErrDamaged) { // nobody needs the id to read
		return err
	}
	return do(m, members-1)
}

// decide has a copy take all entries of its log for decided, where etcd would drop those that it
// does not know to be. A client may have had the answer before this node knew; an entry that
// nobody answered for may become true, as with any voter that is elected. It returns how many
// members there are then: the database may not have the last entries.
func decide(folder string) (members int, err error) {
	logger, dir := zap.NewNop(), filepath.Join(folder, "wal")
	if !wal.Repair(logger, dir) { // a crash may have torn the end
		return 0, fmt.Errorf("%w, or there was no room to mend a copy of it: free some, and try again", ErrDamaged)
	}
	marks, err := wal.ValidSnapshotEntries(logger, dir)
	if err != nil {
		return 0, err
	}
	if len(marks) == 0 {
		return 0, fmt.Errorf("%s has no beginning: %w", dir, ErrDamaged)
	}
	mark := marks[len(marks)-1]
	w, err := wal.Open(logger, dir, mark)
	if err != nil {
		return 0, err
	}
	_, state, entries, err := w.ReadAll()
	if err == nil && len(entries) > 0 {
		state.Commit = entries[len(entries)-1].Index
		err = w.Save(state, nil)
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return 0, err
	}
	conf := mark.GetConfState()
	at, has, err := applied(logger, filepath.Join(folder, "snap", "db"))
	if at >= mark.GetIndex() && has != nil { // the log also has changes that etcd refused when it came to them
		conf = has
		entries = slices.DeleteFunc(entries, func(e *raftpb.Entry) bool { return e.GetIndex() <= at })
	}
	before := &raftpb.Snapshot{Metadata: &raftpb.SnapshotMetadata{ConfState: conf}}
	return len(storage.GetEffectiveNodeIDsFromWALEntries(logger, before, entries)), err
}

// applied returns up to which entry of the log a database has all, and the members it has.
func applied(logger *zap.Logger, name string) (index uint64, members *raftpb.ConfState, err error) {
	defer func() {
		if found := recover(); found != nil { // etcd has no other way to say so
			err = fmt.Errorf("its database: %w (%v)", ErrDamaged, found)
		}
	}()
	b := backend.NewDefaultBackend(logger, name)
	defer b.Close()
	tx := b.ReadTx()
	tx.RLock()
	defer tx.RUnlock()
	index, _ = schema.UnsafeReadConsistentIndex(tx)
	return index, schema.UnsafeConfStateFromBackend(logger, tx), nil
}
