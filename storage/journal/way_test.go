package journal

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-queue/holdfast/storage/disk"
	"github.com/holdfast-queue/holdfast/storage/disk/simulated"
)

func TestAPieceWaitsForASyncButNotForLong(t *testing.T) {
	for _, hangs := range []time.Duration{time.Millisecond, time.Hour} {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			d, err := simulated.Mount(dir, 1)
			if err != nil {
				t.Fatal(err)
			}
			defer d.Unmount()
			j, err := Open(dir, Options{SegmentSize: 1 << 20})
			if err != nil {
				t.Fatal(err)
			}
			defer j.Close()
			if err := j.Begin(Mark{}); err != nil {
				t.Fatal(err)
			}
			if _, _, err := j.Append(Content{Batch: 1}); err != nil { // which begins a segment
				t.Fatal(err)
			}
			d.Hook = func(_ int64, c *disk.Call) error {
				if c.Op == disk.OpSync {
					time.Sleep(hangs)
				}
				return nil
			}
			go func() { _, _, _ = j.Append(Content{Batch: 2}) }()
			synctest.Wait()
			begun := time.Now()
			j.AwaitSync()
			if took, want := time.Since(begun), min(hangs, longestWait); took != want {
				t.Errorf("a sync takes %v, and a piece waits %v, want %v", hangs, took, want)
			}
			time.Sleep(4 * hangs)
		})
	}
}
