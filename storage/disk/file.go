package disk

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// File is an open file or folder. What it does not declare itself is that of package os.
type File struct {
	*os.File
	device Device // nil: the system's own
}

// Do has the device carry out a call, or say whether it fails. done is false where there is none.
func (f *File) Do(op Op, size int64) (done bool, err error) {
	if f.device == nil {
		return false, nil
	}
	return true, f.device.Do(&Call{Op: op, Path: f.Name(), File: f.File, Size: size})
}

// WriteAt is os.File.WriteAt.
func (f *File) WriteAt(b []byte, at int64) (int, error) {
	if f.device == nil {
		return f.File.WriteAt(b, at)
	}
	if err := f.device.Do(&Call{Op: OpWrite, Path: f.Name(), File: f.File, Data: b, At: at}); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Write is os.File.Write.
func (f *File) Write(b []byte) (n int, err error) {
	if f.device == nil {
		return f.File.Write(b)
	}
	at, err := f.Seek(0, io.SeekCurrent)
	if err == nil {
		n, err = f.WriteAt(b, at)
	}
	if err == nil {
		_, err = f.Seek(at+int64(n), io.SeekStart)
	}
	return n, err
}

// ReadFrom is os.File.ReadFrom.
func (f *File) ReadFrom(r io.Reader) (int64, error) {
	if f.device == nil {
		return f.File.ReadFrom(r)
	}
	return io.Copy(struct{ io.Writer }{f}, r)
}

// ReadAt is os.File.ReadAt.
func (f *File) ReadAt(b []byte, at int64) (int, error) {
	if _, err := f.Do(OpRead, 0); err != nil {
		return 0, err
	}
	return f.File.ReadAt(b, at)
}

// Stat is os.File.Stat.
func (f *File) Stat() (fs.FileInfo, error) {
	if _, err := f.Do(OpStat, 0); err != nil {
		return nil, err
	}
	return f.File.Stat()
}

// Truncate is os.File.Truncate.
func (f *File) Truncate(size int64) error {
	if done, err := f.Do(OpTruncate, size); done {
		return err
	}
	return f.File.Truncate(size)
}

// Sync is os.File.Sync, also of folders.
func (f *File) Sync() error {
	if done, err := f.Do(OpSync, 0); done {
		return err
	}
	return f.File.Sync()
}

// Piece is how many bytes go to or come from the device at a time where nobody waits for them. A
// sync that somebody waits for stands behind one piece at most.
const Piece = 256 << 10

// stretch is how many pieces go without a sync where the system syncs no part of a file.
const stretch = 16

// WritePieces writes a file of size bytes from its beginning and syncs it. piece returns n of them.
// wait is called before each piece, and before the sync. A piece is on the device before the next
// one is written. Where one fails, no later sync tells of it: its error is the caller's. A nil wait
// says that somebody waits for the file: then there is one sync, in the end.
func (f *File) WritePieces(size int64, piece func(at, n int64) []byte, wait func()) error {
	most := f.piece()
	for at := int64(0); at < size; at += most {
		n := min(most, size-at)
		if wait != nil {
			wait()
		}
		_, err := f.WriteAt(piece(at, n), at)
		if err == nil && wait != nil {
			err = f.syncRange(at, n)
		}
		if err == errors.ErrUnsupported {
			if err = nil; (at/most)%stretch == stretch-1 {
				err = f.Sync()
			}
		}
		if err != nil {
			return err
		}
	}
	if wait != nil {
		wait()
	}
	return f.Sync()
}

// piece is Piece, but less on a Device: files of tests are small, and have several pieces all the
// same.
func (f *File) piece() int64 {
	if f.device != nil {
		return 16 << 10
	}
	return Piece
}

// syncRange brings bytes of a file to the device, but not how long it is nor where they lie.
func (f *File) syncRange(at, n int64) error {
	if f.device == nil {
		return syncRange(f.File, at, n)
	}
	return f.device.Do(&Call{Op: OpSyncRange, Path: f.Name(), File: f.File, At: at, Size: n})
}

// Forget has a file that was synced be read from the device.
func (f *File) Forget() error {
	if done, err := f.Do(OpForget, 0); done {
		return err
	}
	return forget(f.File)
}

// Names returns what is in a folder, sorted.
func (f *File) Names() ([]string, error) {
	if _, err := f.Do(OpList, 0); err != nil {
		return nil, err
	}
	names, err := f.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}

// Map maps a file, to be read.
func (f *File) Map(size int64) ([]byte, error) {
	if _, err := f.Do(OpMap, size); err != nil {
		return nil, err
	}
	b, err := unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	return b, os.NewSyscallError("mmap", err)
}

// Close is os.File.Close.
func (f *File) Close() error {
	if f == nil {
		return os.ErrInvalid
	}
	return f.File.Close()
}
