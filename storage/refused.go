package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/holdfast-queue/holdfast/storage/journal"
	"github.com/holdfast-queue/holdfast/storage/tables"
)

// The system may refuse a process more open files, memory, or the right to read or write. That says
// nothing about the folder: it is never called damage, and never makes a salvage leave something
// out.

// refused returns what the system refuses by an error; nil if nothing.
func refused(err error) error {
	var cause unix.Errno
	errors.As(err, &cause)
	switch cause {
	case unix.EMFILE, unix.ENFILE:
		return ErrTooManyFiles
	case unix.EACCES, unix.EPERM, unix.EROFS, unix.ENOMEM:
		return ErrRefused
	}
	return nil
}

// explainRefusal turns an error that the system's refusal or lack of room caused into one that
// calls nothing damaged. It returns any other error as it is.
func explainRefusal(err error) error {
	what := refused(err)
	if errors.Is(err, unix.ENOSPC) {
		what = ErrFull
	} else if temporary(err) {
		return fmt.Errorf("%w: %w", ErrTemporary, err)
	}
	if what == nil || errors.Is(err, what) {
		return err
	}
	return fmt.Errorf("%w: %s; nothing was found wrong with the data folder", what, about(err))
}

const scratchPrefix = "holdfast-view-"

// temporary tells whether an error is about a temporary folder, and not about the data folder.
func temporary(err error) bool {
	file := (*fs.PathError)(nil)
	return errors.As(err, &file) && !errors.Is(err, ErrDamaged) &&
		(filepath.Clean(file.Path) == filepath.Clean(os.TempDir()) || strings.Contains(file.Path, "/"+scratchPrefix))
}

// about is the text of an error without the claim that its folder is damaged: the file and the
// cause when it names one.
func about(err error) string {
	if file := (*fs.PathError)(nil); errors.As(err, &file) {
		return file.Error()
	}
	text, _, _ := strings.Cut(Plain(err), "; ")
	return text
}

// isUnknown says that nobody knows what reached the device, so nothing is tried again.
func isUnknown(err error) bool {
	return errors.Is(err, tables.ErrUnknown) || errors.Is(err, journal.ErrUnknown)
}

func isFull(err error) bool {
	return !isUnknown(err) && (errors.Is(err, ErrFull) || errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT))
}

// full makes an error of a disk that is full an ErrFull.
func full(err error) error {
	if isFull(err) {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return err
}
