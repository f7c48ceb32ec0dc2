package storage

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/table"
)

// compressedFolder is a folder that another program opened with Badger's defaults: it deleted a packet,
// and left tables compressed.
func compressedFolder(t *testing.T) (dir string, left []PacketID) {
	t.Helper()
	dir, _, ids := busyFolder(t)
	deleted := ids[len(ids)/2]
	db, err := badger.Open(badger.DefaultOptions(filepath.Join(dir, dbName)).WithLogger(nil))
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Update(func(txn *badger.Txn) error { return txn.Delete(appendPacketKey(nil, deleted)) }); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	m, _, err := readManifest(filepath.Join(dir, dbName))
	if err != nil || len(m.compressed) == 0 {
		t.Fatalf("no table is compressed, %v: nothing is tested", err)
	}
	return dir, slices.DeleteFunc(ids, func(id PacketID) bool { return id == deleted })
}

func TestTablesThatAnotherProgramCompressedAreRead(t *testing.T) {
	dir, left := compressedFolder(t)
	v := openView(t, dir, ViewOptions{Tolerant: true, Deep: true})
	got := viewed(t, v)
	for _, f := range v.Findings() { // what is gone is for the control record to tell
		t.Errorf("finding %v in a folder whose files are sound", f)
	}
	if !slices.Equal(got, left) {
		t.Fatalf("%d packets are viewed, want %d", len(got), len(left))
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}

	s := openTest(t, dir, Options{})
	var ids []PacketID
	if err := s.Packets(func(id PacketID, _ *Meta) error { ids = append(ids, id); return nil }); err != nil || !slices.Equal(ids, left) {
		t.Fatalf("a start reads %d packets, %v; want %d", len(ids), err, len(left))
	}
}

func TestDamageOfACompressedTableIsFound(t *testing.T) {
	dir, left := compressedFolder(t)
	m, _, err := readManifest(filepath.Join(dir, dbName))
	if err != nil {
		t.Fatal(err)
	}
	var name string // of the largest: not that of the delete
	var b []byte
	for number := range m.compressed {
		file := table.NewFilename(number, filepath.Join(dir, dbName))
		if data, err := os.ReadFile(file); err != nil {
			t.Fatal(err)
		} else if len(data) > len(b) {
			name, b = file, data
		}
	}
	file, err := openTableFile(name)
	if err != nil {
		t.Fatal(err)
	}
	_, from, _ := file.block(file.blocks - 1) // of packets, which every look reads
	file.close()
	b[from+100] ^= 0x10
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, Options{}); !errors.Is(err, ErrDamaged) {
		t.Fatalf("Open gave %v, want ErrDamaged", err)
	}
	if _, err := OpenView(dir, ViewOptions{}); !errors.Is(err, ErrDamaged) {
		t.Fatalf("OpenView gave %v, want ErrDamaged", err)
	}
	v := openView(t, dir, ViewOptions{Tolerant: true})
	got := viewed(t, v)
	found := v.Findings()
	if len(found) == 0 || !strings.Contains(found[0].What, "compressed") {
		t.Fatalf("findings %v, want the block that cannot be read", found)
	}
	for _, id := range got {
		if !slices.Contains(left, id) {
			t.Fatalf("packet %v was never there", id)
		}
	}
	if len(got) == 0 || len(got) == len(left) {
		t.Fatalf("%d of %d packets are left, want some", len(got), len(left))
	}
}
