package crash

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-queue/holdfast/netproto/pinpriq"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/inject"
)

// roomSoon is how soon a full disk whose packets are gone takes others, and ttl how long those live
// that go by themselves.
const (
	roomSoon = 10 * time.Second
	ttl      = 4 * time.Second
)

// A queue fills the disk, somebody else leaves less room than a merge keeps free, and then all
// packets go: there is room again soon, without a restart.
func TestDrainedDiskFullTakesPushesAgain(t *testing.T) { drainDisk(t, 64) }

func TestLargerDrainedDiskFullTakesPushesAgain(t *testing.T) {
	if inject.Runs() < 100 {
		t.Skip("skipped: left to make sweep")
	}
	drainDisk(t, 200, 700)
}

func drainDisk(t *testing.T, sizes ...int) {
	command := serve(build(t, "cmd/holdfast"))
	for _, mib := range sizes {
		t.Run(fmt.Sprintf("%d MiB, by pops", mib), func(t *testing.T) {
			d := startDisk(t, mountRoom(t, mib).room, command)
			d.size = 15 * mib // about as many packets on each disk
			q := d.r.queues.byKind[standing][0]
			d.fill(q)
			d.squeeze()
			d.roomAgain(q, d.pops(q, 0))
		})
		t.Run(fmt.Sprintf("%d MiB, by their end", mib), func(t *testing.T) {
			d := startDisk(t, mountRoom(t, mib).room, command)
			d.size, d.r.ttl = pinpriq.MaxPayload, int32(ttl/time.Millisecond)
			q := d.r.queues.byKind[standing][0]
			d.fillUntil(q, time.Now().Add(ttl)) // later as many end as come
			d.squeeze()
			time.Sleep(ttl) // the time is what is tested
			d.roomAgain(q, d.pops(q, 0))
		})
	}
}

// squeeze leaves a little less than two windows free, by a file of somebody else, which takes three
// quarters of the disk at most.
func (d *disk) squeeze() {
	d.t.Helper()
	file, err := os.Create(filepath.Join(d.mount, "foreign"))
	if err != nil {
		d.t.Fatal(err)
	}
	defer file.Close()
	for try := 0; ; try++ {
		var disk unix.Statfs_t
		if err := unix.Statfs(d.mount, &disk); err != nil {
			d.t.Fatal(err)
		}
		window := storage.LeastFree(int64(disk.Blocks)*disk.Bsize) / 6
		takes := min(int64(disk.Bavail)*disk.Bsize-2*window+window/8, int64(disk.Blocks)*disk.Bsize*3/4)
		switch err := unix.Fallocate(int(file.Fd()), 0, 0, max(takes, 1)); {
		case err == nil:
			d.t.Logf("a foreign file takes %d bytes; a window is %d", takes, window)
			return
		case err != unix.ENOSPC || try == 100: // else a merge took room behind the measuring
			d.t.Fatal(err)
		}
	}
}

// roomAgain sees that an empty server takes packets soon, and keeps them.
func (d *disk) roomAgain(q, popped int) {
	d.t.Helper()
	begun := time.Now()
	d.r.ttl = 0
	d.pushWorksWithin(q, roomSoon)
	d.t.Logf("%d of %d packets were popped; pushes were taken again after %v", popped, d.r.pushed.Load(), time.Since(begun))
	d.check()
	d.restart(d.kill)
	d.check()
}
