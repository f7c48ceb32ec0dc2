package storage

import (
	"fmt"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/table"
)

// heldTables are the tables of an open store at one moment. None of them goes away until release is
// called, so their files can be read.
type heldTables struct {
	numbers []uint64
	release func()
}

// holdNow holds all tables there are, and calls also, which may be nil, while these are all. Badger
// names and holds tables in two steps, so holdNow tries again when one came or went in between.
func (s *Store) holdNow(also func() (release func())) (h heldTables, err error) {
	defer recoverBlock(&err)()
	for {
		before := s.tableNumbers()
		release, err := s.holdTables()
		if err != nil {
			return heldTables{}, fmt.Errorf("%w: the database cannot be read: %w", ErrDamaged, err)
		}
		undo := func() {}
		if also != nil {
			undo = also()
		}
		after := s.tableNumbers()
		h.numbers = h.numbers[:0]
		for number := range after {
			if before[number] {
				h.numbers = append(h.numbers, number)
			}
		}
		h.release = func() { undo(); release() }
		if len(h.numbers) == len(before) && len(h.numbers) == len(after) {
			return h, nil
		}
		h.release()
	}
}

// checkHeld checks blocks of held tables. It ends early, with ErrClosed, when the store closes.
func (s *Store) checkHeld(h heldTables, checked blockFilter) error {
	return eachTable(h.numbers, func(number uint64) error {
		select {
		case <-s.stop:
			return ErrClosed
		default:
			return checkTable(table.NewFilename(number, s.folder.name(dbName)), checked)
		}
	})
}

// checkBlocks checks every block of every table. It precedes each merge that Badger does not start
// itself.
func (s *Store) checkBlocks() error {
	h, err := s.holdNow(nil)
	if err != nil {
		return err
	}
	defer h.release()
	return s.checkHeld(h, everyBlock)
}

// scanHeld is scan for a store at work. A block may have become bad since Open, and Badger then
// ends the iteration early and says nothing. So the blocks that were read are checked afterwards.
func (s *Store) scanHeld(txn *badger.Txn, prefix string, keys keyRange, checked blockFilter, fn func(key, rec []byte) error) error {
	var it *badger.Iterator
	h, err := s.holdNow(func() func() {
		it = newIterator(txn, prefix)
		return it.Close
	})
	if err != nil {
		return err
	}
	defer h.release()
	if err := scanWith(it, keys, fn); err != nil {
		return err
	}
	return s.checkHeld(h, checked)
}
