package disk

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// syncRange waits until bytes of a file are on the device. errors.ErrUnsupported: some kernels and
// sandboxes do not have that. Any other error is one of the device.
func syncRange(f *os.File, at, n int64) error {
	const all = unix.SYNC_FILE_RANGE_WAIT_BEFORE | unix.SYNC_FILE_RANGE_WRITE | unix.SYNC_FILE_RANGE_WAIT_AFTER
	err := unix.SyncFileRange(int(f.Fd()), at, n, all)
	if err == unix.ENOSYS {
		return errors.ErrUnsupported
	}
	return os.NewSyscallError("sync_file_range", err)
}

// forget gives up what memory has of a file, where the system can.
func forget(f *os.File) error {
	err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
	if err == unix.ENOSYS || err == unix.EOPNOTSUPP {
		return nil
	}
	return os.NewSyscallError("fadvise64", err)
}
