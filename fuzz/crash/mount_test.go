package crash

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// smallDisk mounts a file system of so many MiB and returns its folder. It skips the test if that
// is not possible.
func smallDisk(t *testing.T, mib int64) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("mounting a small file system needs root")
	}
	dir := t.TempDir()
	image, mount := filepath.Join(dir, "image"), filepath.Join(dir, "mount")
	file, err := os.Create(image)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(file.Truncate(mib<<20), file.Close(), os.Mkdir(mount, 0o700)); err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{{"mkfs.ext4", "-q", "-F", image}, {"mount", "-o", "loop", image, mount}} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Skipf("%v is not possible here: %v: %s", command, err, out)
		}
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", mount).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
	return mount
}

// thinDisk is a file system of more blocks than there is room for: a write that found a block may
// fail when it is synced.
type thinDisk struct {
	t                          *testing.T
	room, image, mount, device string
}

// mountRoom mounts a file system in memory for the image of a disk.
func mountRoom(t *testing.T, mib int) *thinDisk {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("mounting a file system needs root")
	}
	dir := t.TempDir()
	d := &thinDisk{t: t, room: filepath.Join(dir, "room"), image: filepath.Join(dir, "room", "image"), mount: filepath.Join(dir, "mount")}
	if err := errors.Join(os.Mkdir(d.room, 0o700), os.Mkdir(d.mount, 0o700)); err != nil {
		t.Fatal(err)
	}
	d.run(true, "mount", "-t", "tmpfs", "-o", fmt.Sprintf("size=%dm", mib), "tmpfs", d.room)
	t.Cleanup(func() { d.run(false, "umount", "--lazy", d.room) }) // the kernel may hold the image a moment longer
	return d
}

func newThinDisk(t *testing.T) *thinDisk {
	t.Helper()
	d := mountRoom(t, 50+rand.IntN(80))
	if err := errors.Join(os.WriteFile(d.image, nil, 0o600), os.Truncate(d.image, 512<<20)); err != nil {
		t.Fatal(err)
	}
	d.run(true, "mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=1,lazy_journal_init=1", d.image)
	d.attach()
	t.Cleanup(d.detach)
	return d
}

// attach mounts the image. Each request to it is of one page: a longer one that finds room for its
// first part is taken for done by the kernel's loop device, and no sync tells.
func (d *thinDisk) attach() {
	d.t.Helper()
	out, err := exec.Command("losetup", "-f", "--show", d.image).CombinedOutput()
	if err != nil {
		d.t.Skipf("losetup: %v: %s", err, out)
	}
	d.device = strings.TrimSpace(string(out))
	limit := filepath.Join("/sys/block", filepath.Base(d.device), "queue/max_sectors_kb")
	if err := os.WriteFile(limit, []byte("4"), 0); err != nil {
		d.run(false, "losetup", "-d", d.device)
		d.t.Skip("requests cannot be made short:", err)
	}
	d.run(false, "mount", d.device, d.mount)
}

func (d *thinDisk) detach() {
	d.t.Helper()
	d.run(false, "umount", d.mount)
	d.run(false, "losetup", "-d", d.device)
}

// run runs a command. The test is skipped where one that may fail does.
func (d *thinDisk) run(may bool, name string, args ...string) {
	d.t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil && may {
		d.t.Skipf("%s %q is not possible here: %v: %s", name, args, err, out)
	} else if err != nil {
		d.t.Errorf("%s %q: %v: %s", name, args, err, out)
	}
}

// grow gives the disk room for all of its blocks, and mounts it anew: what was not synced is gone.
func (d *thinDisk) grow() {
	d.t.Helper()
	d.detach()
	d.run(false, "mount", "-o", "remount,size=600m", d.room)
	// Exit code 1 says that it repaired something: the disk may have refused a page of a folder, too.
	out, err := exec.Command("e2fsck", "-fy", d.image).CombinedOutput()
	if code := (*exec.ExitError)(nil); errors.As(err, &code) && code.ExitCode() > 1 {
		d.t.Errorf("e2fsck: %v: %s", err, out)
	}
	d.attach()
}
