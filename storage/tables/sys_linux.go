package tables

import (
	"os"

	"golang.org/x/sys/unix"
)

// writeBehind begins to bring a part of a file to the device, and waits for the part before it.
func writeBehind(f *os.File, at, n int64) {
	const wait = unix.SYNC_FILE_RANGE_WAIT_BEFORE | unix.SYNC_FILE_RANGE_WRITE | unix.SYNC_FILE_RANGE_WAIT_AFTER
	_ = unix.SyncFileRange(int(f.Fd()), at, n, unix.SYNC_FILE_RANGE_WRITE)
	if at > 0 {
		_ = unix.SyncFileRange(int(f.Fd()), at-n, n, wait) // the sync at the end has the errors
	}
}
