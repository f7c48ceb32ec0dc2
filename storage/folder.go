package storage

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-queue/holdfast/storage/content"
	"github.com/holdfast-queue/holdfast/storage/disk"
	"golang.org/x/sys/unix"
)

// Names in a data folder.
const (
	lockName    = "lock"
	formatName  = "format"
	anchorName  = "anchor"
	journalName = "journal"
	dbName      = "db"
	buildName   = "build" // tables in the making
	// CellName is the folder of what a node has besides its packets. It may be there before them.
	CellName = "cell"
	// MemberName is where the node's etcd is, in the folder CellName. Without it the folder is of no
	// cell.
	MemberName = "etcd"
)

// folder is a data folder whose lock is held until close.
type folder struct {
	path  string // absolute and without links, as the kernel names what is mapped
	lock  *disk.File
	dir   *disk.File // to sync the names in it
	fresh bool       // it held nothing before
	made  []string   // folders that were not there before, it first, with those above it
}

// openFolder makes the folder when it does not exist or is empty, takes its lock and checks its
// format. Nothing of Badger is touched before that.
func openFolder(path string) (_ *folder, err error) {
	made, err := makeFolder(path)
	if err != nil {
		return nil, fmt.Errorf("cannot make the data folder: %w", err)
	}
	f, err := findFolder(path)
	if err != nil {
		return nil, err
	}
	f.made = made
	defer func() {
		if err != nil {
			if f.fresh {
				f.unmake()
			}
			f.close()
		}
	}()
	if err := f.mine(); err != nil {
		return nil, err
	}
	// The folder of another program stays as it is, the lock included.
	if err := f.readFormat(content.FormatVersion); errors.Is(err, ErrFormat) {
		return nil, err
	}
	if err := f.takeLock(); err != nil {
		return nil, err
	}
	if err = f.readFormat(content.FormatVersion); errors.Is(err, fs.ErrNotExist) {
		f.fresh = true
		if err = syncNames(path, made); err == nil { // else another start would take the name for durable
			err = f.writeFormat()
		}
	}
	if err != nil {
		return nil, err
	}
	if err := disk.Mkdir(f.name(dbName), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("cannot make the database folder: %w", err)
	}
	if err := f.syncDir(); err != nil {
		return nil, err
	}
	return f, nil
}

// makeFolder makes a folder that is not there, with those above it.
func makeFolder(path string) (made []string, err error) {
	for at := path; ; at = filepath.Dir(at) {
		if _, err := disk.Stat(at); !errors.Is(err, fs.ErrNotExist) || at == filepath.Dir(at) {
			break
		}
		made = append(made, at)
	}
	return made, disk.MkdirAll(path, 0o700)
}

// syncNames makes the names of a folder and of those above it durable. All of them: one that was
// killed before may have made some. What it did not make need not let itself be synced.
func syncNames(path string, made []string) error {
	for at := path; at != filepath.Dir(at); at = filepath.Dir(at) {
		if err := syncNameOf(at); err != nil && (at == path || slices.Contains(made, at)) {
			return fmt.Errorf("cannot make the data folder: %w", err)
		}
	}
	return nil
}

// unmake removes what was made in a folder that held nothing before, and the folder if it was not
// there. Only who has the lock may: another may have begun to serve the folder. Whatever is left
// after a kill is as good as an empty folder.
func (f *folder) unmake() {
	if f.isLost(f.lock) { // another folder has the name now
		return
	}
	for _, name := range []string{buildName, journalName, dbName, anchorName, formatName, lockName} {
		_ = disk.RemoveAll(f.name(name))
	}
	for _, path := range f.made {
		_ = disk.Remove(path)
	}
}

// findFolder opens a folder that exists.
func findFolder(path string) (*folder, error) {
	path, err := filepath.Abs(path)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot find the data folder: %w", err)
	}
	dir, err := disk.OpenFile(path, unix.O_DIRECTORY, 0)
	if errors.Is(err, unix.ENOTDIR) {
		return nil, fmt.Errorf("%w: %s is a file", ErrNotFolder, path)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot open the data folder: %w", err)
	}
	return &folder{path: path, dir: dir}, nil
}

func (f *folder) name(file string) string { return filepath.Join(f.path, file) }

func (f *folder) syncDir() error {
	if err := f.dir.Sync(); err != nil {
		return fmt.Errorf("cannot sync the data folder: %w", err)
	}
	return nil
}

// syncName makes the names in a folder durable.
func syncName(path string) error {
	dir, err := disk.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// syncNameOf makes the name of a folder durable. Who may make a folder in another one need not have
// the right to read that, and so cannot sync it: then the file system does, with what comes next. A
// file system that can only be read, with this one below it, may know no sync of folders.
func syncNameOf(path string) error {
	err := syncName(filepath.Dir(path))
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EINVAL) {
		return nil
	}
	return err
}

func (f *folder) close() {
	if f.lock != nil {
		// Not by closing alone: a child that another goroutine is starting has a copy of the
		// descriptor until it runs.
		_ = unix.Flock(int(f.lock.Fd()), unix.LOCK_UN)
		_ = f.lock.Close()
	}
	_ = f.dir.Close()
}

// mine refuses a folder that holds somebody else's files, before anything is written to it.
func (f *folder) mine() error {
	if _, err := disk.Stat(f.name(formatName)); err == nil {
		return nil
	}
	names, err := f.dir.Names()
	if err != nil {
		return fmt.Errorf("cannot read the data folder: %w", err)
	}
	for _, name := range names {
		// A file system's own folder, and what a first start cut short left.
		if name != "lost+found" && name != lockName && name != CellName && !strings.HasSuffix(name, tmpSuffix) {
			return fmt.Errorf("%w: %s holds %q but no file %q; give an empty folder or one that holdfast made",
				ErrNotFolder, f.path, name, formatName)
		}
	}
	return nil
}

// takeLock takes the lock for as long as the process lives: the kernel gives it up with the last
// descriptor, so a killed server leaves none behind.
func (f *folder) takeLock() error {
	lock, err := disk.OpenFile(f.name(lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("cannot open the lock of the data folder: %w", err)
	}
	if err := f.flock(lock, unix.LOCK_EX); err != nil {
		return err
	}
	pid := strconv.Itoa(os.Getpid()) + "\n"
	_, err = lock.WriteAt([]byte(pid), 0)
	if err = errors.Join(err, lock.Truncate(int64(len(pid)))); err != nil {
		return fmt.Errorf("cannot write the lock of the data folder: %w", err)
	}
	return nil
}

// flock takes the lock, shared or not, and keeps the file as the folder's, or closes it.
func (f *folder) flock(lock *disk.File, how int) error {
	if err := unix.Flock(int(lock.Fd()), how|unix.LOCK_NB); err != nil {
		defer lock.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return fmt.Errorf("%w: %s is locked by %s; stop it first", ErrInUse, f.path, holder(lock))
		}
		return fmt.Errorf("cannot lock the data folder %s: %w", f.path, err)
	}
	// Who removes what it made removes the lock, too: this one would then keep out nobody.
	if f.isLost(lock) {
		_ = lock.Close()
		return fmt.Errorf("%w: the lock of %s was removed just now; try again", ErrInUse, f.path)
	}
	f.lock = lock
	return nil
}

// isLost says that a lock keeps out nobody: its file was removed, or has another name.
func (f *folder) isLost(lock *disk.File) bool {
	held, err := lock.Stat()
	if err != nil {
		return false // nobody knows: the system may be short of memory for a moment
	}
	named, err := disk.Stat(f.name(lockName))
	return !os.SameFile(held, named) && (err == nil || errors.Is(err, fs.ErrNotExist))
}

// holder says who holds a lock. The file has the process id of the server that held the folder
// last. That is the holder, unless somebody looks at it.
func holder(lock *disk.File) string {
	if unix.Flock(int(lock.Fd()), unix.LOCK_SH|unix.LOCK_NB) == nil {
		return "processes that look at it"
	}
	b := make([]byte, 20)
	n, _ := lock.ReadAt(b, 0)
	pid, err := strconv.Atoi(strings.TrimSpace(string(b[:n])))
	if err != nil {
		return "process unknown"
	}
	return "process " + strconv.Itoa(pid)
}

// readFormat checks the version of the folder, of which oldest is the lowest that will do. The
// error wraps ErrFormat if it will not, and fs.ErrNotExist if there is none.
func (f *folder) readFormat(oldest uint64) error {
	file, err := disk.Open(f.name(formatName))
	if err != nil {
		return fmt.Errorf("cannot read the format of the data folder: %w", err)
	}
	defer file.Close()
	b, err := io.ReadAll(io.LimitReader(file, 64))
	if err != nil {
		return fmt.Errorf("cannot read the format of the data folder: %w", err)
	}
	version, err := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 32)
	switch {
	case err != nil || version == 0:
		return fmt.Errorf("%w: file %s holds %q instead of a version number", ErrDamaged, f.name(formatName), b)
	case version > content.FormatVersion, version < content.FormatBefore:
		return fmt.Errorf("%w: %s has version %d and this program reads version %d; use the program that wrote it, or load a dump or backup that one makes into a new folder",
			ErrFormat, f.path, version, content.FormatVersion)
	case version < oldest:
		return fmt.Errorf("%w: %s has version %d, which this program can only dump: load a dump of it into a new folder",
			ErrFormat, f.path, version)
	}
	return nil
}

// writeFormat makes the folder one of the version that this program writes.
func (f *folder) writeFormat() error {
	return f.create(formatName, []byte(strconv.Itoa(content.FormatVersion)+"\n"))
}

const tmpSuffix = ".tmp"

// WriteFile writes a file of a folder whole or not at all, and syncs it.
func WriteFile(dir, name string, b []byte) error {
	f, err := findFolder(dir)
	if err != nil {
		return err
	}
	defer f.close()
	return f.create(name, b)
}

// create writes a file whole or not at all: under another name, synced, renamed, and the folder
// synced.
func (f *folder) create(name string, b []byte) error {
	tmp := f.name(name) + tmpSuffix
	file, err := disk.OpenFile(tmp, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("cannot make file %s: %w", f.name(name), err)
	}
	_, err = file.Write(b)
	if err = errors.Join(err, file.Sync(), file.Close()); err == nil {
		err = disk.Rename(tmp, f.name(name))
	}
	if err != nil {
		_ = disk.Remove(tmp)
		return fmt.Errorf("cannot make file %s: %w", f.name(name), err)
	}
	return f.syncDir()
}
