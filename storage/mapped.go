package storage

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Tables are read through mappings. What the file system cannot give then is a fault, not an error.
// On a device that is an I/O error. On a file system in memory (tmpfs) it may be lack of room: it
// makes pages for the holes of a file when a mapping is read. So a file that gives a fault is read
// again with read(2), which takes no room for holes and says why it cannot. Logs are mostly holes
// and are read with read(2) at once.

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

// readLogFile reads a log. Any part that cannot be read is an error.
func readLogFile(name string) ([]byte, error) {
	var unread error
	b, err := readPages(name, func(_ int, err error) { unread = err })
	if err == nil {
		err = unread
	}
	return b, err
}

// readPages reads a file as far as the device gives it. Pages that it does not give are zeros, and
// bad is called with where they are.
func readPages(name string, bad func(at int, err error)) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	const page, most = 4096, 4 * maxMemTable
	if info.Size() > most {
		return nil, tooLong(info)
	}
	data := make([]byte, info.Size())
	for at := 0; at < len(data); {
		n, err := file.ReadAt(data[at:], int64(at))
		if at += n; err == nil || err == io.EOF {
			break
		}
		bad(at, err)
		at += page - at%page
	}
	return data, nil
}

// whyFault tells why a file that gave a fault could not be read: the error that read(2) gives, or
// errNoRoom when it gives none.
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

// mapFile maps a file for reading; an empty one gives no bytes. The mapping is private, so that
// dropMappings does not take it for one of Badger's: it can be gone by then.
func mapFile(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, err
	case info.Size() > maxLogBytes:
		return nil, tooLong(info)
	case info.Size() == 0:
		return nil, nil
	}
	b, err := unix.Mmap(int(file.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		return nil, &os.PathError{Op: "mmap", Path: name, Err: err}
	}
	return b, nil
}

func tooLong(info os.FileInfo) error {
	return fmt.Errorf("it has %d bytes, more than any table or log", info.Size())
}
