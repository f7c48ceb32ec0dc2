package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// wal forces commits to the device with one flush instead of the two that
// Badger's SyncWrites costs (one for the log of the memory table, one for the
// value log, which is empty here).
type wal struct {
	dir  *os.File // the database folder
	sync func(*os.File) error

	mu     sync.Mutex // guards what follows
	next   int        // number of the log that follows the newest
	files  []*walFile // the newest last; older ones until they are synced
	newDir bool       // a log was made since the folder was synced
}

type walFile struct {
	file  *os.File
	dirty bool
}

const walSuffix = ".mem"

func walName(number int) string { return fmt.Sprintf("%05d%s", number, walSuffix) }

// openWAL finds the newest log of an open database.
func openWAL(path string) (*wal, error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot open the database folder: %w", err)
	}
	w := &wal{dir: dir, sync: fdatasync}
	names, err := dir.Readdirnames(-1)
	if err != nil {
		_ = dir.Close()
		return nil, fmt.Errorf("cannot read the database folder: %w", err)
	}
	newest := 0
	for _, name := range names {
		number, err := strconv.Atoi(strings.TrimSuffix(name, walSuffix))
		if err == nil && strings.HasSuffix(name, walSuffix) {
			newest = max(newest, number)
		}
	}
	w.next = newest
	if err := w.probe(); err != nil {
		_ = dir.Close()
		return nil, err
	}
	if len(w.files) == 0 {
		_ = dir.Close()
		return nil, fmt.Errorf("%w: the database folder %s has no log", ErrDamaged, path)
	}
	return w, nil
}

// probe opens the logs that were made since the last call.
func (w *wal) probe() error {
	for {
		file, err := os.Open(filepath.Join(w.dir.Name(), walName(w.next)))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("cannot open the log of the database: %w", err)
		}
		w.files = append(w.files, &walFile{file: file})
		w.next++
		w.newDir = true
	}
}

// committed notes that a transaction was written to the newest log.
func (w *wal) committed() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.probe(); err != nil {
		return err
	}
	w.files[len(w.files)-1].dirty = true
	return nil
}

// flush forces all that was committed before the call to the device. Called
// by one goroutine at a time.
func (w *wal) flush() error {
	w.mu.Lock()
	files, newDir := w.files, w.newDir
	w.files, w.newDir = w.files[len(w.files)-1:], false
	dirty := make([]bool, len(files))
	for i, f := range files {
		dirty[i], f.dirty = f.dirty, false
	}
	w.mu.Unlock()
	for i, f := range files {
		if dirty[i] {
			if err := w.sync(f.file); err != nil {
				return fmt.Errorf("cannot sync the log %s: %w", f.file.Name(), err)
			}
		}
		if i < len(files)-1 {
			_ = f.file.Close()
		}
	}
	if newDir {
		if err := w.dir.Sync(); err != nil {
			return fmt.Errorf("cannot sync the database folder: %w", err)
		}
	}
	return nil
}

func (w *wal) close() {
	for _, f := range w.files {
		_ = f.file.Close()
	}
	_ = w.dir.Close()
}
