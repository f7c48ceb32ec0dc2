package storage

import (
	"os"

	"golang.org/x/sys/unix"
)

// ownSync says that a mapped file's dirty pages are flushed by fdatasync of
// any descriptor of it: on Linux msync(MS_SYNC) itself is vfs_fsync_range of
// the file behind the mapping.
const ownSync = true

func fdatasync(f *os.File) error {
	for {
		// Interrupted means not begun; any other error is final, because the
		// kernel marks pages clean that it failed to write.
		err := unix.Fdatasync(int(f.Fd()))
		if err != unix.EINTR {
			return err
		}
	}
}
