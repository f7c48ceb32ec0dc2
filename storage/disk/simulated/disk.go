// Package simulated has a device for storage/disk, which makes calls fail, knows what of a folder a
// power cut leaves, and is full or damaged when a test wants it. Only tests import it.
//
//	disk.go    Disk, and what it does in each call
//	tree.go    files and folders, and what of them is on the device
//	cut.go     what a power cut leaves
//	play.go    seeds, and the flags that choose them
//
// A seed decides all that a simulation does: which calls come in which order, with which bytes. For
// that one goroutine does everything, by storage.Options.Stepped and netproto.Stepped. Time is that
// of testing/synctest. Names and salts of the journal come from crypto/rand, which is seeded. Where
// a device is mounted, tables are opened one after the other, and names in a folder come sorted.
// What a simulation draws or says must not follow the order of a map. What may differ: the process
// id in the lock, names of temporary folders, which a trace leaves out, and what goroutines of
// Badger do, which touch no file of the store.
package simulated

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"github.com/holdfast-queue/holdfast/storage/disk"
)

// Disk is a device below a folder. What is written is in the folder at once, as in the kernel's
// memory: so others read it, map it and follow links in it. The Disk knows what of that is on the
// device.
type Disk struct {
	// Hook is called before each call, with its number from 1 on. Its error is that of the call, which
	// does nothing, or a part in a write or a sync. ErrGarbled is none. It may run other work, Freeze
	// the disk, or have Leave say what a cut leaves. nil: nothing.
	Hook func(n int64, c *disk.Call) error

	folder  string
	rand    *rand.Rand
	unmount func()

	mu      sync.Mutex // guards what follows
	root    *node
	open    map[*os.File]*node
	pending []*naming // in order
	calls   int64
	used    int64 // bytes
	room    int64 // bytes; 0: no end
	frozen  bool
}

// ErrFrozen is the error of the calls of a frozen disk, which do nothing.
var ErrFrozen = errors.New("the process is dead")

// ErrGarbled has a sync tell of no error, although the device has a bit that was not written.
var ErrGarbled = errors.New("the device has another bit")

// Mount makes what lies below a folder a Disk, all of which is on the device.
func Mount(folder string, seed uint64) (d *Disk, err error) {
	d = &Disk{folder: folder, rand: rand.New(rand.NewPCG(seed, 1)), open: map[*os.File]*node{}}
	if d.root, err = d.load(folder); err != nil {
		return nil, err
	}
	d.unmount = disk.Mount(folder, d)
	return d, nil
}

// Unmount makes the folder one of the system's again.
func (d *Disk) Unmount() { d.unmount() }

// Freeze has all calls fail, as if their process were dead, until Thaw.
func (d *Disk) Freeze() { d.mu.Lock(); defer d.mu.Unlock(); d.frozen = true }

// Thaw lets another process use the disk. Nothing is open. With evict the kernel has forgotten all
// that it takes to be on the device, so that is read from there.
func (d *Disk) Thaw(evict bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.frozen = false
	clear(d.open)
	if evict {
		return d.root.evict(d.folder)
	}
	return nil
}

// Calls is how many calls there were.
func (d *Disk) Calls() int64 { d.mu.Lock(); defer d.mu.Unlock(); return d.calls }

// Room has files take so many bytes at most; 0 is no end. Used is how many they take.
func (d *Disk) Room(bytes int64) { d.mu.Lock(); defer d.mu.Unlock(); d.room = bytes }

// Used is how many bytes all files take.
func (d *Disk) Used() int64 { d.mu.Lock(); defer d.mu.Unlock(); return d.used }

// before counts a call, and asks the hook.
func (d *Disk) before(c *disk.Call) (err error) {
	d.mu.Lock()
	d.calls++
	n, frozen := d.calls, d.frozen
	d.mu.Unlock()
	if !frozen && d.Hook != nil {
		err = d.Hook(n, c)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.frozen {
		return fmt.Errorf("%s %s: %w", c.Op, c.Path, ErrFrozen)
	}
	if err != nil {
		return &fs.PathError{Op: string(c.Op), Path: c.Path, Err: err}
	}
	return nil
}

// Do implements disk.Device.
func (d *Disk) Do(c *disk.Call) error {
	if c.Op == disk.OpRemoveAll {
		return d.removeAll(c.Path)
	}
	err := d.before(c)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.frozen || err != nil && c.Op != disk.OpWrite && c.Op != disk.OpSync && c.Op != disk.OpSyncRange {
		return err
	}
	switch c.Op {
	case disk.OpOpen, disk.OpCreate:
		return d.opened(c)
	case disk.OpMkdir:
		return d.made(c.Path, os.Mkdir(c.Path, c.Perm), &node{dir: true})
	case disk.OpMkdirAll:
		return d.makeAll(c.Path, c.Perm)
	case disk.OpLink:
		return d.made(c.Path, os.Symlink(c.To, c.Path), &node{link: true})
	case disk.OpRename:
		return d.renamed(c, os.Rename(c.Path, c.To))
	case disk.OpRemove:
		return d.removed(c.Path, os.Remove(c.Path))
	case disk.OpSpace:
		if c.Free, c.Size = 1<<40, 1<<40; d.room > 0 {
			c.Free, c.Size = max(0, d.room-d.used), d.room
		}
		return nil
	}
	if n := d.open[c.File]; n != nil {
		return d.file(c, n, err)
	}
	return err
}

// file carries out a call on what is open; err is that of the hook.
func (d *Disk) file(c *disk.Call, n *node, err error) error {
	switch c.Op {
	case disk.OpWrite:
		return d.write(c, n, err)
	case disk.OpAllocate, disk.OpTruncate:
		if c.Op == disk.OpAllocate && !d.grow(n, c.Size) {
			return os.NewSyscallError("fallocate", syscall.ENOSPC)
		}
		d.used += c.Size - n.size
		n.size = c.Size
		n.waiting = append(n.waiting, write{size: c.Size})
		return c.File.Truncate(c.Size)
	case disk.OpSync:
		return d.sync(n, err)
	case disk.OpSyncRange:
		return d.syncRange(c, n, err)
	case disk.OpForget:
		return n.forget(c.File)
	}
	return nil
}

// grow takes the room that a file needs to have so many bytes, if that is there.
func (d *Disk) grow(n *node, to int64) bool {
	more := max(0, to-n.size)
	if more > 0 && d.room > 0 && d.used+more > d.room {
		return false
	}
	d.used += more
	n.size += more
	return true
}

// write writes to a file. Of one that fails some sectors were written, and nobody knows how many: a
// system copies whole pages.
func (d *Disk) write(c *disk.Call, n *node, err error) error {
	data := append([]byte{}, c.Data...)
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return err
	case err != nil:
		data = data[:d.rand.IntN(len(data)+1)/sector*sector]
	}
	if !d.grow(n, c.At+int64(len(data))) {
		return &fs.PathError{Op: "write", Path: c.Path, Err: syscall.ENOSPC}
	}
	if len(data) > 0 {
		n.waiting = append(n.waiting, write{at: c.At, data: data})
	}
	_, failed := c.File.WriteAt(data, c.At)
	return errors.Join(err, failed)
}

// sync brings a file, or the names in a folder, to the device. One that fails brings a part of a
// file, and the kernel forgets that the rest is not there.
func (d *Disk) sync(n *node, err error) error {
	if n.dir {
		if err == nil {
			d.settle(n)
		}
		return err
	}
	for _, w := range n.waiting {
		if err == nil || errors.Is(err, ErrGarbled) || d.rand.IntN(2) == 0 {
			n.device = w.on(n.device)
		} else {
			n.differs = true
		}
	}
	n.waiting = n.waiting[:0]
	if errors.Is(err, ErrGarbled) {
		if len(n.device) > 0 {
			n.differs = true
			n.device[d.rand.IntN(len(n.device))] ^= 1 << d.rand.IntN(8)
		}
		return nil
	}
	return err
}

// syncRange brings a part of a file to the device, which a cut may take all the same: it promises
// nothing. Where it fails, the kernel takes what it has lost of it for written, and no later sync
// brings that.
func (d *Disk) syncRange(c *disk.Call, n *node, err error) error {
	if err == nil {
		return nil
	}
	n.waiting = slices.DeleteFunc(n.waiting, func(w write) bool {
		return w.data != nil && c.At <= w.at && w.at < c.At+c.Size && d.rand.IntN(2) == 0
	})
	n.differs = true
	return err
}

// removeAll removes what is at a path, one call after the other.
func (d *Disk) removeAll(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && info.IsDir() {
		entries, _ := os.ReadDir(path)
		for _, e := range entries {
			if err := d.removeAll(filepath.Join(path, e.Name())); err != nil {
				return err
			}
		}
	}
	return d.Do(&disk.Call{Op: disk.OpRemove, Path: path})
}
