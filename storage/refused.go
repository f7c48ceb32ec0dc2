package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// The system may refuse a process more open files, memory, or the right to read or write. That says
// nothing about the folder: it is never called damage, and never makes a salvage leave something
// out.

// refusal is an error of the system that is not about what a file holds.
type refusal struct {
	cause  unix.Errno
	what   error  // one of the opening errors of this package
	remedy string // what to do
}

func refusals() []refusal {
	const (
		limit  = "raise the limit of the process (ulimit -n) or of the system (fs.file-max), and try again"
		rights = "give this user the right to read its files, and to write unless it only looks, and try again"
	)
	return []refusal{
		{unix.EMFILE, ErrTooManyFiles, limit},
		{unix.ENFILE, ErrTooManyFiles, limit},
		{unix.EACCES, ErrRefused, rights},
		{unix.EPERM, ErrRefused, rights},
		{unix.EROFS, ErrRefused, "mount its file system for writing, and try again"},
		{unix.ENOMEM, ErrRefused, "free some memory, or raise the limit of the process (ulimit -v), and try again"},
	}
}

// refused returns what the system refuses by an error, if it does. Not every error of Badger wraps
// its cause.
func refused(err error) (r refusal, ok bool) {
	if err == nil {
		return r, false
	}
	for _, r := range refusals() {
		if errors.Is(err, r.cause) {
			return r, true
		}
	}
	for _, r := range refusals() {
		if strings.Contains(err.Error(), r.cause.Error()) {
			return r, true
		}
	}
	return r, false
}

// refusedBySystem tells whether an error says that the system refused something.
func refusedBySystem(err error) bool {
	_, ok := refused(err)
	return ok
}

// explainRefusal turns an error that the system's refusal or lack of room caused into one that
// calls nothing damaged and says what to do. It returns any other error as it is.
func explainRefusal(err error) error {
	const sound = "nothing was found wrong with the data folder"
	if errors.Is(err, errNoRoom) {
		return fmt.Errorf("%w: %s; %s: make room there, or copy the folder to where there is some, and try again", ErrFull, about(err), sound)
	}
	r, ok := refused(err)
	switch {
	case !ok, errors.Is(err, r.what), temporary(err):
		return err
	case r.what == ErrTooManyFiles:
		return fmt.Errorf("%w: %s; %s", r.what, sound, r.remedy)
	}
	return fmt.Errorf("%w: %s; %s: %s", r.what, about(err), sound, r.remedy)
}

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
	text, _, _ := strings.Cut(plain(err), "; ")
	return text
}
