package storage

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
)

func TestTableThatAnotherProgramCompressedIsRefused(t *testing.T) {
	dir := t.TempDir()
	if err := smallStore(t, dir).Close(); err != nil {
		t.Fatal(err)
	}
	opt := badgerOptions(filepath.Join(dir, dbName), minMemTable).WithCompression(options.Snappy).WithBlockCacheSize(1 << 20).WithLogger(nil)
	db, err := badger.Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(txn *badger.Txn) error { return txn.Set([]byte("key"), make([]byte, 10_000)) })
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	for how, open := range openings {
		if how == "salvage" {
			continue
		}
		if _, err := open(dir); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "compression") {
			t.Errorf("%s: %v, want that a table is compressed", how, err)
		}
	}
}
