package cluster

import (
	"context"
	"os"
	"path/filepath"
	"testing"
)

func TestAFullDiskAnswersTheProbe(t *testing.T) {
	name := filepath.Join(t.TempDir(), "probe")
	if err := os.Symlink("/dev/full", name); err != nil {
		t.Fatal(err)
	}
	var p progress
	ctx, end := context.WithCancel(t.Context())
	end()
	p.probe(ctx, name)
	if p.probed.Load() == 0 {
		t.Error("a full disk counts as one that hangs")
	}
}
