package storage

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Files of a database are read through mappings, and what the file system
// cannot give then is a fault and no error. On a device that is an I/O error.
// On a file system in memory (tmpfs) it may be lack of room, too: it makes
// pages for the holes of a file when a mapping is read, and most of a log is a
// hole. So a log is mapped up to its last byte that is not zero, and a file
// that gives a fault is read with read(2), which takes no room for holes and
// says why it cannot.

// errFault means that a part of a mapping could not be had.
var errFault = errors.New("a part of it could not be read: the device failed, or its file system had no room for it")

// errNoRoom means that a file can be read, but there is no room to map it.
var errNoRoom = errors.New("there is no room left in its file system to map it into memory, although it can be read")

// faultError makes an error of a panic: one that wraps errFault of a fault.
func faultError(p any) error {
	if _, ok := p.(interface{ Addr() uintptr }); ok {
		return errFault
	}
	return fmt.Errorf("%v", p)
}

// withLog calls fn with what a log holds, valid during the call, without the
// zeros at its end; of an empty one with no bytes. What fn changes in it stays
// there. Where the mapping gives a fault fn is called again, with what
// read(2) gives. A panic of fn is an error.
func withLog(name string, fn func(b []byte) error) error {
	b, unmap, err := mapLog(name)
	if err != nil {
		return err
	}
	err = guarded(b, fn)
	unmap()
	if !errors.Is(err, errFault) {
		return err
	}
	var unread error
	if b, err = readPages(name, func(_ int, err error) { unread = err }); err == nil {
		err = unread
	}
	if err != nil {
		return err
	}
	return guarded(b, fn)
}

// guarded calls fn, and makes an error of a panic.
func guarded(b []byte, fn func(b []byte) error) (err error) {
	defer recoverFault(&err)()
	return fn(b)
}

// mapLog maps a log up to the zeros at its end, for reading and for changes
// that stay here.
func mapLog(name string) (b []byte, unmap func(), err error) {
	file, size, err := openMapped(name)
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	if size > 0 {
		size = dataEnd(file, size)
	}
	return mapOpen(file, size)
}

// dataEnd returns how much of a file of size bytes must be read so that only
// zeros follow: whole pages, and at least one. A record ends in a checksum,
// which may end in zeros.
func dataEnd(file io.ReaderAt, size int64) int64 {
	const page, chunk = 4096, 1 << 18
	b, zeros := make([]byte, chunk), make([]byte, chunk)
	end := size
	for end > 0 {
		from := (end - 1) / chunk * chunk
		part := b[:end-from]
		if n, err := file.ReadAt(part, from); n < len(part) && err != nil {
			break // of what is before, and who reads it sees why
		}
		if !bytes.Equal(part, zeros[:len(part)]) {
			end = from + int64(len(bytes.TrimRight(part, "\x00")))
			break
		}
		end = from
	}
	const sum = 4
	return min(size, max(1, (end+sum+page-1)/page)*page)
}

// whyFault tells why a file that gave a fault could not be read: the error
// that read(2) gives, or errNoRoom when it gives none.
func whyFault(name string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := io.Copy(io.Discard, onlyReader{file}); err != nil {
		return err
	}
	return errNoRoom
}

// onlyReader hides that a file can be copied without being read.
type onlyReader struct{ io.Reader }

// openMapped opens a file to map it, and judges its size.
func openMapped(name string) (file *os.File, size int64, err error) {
	if file, err = os.Open(name); err != nil {
		return nil, 0, err
	}
	info, err := file.Stat()
	if err == nil {
		err = judgeSize(info.Size())
	}
	if err != nil {
		_ = file.Close()
		return nil, 0, err
	}
	return file, info.Size(), nil
}

// mapOpen maps the first size bytes of a file.
func mapOpen(file *os.File, size int64) (b []byte, unmap func(), err error) {
	if size == 0 {
		return nil, func() {}, nil
	}
	b, err = unix.Mmap(int(file.Fd()), 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE)
	if err != nil {
		return nil, nil, &os.PathError{Op: "mmap", Path: file.Name(), Err: err}
	}
	return b, func() { _ = unix.Munmap(b) }, nil
}

// mapFile maps a file for reading; an empty one gives no bytes. The mapping is
// private, so that who lets go of the pages of Badger's mappings does not take
// it for one of them: it can be gone by then.
func mapFile(name string) ([]byte, error) {
	file, size, err := openMapped(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if size == 0 {
		return nil, nil
	}
	b, err := unix.Mmap(int(file.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		return nil, &os.PathError{Op: "mmap", Path: name, Err: err}
	}
	return b, nil
}

// judgeSize returns an error for a file that is larger than Badger makes any,
// which is not worth the time it takes to look through.
func judgeSize(size int64) error {
	if size > maxLogBytes {
		return fmt.Errorf("it has %d bytes, more than any table or log", size)
	}
	return nil
}
