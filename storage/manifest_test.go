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

func TestZerosThatAPowerCutLeftBehindTheListOfTablesAreNoDamage(t *testing.T) {
	f := newDamageFolder(t, false)
	for _, zeros := range []int{4, 8, 20} {
		dir := f.copied(t, filepath.Join(dbName, manifestName), func(b []byte) []byte { return append(b, make([]byte, zeros)...) })
		tolerant(t, f, dir)
		strict(t, f, dir)
		opened(t, f, dir)
		if s := smallStore(t, dir); errors.Join(s.Apply(one(200, Packet{})), s.Close()) != nil {
			t.Fatal("the store cannot be written")
		}
		if _, _, err := readManifest(filepath.Join(dir, dbName)); err != nil {
			t.Errorf("with a table listed behind %d zeros: %v", zeros, err)
		}
	}
}
