package journal

import (
	"os"
	"syscall"
	"time"

	"github.com/holdfast-queue/holdfast/storage/disk"
)

// syncer brings a file's data to the device. While that is quick, it is a system call that the
// runtime does not hear of: telling it costs up to a fifth of the processor time at one record a
// sync. A slow one would hold up the collector, so then the runtime is told.
type syncer struct {
	mean  time.Duration // moving, over about 16 syncs
	since int           // syncs since one was slow
	took  time.Duration // the last one
}

const (
	quickSync = 2 * time.Millisecond  // the mean below which a sync is quick
	slowSync  = 20 * time.Millisecond // one of these is slow
	calmSyncs = 1000                  // how many must follow a slow one
)

func (s *syncer) datasync(f *disk.File) error {
	if done, err := f.Do(disk.OpSync, 0); done {
		return err
	}
	call := syscall.Syscall
	if s.quick() {
		call = syscall.RawSyscall
	}
	start := time.Now()
	_, _, errno := call(syscall.SYS_FDATASYNC, f.Fd(), 0, 0)
	for errno == syscall.EINTR {
		_, _, errno = call(syscall.SYS_FDATASYNC, f.Fd(), 0, 0)
	}
	s.note(time.Since(start))
	if errno != 0 {
		return os.NewSyscallError("fdatasync", errno)
	}
	return nil
}

func (s *syncer) quick() bool { return s.mean < quickSync && s.since >= calmSyncs }

func (s *syncer) note(took time.Duration) {
	s.took = took
	s.mean += (took - s.mean) / 16
	if s.since++; took >= slowSync {
		s.since = 0
	}
}

// allocate takes room for a file of a length.
func allocate(f *disk.File, size int64) error {
	if done, err := f.Do(disk.OpAllocate, size); done {
		return err
	}
	err := syscall.Fallocate(int(f.Fd()), 0, 0, size)
	if err == syscall.EOPNOTSUPP || err == syscall.ENOSYS {
		return f.Truncate(size)
	}
	return os.NewSyscallError("fallocate", err)
}
