package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
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

// check refuses a name that cannot be a data folder's; there says that the folder must exist
// already.
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
