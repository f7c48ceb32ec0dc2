package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// wal forces commits to the device with one flush instead of the two that Badger's SyncWrites
// costs: one for the log of the memory table, one for the value log, which is empty here. Why that
// is enough (names are Badger's):
//
//  1. A commit is in one log whole. writeRequests calls ensureRoomForWrite,
//     which alone makes a new log (newMemTable), before it writes a request,
//     and a transaction is one request.
//  2. So a commit is in the newest log there is when it returns, and at most
//     one log is made for each: their numbers rise by one, and looking for
//     the next number after each commit misses none.
//  3. Badger writes logs through a shared mapping. On Linux its own
//     msync(MS_SYNC) is vfs_fsync_range of the mapped file, and fdatasync
//     flushes the same dirty pages of the same inode.
//  4. An older log holds only commits that were flushed when they were made
//     (SyncAlways), or is kept here until it was (SyncInterval). Badger
//     deletes a log (OnClose of its skiplist) after handleMemTableFlush has
//     put its entries into a table that CreateTable synced, and
//     addLevel0Table has written and synced the manifest.
//     Where nobody calls flush (SyncNever, or Badger syncs by itself) they
//     are not kept: no commit is promised to be on the device, or it is there.
//  5. The name of a new log is on the device when the folder was synced,
//     which flush does before the first commit in it is acknowledged.
//
// An error is final: the kernel marks pages clean that it failed to write, so a second flush would
// succeed without them. The store stops instead.
type wal struct {
	dir    *os.File // the database folder
	sync   func(*os.File) error
	onMade func(*os.File) // called with each log when it is found
	keep   bool           // older logs wait for flush

	mu     sync.Mutex // guards what follows
	next   int        // number of the log that follows the newest
	files  []*walFile // the newest last; older ones until they are synced
	newDir bool       // a log was made since the folder was synced
}

type walFile struct {
	file  *os.File
	dirty bool
}

// openWAL finds the newest log of an open database. With keep somebody calls flush again and again.
func openWAL(path string, keep bool, sync func(*os.File) error, onMade func(*os.File)) (*wal, error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot open the database folder: %w", err)
	}
	w := &wal{dir: dir, keep: keep, sync: sync, onMade: onMade}
	names, err := dir.Readdirnames(-1)
	if err != nil {
		_ = dir.Close()
		return nil, fmt.Errorf("cannot read the database folder: %w", err)
	}
	newest := 0
	for _, name := range names {
		if number, ok := logNumber(name); ok {
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
		file, err := os.Open(filepath.Join(w.dir.Name(), logName(w.next)))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("cannot open the log of the database: %w", err)
		}
		w.files = append(w.files, &walFile{file: file})
		w.next++
		w.newDir = true
		w.onMade(file)
	}
}

// committed notes that a transaction was written to the newest log.
func (w *wal) committed() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.probe(); err != nil {
		return err
	}
	newest := len(w.files) - 1
	w.files[newest].dirty = true
	if !w.keep {
		for _, f := range w.files[:newest] {
			_ = f.file.Close()
		}
		w.files = append(w.files[:0], w.files[newest])
	}
	return nil
}

// flush forces all that was committed before the call to the device. Called by one goroutine at a
// time.
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
