package storage

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"github.com/dgraph-io/badger/v4"
)

// Badger maps its tables, so every page that a compaction or a scan touched
// counts as memory of this process until the kernel wants it back. Telling
// the kernel that they are not needed drops the page table entries and
// nothing else: the pages of a shared file mapping stay in the page cache,
// and the next read finds them there.

const (
	// Once a second all pages are given back; a scan at full speed would map
	// hundreds of megabytes meanwhile, so above residentMost four times.
	residentEvery = 250 * time.Millisecond
	residentFully = time.Second
	residentMost  = 64 << 20
	// residentLeast is the size of all tables from which it is worth a look.
	residentLeast = 16 << 20
)

// dropResident is called every residentEvery by one goroutine.
func (s *Store) dropResident() {
	inSecond := time.Duration(time.Now().Nanosecond()) % residentFully
	if inSecond < residentEvery || sharedMemory() > residentMost {
		s.releaseMapped()
	}
}

// sharedMemory returns the resident bytes of mapped files, 0 where it cannot
// be told.
func sharedMemory() int64 {
	statm, err := os.ReadFile("/proc/self/statm")
	const shared = 2 // the field, in pages
	fields := bytes.Fields(statm)
	if err != nil || len(fields) <= shared {
		return 0
	}
	pages, err := strconv.ParseInt(string(fields[shared]), 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}

// releaseMapped releases the mapped pages of the tables. The one danger is a
// mapping that goes away in between and leaves its addresses to the heap; so
// an iterator holds a reference to every table meanwhile, and only tables
// that were there before and after it was made are touched.
func (s *Store) releaseMapped() {
	if s.guard.get().Stored < residentLeast {
		return
	}
	before := s.tableNumbers()
	release, err := s.holdTables()
	if err != nil {
		return
	}
	defer release()
	after := s.tableNumbers()
	dropMappings(s.folder.name(dbName), func(number uint64) bool { return before[number] && after[number] })
}

func (s *Store) tableNumbers() map[uint64]bool {
	numbers := make(map[uint64]bool)
	for _, table := range s.db.Tables() {
		numbers[table.ID] = true
	}
	return numbers
}

// holdTables keeps every table mapped until release is called.
func (s *Store) holdTables() (release func(), err error) {
	defer recoverFault(&err)()
	txn := s.db.NewTransaction(false)
	it := txn.NewIterator(badger.IteratorOptions{})
	return func() {
		it.Close()
		txn.Discard()
	}, nil
}
