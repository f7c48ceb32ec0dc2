package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/dgraph-io/badger/v4"
)

// discardName is Badger's file of what is dead in the value log: nothing of
// ours. It is made anew where there is none.
const discardName = "DISCARD"

// judgeDiscard returns an error when something else has the name of that file.
func judgeDiscard(path string) error {
	name := filepath.Join(path, discardName)
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode().IsRegular() {
		return nil
	}
	if err == nil {
		err = fmt.Errorf("%s is not a file; the database makes one when nothing is there: move it away", name)
	}
	return err
}

// registrySize is the size of Badger's list of encryption keys where there is
// none: 16 random bytes and a text of 12.
const registrySize = 28

// judgeRegistry returns an error for a list of encryption keys that Badger
// cannot read, or that is longer than one without keys: Badger would take up
// to 4 GiB of memory for what stands there.
func judgeRegistry(path string) error {
	info, err := os.Stat(filepath.Join(path, badger.KeyRegistryFileName))
	if err == nil && info.Size() > registrySize {
		return fmt.Errorf("it has %d bytes, and a list without keys has %d: nothing is encrypted here", info.Size(), registrySize)
	}
	registry, err := badger.OpenKeyRegistry(badger.KeyRegistryOptions{ReadOnly: true, Dir: path})
	if err != nil {
		return err
	}
	return registry.Close()
}
