package storage

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/dgraph-io/badger/v4/table"
	"golang.org/x/sys/unix"
)

// residentTables returns the resident bytes of the mapped tables below a
// folder, by the kernel's own account.
func residentTables(t *testing.T, folder string) (resident int64) {
	t.Helper()
	file, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines, inside := bufio.NewScanner(file), false
	for lines.Scan() {
		line := lines.Text()
		if first, _, _ := strings.Cut(line, " "); strings.Contains(first, "-") {
			inside = strings.Contains(line, " "+folder+"/") && strings.HasSuffix(line, tableSuffix)
		}
		if size, ok := strings.CutPrefix(line, "Rss:"); ok && inside {
			kilobytes, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(size), " kB"), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			resident += kilobytes << 10
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return resident
}

// realDir is a temporary folder named as the kernel names it.
func realDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// bigStore is a store with enough tables to be worth a look, and none of its
// pages are given back without being asked.
func bigStore(t *testing.T) *Store {
	t.Helper()
	dir := realDir(t)
	s := openTest(t, dir, Options{Sync: SyncNever(), Offline: true, tune: tuning{noAdvice: true}})
	p := Packet{Payload: make([]byte, 400)}
	for n := 0; n < 2*residentLeast/len(p.Payload); {
		var b Batch
		for range 1024 {
			n++
			b.Put(PacketID{Queue: 1, Priority: 1, Seq: uint64(n)}, &p)
		}
		if err := s.Apply(&b); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil { // writes all of it out
		t.Fatal(err)
	}
	return openTest(t, dir, Options{Sync: SyncNever(), Offline: true, tune: tuning{noAdvice: true}})
}

func TestALookGivesThePagesOfAScanBack(t *testing.T) {
	s := bigStore(t)
	scan := func() {
		if err := s.Packets(func(PacketID, *Meta) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	scan()
	before := residentTables(t, s.folder.path)
	if before < residentLeast {
		t.Fatalf("the scan left %d bytes mapped: that is nothing to check by", before)
	}
	(&residentWatch{}).look(s)
	if after := residentTables(t, s.folder.path); after > before/4 {
		t.Errorf("%d bytes of tables are resident after a look, before it %d", after, before)
	}
	scan() // the tables are as they were
}

// mapTable makes a file that is called like a table, and maps it as Badger
// does, with all pages there and on the device.
func mapTable(t *testing.T, dir string) []byte {
	t.Helper()
	const size = 4 << 20
	file, err := os.Create(table.NewFilename(7, dir))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := file.Truncate(size); err != nil {
		t.Fatal(err)
	}
	b, err := unix.Mmap(int(file.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(b) })
	fill(b)
	if err := unix.Msync(b, unix.MS_SYNC); err != nil {
		t.Fatal(err)
	}
	return b
}

// fill writes a pattern in which no page is like another.
func fill(b []byte) {
	for i := range b {
		b[i] = byte(i) ^ byte(i>>12)
	}
}

func TestTablesThatNothingHoldsAreReclaimedAndKeepTheirBytes(t *testing.T) {
	dir := realDir(t)
	b := mapTable(t, dir)
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil || fs.Type == unix.TMPFS_MAGIC {
		t.Skip("the temporary folder has no device to read pages from again")
	}
	want := bytes.Clone(b)
	evictMappings(dir, func(number uint64) bool { return number != 7 })
	before := residentTables(t, dir)
	if before != int64(len(b)) {
		t.Fatalf("%d bytes are resident of a table that was not chosen, want all %d", before, len(b))
	}
	evictMappings(dir, func(number uint64) bool { return number == 7 })
	if after := residentTables(t, dir); after > before/4 {
		t.Errorf("%d bytes are resident, before %d", after, before)
	}
	if !bytes.Equal(b, want) {
		t.Error("the table has other bytes than before")
	}
}

// What evictMappings may do to addresses that belong to somebody else by then.
func TestToReclaimMemoryOfTheProgramLosesNothing(t *testing.T) {
	b, err := unix.Mmap(-1, 0, 1<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(b) }()
	fill(b)
	want := bytes.Clone(b)
	m := mapping{uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), ""}
	if err := madvise(m, reclaim); err != nil {
		t.Skip("this kernel cannot reclaim:", err)
	}
	if !bytes.Equal(b, want) {
		t.Error("the memory has other bytes than before")
	}
}

func TestWhatIsMappedForAWhileIsNotTakenForATable(t *testing.T) {
	dir := realDir(t)
	mapTable(t, dir)
	before, err := mappings(dir, tableSuffix)
	if err != nil || len(before) != 1 {
		t.Fatalf("%d mappings, %v: want that of the table", len(before), err)
	}
	b, err := mapFile(table.NewFilename(7, dir))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(b) }()
	if after, err := mappings(dir, tableSuffix); err != nil || len(after) != 1 || after[0] != before[0] {
		t.Errorf("%v, %v: want %v alone", after, err, before)
	}
}
