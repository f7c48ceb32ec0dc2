package cluster

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"
)

// progress says whether a node may keep a claim: its disk answers, and its work gets on. The disk
// of an owner may hang while its network lives: without this rule nobody would take over.
type progress struct {
	took   atomic.Int64 // when the node took a batch of the log last, or claimed, Unix nanoseconds; 0: it serves
	probed atomic.Int64 // when the folder took a write last, the same
}

const (
	probePause = 200 * time.Millisecond
	onTime     = time.Second // within which something must have happened
	// takeTime is the same for one batch of the log, which may wait for the flush of a table.
	takeTime = 10 * time.Second
)

// probe writes a small file and syncs it, again and again until ctx ends.
func (p *progress) probe(ctx context.Context, name string) {
	defer os.Remove(name)
	for pause := time.NewTicker(probePause); ; {
		if err := probeOnce(name); err == nil {
			p.probed.Store(time.Now().UnixNano())
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return
		}
	}
}

// probeOnce returns nil where the disk answers, as a full one does: it syncs the folder.
func probeOnce(name string) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteAt([]byte("alive\n"), 0)
		err = errors.Join(cmp.Or(err, f.Sync()), f.Close())
	}
	if !errors.Is(err, syscall.ENOSPC) {
		return err
	}
	dir, err := os.Open(filepath.Dir(name))
	if err == nil {
		err = errors.Join(dir.Sync(), dir.Close())
	}
	return err
}

// getsOn is cell.Config.Progress.
func (n *node) getsOn() bool {
	within := func(at *atomic.Int64, d time.Duration) bool { return time.Since(time.Unix(0, at.Load())) < d }
	return within(&n.progress.probed, onTime) && (within(&n.progress.took, takeTime) || n.server.GotOn(onTime))
}
