package storage

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/dgraph-io/badger/v4"
)

func TestDatabaseThatAnotherProgramHasOpenIsLeftAsItIs(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir, Options{MemTable: minMemTable})
	if err := errors.Join(s.Apply(one(1, Packet{})), s.Close()); err != nil {
		t.Fatal(err)
	}
	foreign, err := badger.Open(badgerOptions(filepath.Join(dir, dbName), minMemTable).WithLogger(nil))
	if err != nil {
		t.Fatal(err)
	}
	defer foreign.Close()
	sizes := func() (list []int64) {
		names, err := logNames(filepath.Join(dir, dbName))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			info, err := os.Stat(name)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, info.Size())
		}
		return list
	}
	before := sizes()
	if _, err := Open(dir, Options{MemTable: minMemTable}); !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), strconv.Itoa(os.Getpid())) {
		t.Errorf("opening gives %v", err)
	}
	if after := sizes(); len(before) == 0 || len(after) != len(before) || after[0] != before[0] {
		t.Errorf("the logs have %v bytes, and had %v", after, before)
	}
}
