package storage

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Badger has a lock of its own on the database folder. The folder is locked by
// this process, so who has Badger's is another program, or a child that a
// goroutine of this process is starting, which has copies of all descriptors
// until it runs. The child is waited for.
const (
	lockTries = 100
	lockPause = 5 * time.Millisecond
)

// judgeLock returns an error that wraps ErrInUse when another program has the
// database open. What it writes must not be judged, or cut, meanwhile.
func judgeLock(path string) error {
	dir, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot open the database folder: %w", err)
	}
	defer dir.Close() // gives the lock up
	for range lockTries {
		err = unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return unix.Flock(int(dir.Fd()), unix.LOCK_UN)
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("cannot lock the database folder: %w", err)
		}
		time.Sleep(lockPause)
	}
	who := "another program"
	if pid, err := os.ReadFile(filepath.Join(path, badgerPID)); err == nil && len(pid) < 20 {
		who = fmt.Sprintf("process %s", bytes.TrimSpace(pid))
	}
	return fmt.Errorf("%w: %s has the database %s open; stop it first", ErrInUse, who, path)
}

// badgerPID is the file in which Badger notes its process.
const badgerPID = "LOCK"
