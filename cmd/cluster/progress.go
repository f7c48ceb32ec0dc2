package cluster

import (
	"context"
	"os"
	"sync/atomic"
	"time"
)

// progress says whether a node may keep a claim: its disk answers, and its work gets on. The disk
// of an owner may hang while its network lives: without this rule nobody would take over.
type progress struct {
	claiming atomic.Bool  // the node has claimed, and recovery has not begun
	probed   atomic.Int64 // when the folder took a write last, Unix nanoseconds
}

const (
	probePause = 200 * time.Millisecond
	onTime     = time.Second // within which something must have happened
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
	probed := time.Since(time.Unix(0, n.progress.probed.Load())) < onTime
	return probed && (n.progress.claiming.Load() || n.server.GotOn(onTime))
}
