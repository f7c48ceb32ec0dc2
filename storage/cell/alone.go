package cell

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.uber.org/zap"
)

// Alone runs a copy of a member's folder as a cell of this member alone, whom nobody reaches: to
// read without a majority what the member knows to be decided. The folder, whose member does not
// run, stays as it is. The copy goes to another folder, which the caller removes. others are how
// many members the cell has besides.
func Alone(ctx context.Context, dir, to string, logger *slog.Logger) (m *Member, others int, err error) {
	if !IsMember(dir) {
		return nil, 0, fmt.Errorf("%s is of no cell", dir)
	}
	err = errors.Join(os.RemoveAll(to), os.MkdirAll(to, 0o700))
	if err == nil {
		err = os.CopyFS(filepath.Join(to, "member"), os.DirFS(filepath.Join(dir, "member")))
	}
	if err != nil {
		return nil, 0, fmt.Errorf("copy etcd's folder: %w", err)
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
