package tables

import "golang.org/x/sys/unix"

// bring has the system read a piece of a mapped file from the device. Where it cannot, that is done
// at the first use.
func bring(piece []byte) {
	if unix.Madvise(piece, unix.MADV_WILLNEED) == nil {
		_ = unix.Madvise(piece, unix.MADV_POPULATE_READ)
	}
}
