package tables

import (
	"errors"
	"os"

	"github.com/holdfast-queue/holdfast/storage/disk"
	"golang.org/x/sys/unix"
)

// startWrite begins to bring a part of a file to the device. It waits for nothing: the kernel tells
// of a write that failed once, and a sync_file_range that waits would take that from the sync.
func startWrite(f *disk.File, at, n int64) error {
	if done, err := f.Do(disk.OpStart, n); done {
		return err
	}
	return wanted("sync_file_range", unix.SyncFileRange(int(f.Fd()), at, n, unix.SYNC_FILE_RANGE_WRITE))
}

// forget gives up the memory of a file that was synced, so that it is read from the device.
func forget(f *disk.File) error {
	if done, err := f.Do(disk.OpForget, 0); done {
		return err
	}
	return wanted("fadvise64", unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED))
}

// wanted is the error of a call that some kernels and sandboxes do not have, and that a table is
// made without.
func wanted(call string, err error) error {
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EOPNOTSUPP) {
		return nil
	}
	return os.NewSyscallError(call, err)
}
