package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// folder is the argument that names a data folder.
type folder string

// Validate is called with the parsed argument.
func (f folder) Validate() error {
	if f == "" {
		return errors.New("the name is empty: expected that of a data folder")
	}
	return nil
}

// check refuses a name that cannot be a data folder's; there says that the folder must exist already.
func (f folder) check(there bool) error {
	info, err := os.Stat(string(f))
	switch {
	case errors.Is(err, fs.ErrNotExist) && !there:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s does not exist: expected a data folder, as \"holdfast serve\" and \"holdfast load\" make one", f)
	case err != nil:
		return fmt.Errorf("cannot look at the data folder %s: %w", f, pathless(err))
	case !info.IsDir():
		return fmt.Errorf("%s is no folder: expected a data folder", f)
	}
	return nil
}

// viewPrefix begins the names of the temporary folders in which a data folder is looked at.
const viewPrefix = "holdfast-view-"

// tempHint adds what to do to an error about such a folder, or about where they are made.
func tempHint(err error) error {
	var path *fs.PathError
	if !errors.As(err, &path) {
		return err
	}
	temp := os.TempDir()
	if filepath.Clean(path.Path) != filepath.Clean(temp) && !strings.Contains(path.Path, string(filepath.Separator)+viewPrefix) {
		return err
	}
	return fmt.Errorf("%w; temporary files go to %s: set TMPDIR to a folder that has room and may be written", err, temp)
}

// keepsOut refuses the name of a file to write in the folder or below it.
func (f folder) keepsOut(name string) error {
	own, err := os.Stat(string(f))
	if err != nil {
		return nil // there is no folder to be in, and whoever opens it says so
	}
	return eachAbove(name, func(dir string) error {
		if info, err := os.Stat(dir); err == nil && os.SameFile(own, info) {
			return &insideError{name, dir}
		}
		return nil
	})
}

// outsideOfDataFolders refuses the name of a file to write in any data folder or below it.
func outsideOfDataFolders(name string) error {
	return eachAbove(name, func(dir string) error {
		for _, part := range []string{"format", "anchor", "db"} {
			info, err := os.Stat(filepath.Join(dir, part))
			if err != nil || info.IsDir() != (part == "db") {
				return nil
			}
		}
		return &insideError{name, dir}
	})
}

// insideError says that a file would be written where only a store may write.
type insideError struct{ name, dir string }

// Error says so, and what to do.
func (e *insideError) Error() string {
	return fmt.Sprintf("%s lies in the data folder %s: expected a file outside of it", e.name, e.dir)
}

// eachAbove calls fn for the folder that a file is in, and for those above it, until it returns an
// error. Links are followed; a folder that does not exist is not judged.
func eachAbove(name string, fn func(dir string) error) error {
	dir, err := filepath.Abs(filepath.Dir(name))
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return nil
	}
	for {
		if err := fn(dir); err != nil {
			return err
		}
		above := filepath.Dir(dir)
		if above == dir {
			return nil
		}
		dir = above
	}
}
