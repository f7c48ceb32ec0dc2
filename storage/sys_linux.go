package storage

import (
	"os"

	"golang.org/x/sys/unix"
)

// fdatasync brings what was written to a file to the device.
func fdatasync(f *os.File) error {
	for {
		// Interrupted means not begun; any other error is final, because the kernel marks pages
		// clean that it failed to write.
		err := unix.Fdatasync(int(f.Fd()))
		if err != unix.EINTR {
			return err
		}
	}
}
