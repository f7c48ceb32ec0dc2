package journal

import (
	"os"
	"syscall"
)

// datasync is fdatasync; raw if the runtime need not know that a thread waits.
func datasync(f *os.File, raw bool) error {
	call := syscall.Syscall
	if raw {
		call = syscall.RawSyscall
	}
	for {
		_, _, errno := call(syscall.SYS_FDATASYNC, f.Fd(), 0, 0)
		switch errno {
		case 0:
			return nil
		case syscall.EINTR:
			continue
		}
		return os.NewSyscallError("fdatasync", errno)
	}
}

// allocate takes room for a file of a length.
func allocate(f *os.File, size int64) error {
	err := syscall.Fallocate(int(f.Fd()), 0, 0, size)
	if err == syscall.EOPNOTSUPP || err == syscall.ENOSYS {
		return f.Truncate(size)
	}
	return os.NewSyscallError("fallocate", err)
}
