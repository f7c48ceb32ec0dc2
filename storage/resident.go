package storage

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"github.com/dgraph-io/badger/v4"
)

// Badger maps its tables, so every page that a compaction or a scan touched counts as memory of
// this process until the kernel wants it back. Telling the kernel that they are not needed drops
// the page table entries and nothing else: the pages of a shared file mapping stay in the page
// cache, and the next read finds them there.

const (
	// Once a second all pages are given back; a scan at full speed would map hundreds of megabytes
	// meanwhile, so above residentMost four times.
	residentEvery = 250 * time.Millisecond
	residentFully = time.Second
	residentMost  = 64 << 20
	// Where nobody waits for a reply, looks come as often as it takes to hold a gigabyte a second
	// down: to map a page again costs little.
	offlineEvery = 10 * time.Millisecond
	offlineMost  = 32 << 20
	// residentLeast is the size of all tables from which it is worth a look.
	residentLeast = 16 << 20
)

// offlineTable is the size in bytes of the tables that are made offline, on every level. Some 26
// may wait for a slow device at a time, each mapped, dirty and twice as large on the heap; smaller
// ones would take too many descriptors.
const offlineTable = 4 << 20

// evenTables bounds what a compaction takes of the heap: it builds several tables at a time, and
// Badger's own become twice as large with each level that the store grows by.
func evenTables(opt *badger.Options) {
	opt.BaseTableSize = offlineTable
	opt.TableSizeMultiplier = 1
}

// residentWatch keeps the mapped pages few. It belongs to one goroutine.
type residentWatch struct {
	// offline says that memory counts more than speed: tables that are still being built are given
	// back, too, although they are read again from the device then.
	offline bool
	fully   time.Time // when all pages were given back last
}

// watchResident gives mapped pages back until Close.
func (s *Store) watchResident(offline bool) {
	w, every := residentWatch{offline: offline}, residentEvery
	if offline {
		every = offlineEvery
	}
	s.every(every, func() { w.look(s) })
}

// look gives pages back if they are many or have been there for long.
func (w *residentWatch) look(s *Store) {
	shared, most := sharedMemory(), int64(residentMost)
	if w.offline {
		most = offlineMost
	}
	if now := time.Now(); shared > most || now.Sub(w.fully) >= residentFully {
		w.fully = now
		s.releaseMapped(w.offline)
	}
}

// sharedMemory returns the resident bytes of mapped files, 0 where it cannot be told.
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

// releaseMapped releases the mapped pages of the tables. The one danger is a mapping that goes away
// in between and leaves its addresses to the heap; so an iterator holds a reference to every table
// meanwhile, and only tables that were there before and after it was made are touched.
//
// Nothing can hold a table that a compaction is still building, and one compaction may build as
// much as there is. If they leave much and evict is set, the kernel is asked to reclaim their
// pages: that loses nothing whatever is at the addresses by then, but the pages leave the page
// cache, too.
func (s *Store) releaseMapped(evict bool) {
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
	held := func(number uint64) bool { return before[number] && after[number] }
	dropMappings(s.folder.name(dbName), held)
	if evict && sharedMemory() > offlineMost {
		evictMappings(s.folder.name(dbName), func(number uint64) bool { return !held(number) })
	}
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
