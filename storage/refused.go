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

// refusals are the errors of the system that are not about what a file holds, each with the opening
// error that it is.
func refusals() map[unix.Errno]error {
	return map[unix.Errno]error{
		unix.EMFILE: ErrTooManyFiles,
		unix.ENFILE: ErrTooManyFiles,
		unix.EACCES: ErrRefused,
		unix.EPERM:  ErrRefused,
		unix.EROFS:  ErrRefused,
		unix.ENOMEM: ErrRefused,
	}
}

// refused returns what the system refuses by an error, nil if nothing. Not every error of Badger
// wraps its cause.
func refused(err error) error {
	if err == nil {
		return nil
	}
	for cause, what := range refusals() {
		if errors.Is(err, cause) || strings.Contains(err.Error(), cause.Error()) {
			return what
		}
	}
	return nil
}

// refusedBySystem tells whether an error says that the system refused something.
func refusedBySystem(err error) bool { return refused(err) != nil }

// explainRefusal turns an error that the system's refusal or lack of room caused into one that
// calls nothing damaged. It returns any other error as it is.
func explainRefusal(err error) error {
	const sound = "nothing was found wrong with the data folder"
	what := refused(err)
	switch {
	case errors.Is(err, unix.ENOSPC):
		return fmt.Errorf("%w: %s; %s", ErrFull, about(err), sound)
	case temporary(err):
		return fmt.Errorf("%w: %w", ErrTemporary, err)
	case what == nil, errors.Is(err, what):
		return err
	case what == ErrTooManyFiles:
		return fmt.Errorf("%w; %s", what, sound)
	}
	return fmt.Errorf("%w: %s; %s", what, about(err), sound)
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
