package cluster

import (
	"context"
	"errors"
	"os"
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
		if err := probeOnce(name); err == nil || errors.Is(err, syscall.ENOSPC) { // a full disk answers
			p.probed.Store(time.Now().UnixNano())
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return
		}
	}
}

func probeOnce(name string) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte("alive\n"), 0); err != nil {
		return err
	}
	return f.Sync()
}

// getsOn is cell.Config.Progress.
func (n *node) getsOn() bool {
	within := func(at *atomic.Int64, d time.Duration) bool { return time.Since(time.Unix(0, at.Load())) < d }
	return within(&n.progress.probed, onTime) && (within(&n.progress.took, takeTime) || n.server.GotOn(onTime))
}
