package tables

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// refusingDisk mounts a file system on a device that refuses to write some places of 4 KiB: holes
// in a file of a full file system in memory. It returns the folder, and what mounts the device
// again.
func refusingDisk(t *testing.T) (dir string, again func()) {
	t.Helper()
	if testing.Short() || os.Geteuid() != 0 {
		t.Skip("skipped: only root mounts a disk, and short runs leave it out")
	}
	const size, apart, place = 64 << 20, 3 << 20, 4096
	memory, dir := t.TempDir(), t.TempDir()
	if err := unix.Mount("tmpfs", memory, "tmpfs", 0, fmt.Sprint("size=", size+(1<<20))); err != nil {
		t.Skip("skipped: a file system in memory cannot be mounted here:", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(memory, unix.MNT_DETACH) })
	image := filepath.Join(memory, "image")
	run := func(args ...string) {
		t.Helper()
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Skipf("skipped: a disk in a file cannot be mounted here: %v: %s", err, out)
		}
	}
	unmount := func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Errorf("unmount: %v", err)
		}
	}
	if err := os.WriteFile(image, make([]byte, size), 0o600); err != nil {
		t.Fatal(err)
	}
	run("mkfs.ext4", "-q", "-F", "-b", "4096", "-O", "^has_journal", "-E", "nodiscard,lazy_itable_init=0", image)
	run("mount", "-o", "loop", image, dir)
	var places []int64
	probe, err := os.Create(filepath.Join(dir, "probe"))
	if err != nil {
		t.Fatal(err)
	}
	for at := int64(0); ; at += apart {
		if _, err := probe.Write(make([]byte, apart)); err != nil { // the disk is full
			break
		}
		block := int32((at + apart/2) / place) // the first are left to small files
		const fibmap = 1                       // where a block of a file is on the device
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, probe.Fd(), fibmap, uintptr(unsafe.Pointer(&block))); errno != 0 {
			t.Fatal(errno)
		}
		places = append(places, int64(block)*place)
	}
	err = errors.Join(probe.Close(), os.Remove(probe.Name()))
	unmount()
	device, openErr := os.OpenFile(image, os.O_RDWR, 0)
	if err := errors.Join(err, openErr); err != nil {
		t.Fatal(err)
	}
	err = unix.Fallocate(int(device.Fd()), 0, 0, size) // mkfs makes holes
	for _, at := range places {
		err = errors.Join(err, unix.Fallocate(int(device.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, at, place))
	}
	if err := errors.Join(err, device.Close()); err != nil || len(places) == 0 {
		t.Fatal(len(places), err)
	}
	if err := os.WriteFile(filepath.Join(memory, "full"), make([]byte, size), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Fatal("the memory is not full:", err)
	}
	run("mount", "-o", "loop", image, dir)
	t.Cleanup(unmount)
	return dir, func() {
		unmount()
		run("mount", "-o", "loop", image, dir)
	}
}

// A call that fails is not a disk that fails: of a write that the disk refuses only a sync tells.
func TestSystemATableThatTheDiskRefusesInPartIsNotMade(t *testing.T) {
	for range 40 { // most refuse a folder, or what a table never takes
		if made, refused := buildRefused(t); made > 0 && refused > 0 {
			return
		}
	}
	t.Error("no disk took some tables and refused others")
}

// buildRefused makes tables on such a disk, and looks at those that were made once it is mounted
// again.
func buildRefused(t *testing.T) (made, refused int) {
	dir, again := refusingDisk(t)
	db, build := filepath.Join(dir, "db"), filepath.Join(dir, "build")
	tables := map[string]Table{}
	if errors.Join(os.Mkdir(db, 0o700), os.Mkdir(build, 0o700)) != nil {
		return 0, 0
	}
	s, err := Open(db, build, Options{})
	if err != nil {
		return 0, 0
	}
	err = s.Begin()
	for i := 0; i < 20 && err == nil; i++ {
		value := make([]byte, 1<<20+i%5<<19)
		built, buildErr := s.Build(0, int64(len(value)), sorted([]Entry{{Key: key(i), Value: value, Version: 1}}))
		if buildErr != nil {
			refused++
		}
		for _, f := range built {
			tables[f.path] = f.Table
		}
		built.release()
	}
	s.Close()
	again()
	for path, table := range tables {
		f, err := s.openFile(path, table, false)
		if err != nil {
			t.Errorf("a table that was made is not right on the disk: %v", err)
			continue
		}
		f.release()
	}
	return len(tables), refused
}
