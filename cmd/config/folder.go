package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/holdfast-queue/holdfast/cmd/terminal"
)

// Folder is the argument that names a data folder.
type Folder string

// Validate is called with the parsed argument.
func (f Folder) Validate() error {
	if f == "" {
		return errors.New("the name is empty: expected a data folder")
	}
	return nil
}

// Check refuses a name that cannot be a data folder's. With there, the folder must exist.
// The error names the folder.
func (f Folder) Check(there bool) error {
	info, err := os.Stat(string(f))
	switch {
	case errors.Is(err, fs.ErrNotExist) && !there:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s does not exist: expected a data folder, as \"holdfast serve\" and \"holdfast load\" make one", f)
	case err != nil:
		return fmt.Errorf("cannot read the data folder %s: %w", f, terminal.Pathless(err))
	case !info.IsDir():
		return fmt.Errorf("%s is not a folder: expected a data folder", f)
	}
	return nil
}
