package storage

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Badger holds a descriptor for each table and log, and what cannot be opened looks to it, and to
// what is checked here, as if it were damaged. Worse, a compaction that cannot open what it wrote
// drops that error (Badger v4.9.6), and removes the tables it read. So a limit of open files that
// is too low is told before anything is opened, and what the limit stops is never damage.
const (
	// workFiles is what a store may open beside the tables there are: what compactions write before
	// they remove anything, logs, and small files.
	workFiles = 256
	// lookFiles is the same for a view: logs as tables, and small files.
	lookFiles = 64
)

// checkFileLimit returns an error that wraps ErrTooManyFiles when the process may not open all
// tables of a database folder and some files beside.
func checkFileLimit(path string, beside int) error {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return fmt.Errorf("cannot read the limit of open files: %w", err)
	}
	tables, err := unlistedTables(path, nil)
	if err != nil {
		return err
	}
	if need := uint64(len(tables) + beside); need > uint64(l.Cur) {
		return fmt.Errorf("%w: this process may have %d open, and %d may be needed for the data folder, which has %d tables",
			ErrTooManyFiles, l.Cur, need, len(tables))
	}
	return nil
}
