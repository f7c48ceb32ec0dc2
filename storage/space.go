package storage

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Level says what the room left on the disk allows.
type Level uint8

// The levels, in rising order of need.
const (
	Normal Level = iota
	NoPush       // refuse pushes: what is left is kept for pops and for Badger's own work
	Stop         // refuse everything: Apply returns ErrFull
)

// String names the level for people.
func (l Level) String() string {
	return [...]string{"normal", "no-push", "stop"}[min(l, Stop)]
}

// Space is the state of the file system below the folder, in bytes.
type Space struct {
	Free, Total int64
	Level       Level
}

func statSpace(path string) (free, total int64, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return 0, 0, fmt.Errorf("cannot tell the free space of %s: %w", path, err)
	}
	size := int64(st.Bsize)
	return int64(st.Bavail) * size, int64(st.Blocks) * size, nil
}
