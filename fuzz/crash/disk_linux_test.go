package crash

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/inject"
)

// check ends a test by an error.
func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newFilling is a trial whose workers bring more than they take, on a disk of some kind.
func newFilling(t *testing.T, binary, mount string) *trial {
	run := newTrial(serveAll(binary, "always"), filepath.Join(mount, "data"), runSeed(), t.Logf)
	run.harmed, run.depth = true, 1
	for _, w := range run.workers {
		w.size, w.most = 60_000, 1<<30
	}
	t.Cleanup(run.kill)
	return run
}

// roomAgain empties a server, has it take packets again, kills it, and sees that they are there.
func roomAgain(t *testing.T, run *trial) {
	t.Helper()
	for _, w := range run.workers {
		w.claims = nil
		for _, name := range []string{"jobs", "other", "list", "next", "text", "hash"} {
			check(t, w.once(call{{"DEL", w.of(name)}}))
		}
	}
	w, fits := run.workers[0], false
	run.until(func() bool {
		before := w.refused
		check(t, w.once(call{w.push("jobs")}))
		fits = w.refused == before
		return fits
	})
	if !fits {
		t.Fatalf("pushes are still refused; the log ends with:\n%s", run.server.Log())
	}
	run.server.Kill()
	check(t, run.start())
	run.server.Kill()
}

// fillDisk has workers fill a disk, and kills the server. Room comes back with the packets that go,
// also where somebody else leaves less than a merge keeps free.
func fillDisk(t *testing.T, mount string, squeezed bool) {
	run := newFilling(t, build(t, "cmd/holdfast"), mount)
	for range 2 {
		check(t, run.start())
		from := run.refused.Load()
		check(t, run.load(func() { run.until(func() bool { return run.refused.Load() > from+20 }) }, false))
		if run.refused.Load() == from {
			t.Fatalf("nothing was refused; the log ends with:\n%s", run.server.Log())
		}
	}
	check(t, run.start())
	if squeezed {
		squeeze(t, mount)
	}
	roomAgain(t, run)
}

func TestDiskFull(t *testing.T) {
	fillDisk(t, smallDisk(t, 64), false)
	if inject.Runs() >= 100 { // a larger one has more windows and merges before it is full
		fillDisk(t, smallDisk(t, 256), false)
	}
}

func TestDrainedDiskFullTakesPushesAgain(t *testing.T) { fillDisk(t, mountRoom(t, 64).room, true) }

func TestThinDiskThatRunsOutLosesNothing(t *testing.T) {
	binary := build(t, "cmd/holdfast")
	for range max(inject.Runs()/12, 1) {
		thin := newThinDisk(t)
		run := newFilling(t, binary, thin.mount)
		check(t, run.start())
		check(t, run.load(func() { run.until(func() bool { return false }) }, false))
		if state := run.server.cmd.ProcessState; state.ExitCode() != 1 {
			t.Errorf("the disk should run out and end it, it ended with %v; its log ends with:\n%s", state, run.server.Log())
		}
		thin.grow()
		check(t, run.start())
		roomAgain(t, run)
	}
}

// A file system that is shut down writes nothing more: what was not synced is gone, as by a power
// cut.
func TestPowerCutLosesNothingThatWasAnswered(t *testing.T) {
	mount := smallDisk(t, 192)
	run := newTrial(serveAll(build(t, "cmd/holdfast"), "always"), filepath.Join(mount, "data"), runSeed(), t.Logf)
	run.harmed = true
	t.Cleanup(run.kill)
	for range 3 {
		check(t, run.start())
		check(t, run.load(func() {
			run.wait(time.Second)
			cutPower(t, mount)
		}, false))
		for _, command := range [][]string{{"umount", mount}, {"mount", "-o", "loop", filepath.Join(filepath.Dir(mount), "image"), mount}} {
			if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
				t.Fatalf("%v: %v: %s", command, err, out)
			}
		}
	}
	check(t, run.start())
	run.server.Kill()
}

// cutPower shuts a file system down without writing its log.
func cutPower(t *testing.T, mount string) {
	t.Helper()
	const shutdown, noFlush = 0x8004587d, 2 // EXT4_IOC_SHUTDOWN and its EXT4_GOING_FLAGS_NOLOGFLUSH
	dir, err := os.Open(mount)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(dir.Fd()), shutdown, noFlush)
		dir.Close()
	}
	if err != nil {
		t.Error("the file system cannot be shut down:", err)
	}
}

// squeeze leaves a little less than two windows free, by a file of somebody else, which takes three
// quarters of the disk at most.
func squeeze(t *testing.T, mount string) {
	t.Helper()
	file, err := os.Create(filepath.Join(mount, "foreign"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for try := 0; ; try++ {
		var disk unix.Statfs_t
		if err := unix.Statfs(mount, &disk); err != nil {
			t.Fatal(err)
		}
		window := storage.LeastFree(int64(disk.Blocks)*disk.Bsize) / 6
		takes := min(int64(disk.Bavail)*disk.Bsize-2*window+window/8, int64(disk.Blocks)*disk.Bsize*3/4)
		switch err := unix.Fallocate(int(file.Fd()), 0, 0, max(takes, 1)); {
		case err == nil:
			t.Logf("a foreign file takes %d bytes; a window is %d", takes, window)
			return
		case err != unix.ENOSPC || try == 100: // else a merge took room behind the measuring
			t.Fatal(err)
		}
	}
}
