// Package disk is the file system as the store uses it: the calls of package os that read or change
// a data folder. Below a folder where a Device is mounted, that carries them out. So a test makes
// calls fail, and knows what a power cut may leave. Nothing else mounts one.
//
//	disk.go    the calls by a path, and Device
//	file.go    those of an open file; file_linux.go has what only Linux does
//	simulated  a Device; only tests import it
package disk

import (
	"crypto/rand"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Op is a kind of call.
type Op string

// The calls that change something, and then those that do not.
const (
	OpCreate, OpMkdir, OpMkdirAll, OpLink   Op = "create", "mkdir", "mkdir all", "link"
	OpRename, OpRemove, OpRemoveAll         Op = "rename", "remove", "remove all"
	OpWrite, OpSync, OpTruncate, OpAllocate Op = "write", "sync", "truncate", "allocate"
	OpSyncRange                             Op = "sync range" // a part of a file
	OpForget                                Op = "forget"     // what memory has of a file

	OpOpen, OpStat, OpList, OpSpace Op = "open", "stat", "list", "space"
	OpRead, OpMap                   Op = "read", "map"
)

// Call is one call.
type Call struct {
	Op    Op
	Path  string
	To    string      // of OpRename and OpLink
	Perm  fs.FileMode // of what is made
	Flags int         // of OpCreate and OpOpen
	File  *os.File    // that is open; the device sets it in OpCreate and OpOpen
	Data  []byte      // of OpWrite
	At    int64       // of OpWrite and OpSyncRange
	Size  int64       // of OpTruncate, OpAllocate and OpSyncRange; the device sets it in OpSpace, with Free
	Free  int64
}

// Device carries out the calls below a folder.
type Device interface {
	// Do carries out a call that changes something, OpOpen and OpSpace. Of any other one it says
	// whether that fails.
	Do(c *Call) error
}

var (
	mounts  sync.Map     // devices by their folders; only tests have some
	mounted atomic.Int64 // how many
)

// Mount has a device carry out what is done below a folder. unmount ends that.
func Mount(folder string, d Device) (unmount func()) {
	mounts.Store(folder, d)
	mounted.Add(1)
	return func() {
		mounts.Delete(folder)
		mounted.Add(-1)
	}
}

// Mounted says that there is a device.
func Mounted() bool { return mounted.Load() > 0 }

// of returns the device that a path lies on; nil for the system's own.
func of(path string) Device {
	for above := ""; Mounted() && path != above; path = filepath.Dir(path) {
		if d, ok := mounts.Load(path); ok {
			return d.(Device)
		}
		above = path
	}
	return nil
}

// change carries out a call that changes something, where no device does it by fn.
func change(c *Call, fn func() error) error {
	if d := of(c.Path); d != nil {
		return d.Do(c)
	}
	return fn()
}

// read reads by fn, unless a device has that fail.
func read[T any](op Op, path string, fn func(path string) (T, error)) (v T, err error) {
	if d := of(path); d != nil {
		err = d.Do(&Call{Op: op, Path: path})
	}
	if err == nil {
		v, err = fn(path)
	}
	return v, err
}

// Open is os.Open.
func Open(path string) (*File, error) { return OpenFile(path, os.O_RDONLY, 0) }

// OpenFile is os.OpenFile.
func OpenFile(path string, flags int, perm fs.FileMode) (f *File, err error) {
	c := &Call{Op: OpOpen, Path: path, Perm: perm, Flags: flags}
	if flags&os.O_CREATE != 0 {
		c.Op = OpCreate
	}
	d := of(path)
	if d != nil {
		err = d.Do(c)
	}
	if err == nil && c.File == nil {
		c.File, err = os.OpenFile(path, flags, perm)
	}
	if err != nil {
		return nil, err
	}
	return &File{c.File, d}, nil
}

// CreateTemp makes a file whose name is chance, with a suffix.
func CreateTemp(dir, suffix string) (*File, error) {
	return OpenFile(filepath.Join(dir, rand.Text()+suffix), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
}

// Mkdir is os.Mkdir.
func Mkdir(path string, perm fs.FileMode) error {
	return change(&Call{Op: OpMkdir, Path: path, Perm: perm}, func() error { return os.Mkdir(path, perm) })
}

// MkdirAll is os.MkdirAll.
func MkdirAll(path string, perm fs.FileMode) error {
	return change(&Call{Op: OpMkdirAll, Path: path, Perm: perm}, func() error { return os.MkdirAll(path, perm) })
}

// Symlink is os.Symlink.
func Symlink(to, path string) error {
	return change(&Call{Op: OpLink, Path: path, To: to}, func() error { return os.Symlink(to, path) })
}

// Rename is os.Rename.
func Rename(from, to string) error {
	return change(&Call{Op: OpRename, Path: from, To: to}, func() error { return os.Rename(from, to) })
}

// Remove is os.Remove.
func Remove(path string) error {
	return change(&Call{Op: OpRemove, Path: path}, func() error { return os.Remove(path) })
}

// RemoveAll is os.RemoveAll.
func RemoveAll(path string) error {
	return change(&Call{Op: OpRemoveAll, Path: path}, func() error { return os.RemoveAll(path) })
}

// Stat is os.Stat.
func Stat(path string) (fs.FileInfo, error) { return read(OpStat, path, os.Stat) }

// Lstat is os.Lstat.
func Lstat(path string) (fs.FileInfo, error) { return read(OpStat, path, os.Lstat) }

// ReadDir is os.ReadDir.
func ReadDir(path string) ([]fs.DirEntry, error) { return read(OpList, path, os.ReadDir) }

// ReadFile is os.ReadFile.
func ReadFile(path string) ([]byte, error) { return read(OpRead, path, os.ReadFile) }

// Space is how many bytes of the file system of a path are free to this process, and how many it
// has.
func Space(path string) (free, total int64, err error) {
	c := &Call{Op: OpSpace, Path: path}
	err = change(c, func() error {
		var st unix.Statfs_t
		err := unix.Statfs(path, &st)
		for err == unix.EINTR {
			err = unix.Statfs(path, &st)
		}
		c.Free, c.Size = int64(st.Bavail)*int64(st.Bsize), int64(st.Blocks)*int64(st.Bsize)
		return err
	})
	return c.Free, c.Size, err
}
