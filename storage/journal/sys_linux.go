package journal

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// datasync is fdatasync; raw if the runtime need not know that a thread waits.
func datasync(f *os.File, raw bool) error {
	for {
		var err error
		if raw {
			if _, _, errno := syscall.RawSyscall(syscall.SYS_FDATASYNC, f.Fd(), 0, 0); errno != 0 {
				err = errno
			}
		} else {
			err = unix.Fdatasync(int(f.Fd()))
		}
		if err != unix.EINTR {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}

// allocate takes room for a file of a length.
func allocate(f *os.File, size int64) error {
	switch err := unix.Fallocate(int(f.Fd()), 0, 0, size); err {
	case unix.EOPNOTSUPP, unix.ENOSYS:
		return f.Truncate(size)
	default:
		return os.NewSyscallError("fallocate", err)
	}
}
