package cluster

import (
	"context"
	"fmt"
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

func TestAFullDiskThatDoesNotSyncDoesNotAnswerTheProbe(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	name := fmt.Sprint("/proc/self/fd/", full.Fd()) // in a folder that cannot be synced
	if err := probeOnce(name); err == nil {
		t.Error("it answers")
	}
	var p progress
	ctx, end := context.WithCancel(t.Context())
	end()
	if p.probe(ctx, name); p.probed.Load() != 0 {
		t.Error("it counts as one that answers")
	}
}
