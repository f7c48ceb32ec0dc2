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
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.uber.org/zap"
)

// Alone runs a copy of a member's folder as a cell of this member alone, whom nobody reaches: to
// read without a majority all that the member has. The folder, whose member does not run, stays as
// it is. The copy goes to another folder, which the caller removes. others are how many members
// the cell has besides.
func Alone(ctx context.Context, dir, to string, logger *slog.Logger) (m *Member, others int, err error) {
	if !IsMember(dir) {
		return nil, 0, fmt.Errorf("%s is of no cell", dir)
	}
	if err := copyStill(dir, to); err != nil {
		return nil, 0, fmt.Errorf("copy etcd's folder: %w", err)
	}
	if err := decide(filepath.Join(to, "member", "wal")); err != nil {
		return nil, 0, fmt.Errorf("read etcd's log: %w", err)
	}
	db := backend.NewDefaultBackend(zap.NewNop(), filepath.Join(to, "member", "snap", "db"))
	members, _ := schema.NewMembershipBackend(zap.NewNop(), db).MustReadMembersFromBackend()
	if err := db.Close(); err != nil {
		return nil, 0, err
	}
	c := MemberConfig{Dir: to, Node: "alone", Nodes: map[string]string{"alone": "127.0.0.1:0"}, Logger: logger}
	cfg, err := c.embed("")
	if err != nil {
		return nil, 0, err
	}
	cfg.ForceNewCluster, cfg.ListenPeerUrls = true, nil
	if m, err = c.run(ctx, cfg); err != nil {
		return nil, 0, err
	}
	if err = m.identify(ctx); err != nil {
		m.Close()
	}
	return m, len(members) - 1, err
}

// copyStill copies the folder of a member, which it does not let run meanwhile.
func copyStill(dir, to string) error {
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
	return errors.Join(os.RemoveAll(to), os.MkdirAll(to, 0o700), os.CopyFS(filepath.Join(to, "member"), os.DirFS(filepath.Join(dir, "member"))))
}

// decide has a copy take all entries of its log for decided, where etcd would drop those that it
// does not know to be. A client may have had the answer before this node knew; an entry that
// nobody answered for may become true, as with any voter that is elected.
func decide(dir string) error {
	logger := zap.NewNop()
	if !wal.Repair(logger, dir) { // a crash may have torn the end
		return fmt.Errorf("%s: %w", dir, ErrDamaged)
	}
	marks, err := wal.ValidSnapshotEntries(logger, dir)
	if err != nil {
		return err
	}
	if len(marks) == 0 {
		return fmt.Errorf("%s has no beginning: %w", dir, ErrDamaged)
	}
	w, err := wal.Open(logger, dir, marks[len(marks)-1])
	if err != nil {
		return err
	}
	_, state, entries, err := w.ReadAll()
	if err == nil && len(entries) > 0 {
		state.Commit = entries[len(entries)-1].Index
		err = w.Save(state, nil)
	}
	return errors.Join(err, w.Close())
}
