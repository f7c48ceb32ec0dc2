package tables

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/cespare/xxhash/v2"
	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
)

// TakeOver is Open of a folder of Badger's own, whose tables stay as they are. Begin removes its
// logs, too: what is adopted before has all that they hold.
func TakeOver(dir, build string) (*Set, error) {
	list, err := badgerList(dir)
	if err != nil {
		return nil, err
	}
	s, err := openList(dir, build, list, Options{})
	if err != nil {
		return nil, err
	}
	s.takenOver = true
	return s, nil
}

// badgerList makes a list of that of Badger's.
func badgerList(dir string) (*List, error) {
	f, err := os.Open(filepath.Join(dir, badger.ManifestFilename))
	if errors.Is(err, os.ErrNotExist) {
		return noList(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the list of tables: %w", err)
	}
	defer f.Close()
	old, _, err := badger.ReplayManifestFile(f, 0, badger.Options{})
	if err != nil {
		return nil, fmt.Errorf("%w: the list of tables cannot be read: %w", ErrDamaged, err)
	}
	l := &List{Format: listFormat}
	for id, m := range old.Tables {
		t := Table{ID: id, Level: int(m.Level)}
		if m.KeyID != 0 || m.Compression != options.None || t.Level >= levels {
			return nil, fmt.Errorf("%w: %s is encrypted or compressed, or of a level that there is not", ErrDamaged, t.Name())
		}
		if err := t.describe(filepath.Join(dir, t.Name())); err != nil {
			return nil, err
		}
		l.Window, l.LastID = max(l.Window, t.Version), max(l.LastID, id)
		if t.Level == 0 {
			t.Version = 0
		}
		l.Tables = append(l.Tables, t)
	}
	l.sum()
	return l, nil
}

// describe reads all of a table, and syncs it.
func (t *Table) describe(path string) error {
	from, err := os.Open(path)
	if err != nil {
		return err
	}
	defer from.Close()
	sum := xxhash.New()
	if t.Size, err = io.Copy(sum, from); err == nil {
		err = from.Sync()
	}
	if err != nil {
		return err
	}
	t.Sum = sum.Sum64()
	f, err := openFile(path, *t)
	if err != nil {
		return err
	}
	defer f.release()
	t.Entries, t.Version = uint64(f.read.KeyCount()), f.read.MaxVersion()
	f.Table = *t
	_, err = f.content()
	return err
}
