package storage

import (
	"bytes"
	"fmt"
	"runtime/debug"

	"github.com/dgraph-io/badger/v4"
)

// Queues calls fn for every queue definition, in order of identity; Name and Rest are valid during
// the call. It stops at the first error of fn.
func (s *Store) Queues(fn func(Queue) error) error {
	w := queueWalk{fn: fn}
	return w.end(s.scan(queuePrefix, w.take))
}

// Packets calls fn for every packet on disk, in the order of their keys; the Meta is valid during
// the call and its payload is not read. Packets that have expired are shown as long as Badger has
// not dropped them. It stops at the first error of fn.
func (s *Store) Packets(fn func(PacketID, *Meta) error) error {
	var m Meta
	var hidden []removal // none: Open carried the redo record out
	return s.scan(packetPrefix, func(key, rec []byte) error { return givePacket(key, rec, &m, &hidden, fn, nil) })
}

// Verify compares the tally of a scan with the control record. When they differ it returns an
// ErrLoss: a *MismatchError of packets, one of keys, one of delivery states, or some of them. With
// Options.AcceptLoss it writes the tally to the control record before it returns, so that a loss
// is reported once. When that fails the error says so, too, and the next batch writes it.
func (s *Store) Verify(scan Tally) error {
	mismatch := s.adopt(scan)
	if mismatch == nil {
		return nil
	}
	if s.opt.AcceptLoss {
		if err := s.write(&Batch{}); err != nil {
			return fmt.Errorf("%w; what was found is not written to the control record: %w", mismatch, err)
		}
	}
	return mismatch
}

// adopt makes the tally that of the store when a loss is accepted. It returns nil when they agree.
// It runs between two commits: each starts from the control record that the one before it left.
func (s *Store) adopt(scan Tally) error {
	s.commitMu.Lock()
	defer s.commitMu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	mismatch := s.control.checkAll(scan)
	if s.opt.AcceptLoss {
		s.control.Tally = scan
	}
	return mismatch
}

func (s *Store) scan(prefix string, fn func(key, rec []byte) error) error {
	return s.db.View(func(txn *badger.Txn) error { return scan(txn, prefix, prefixRange(prefix), fn) })
}

// prefixRange returns the range of all keys that have the prefix, which does not end in the last
// byte there is.
func prefixRange(prefix string) keyRange {
	to := []byte(prefix)
	to[len(to)-1]++
	return keyRange{[]byte(prefix), to}
}

// scan calls fn with every key of a range that has the prefix, and its value, both valid during
// the call. It stops at the first error of fn. What Badger itself cannot read is an error that
// wraps ErrDamaged, but for bad blocks, at which it ends early and says nothing: whoever scans
// checks the blocks before, or after.
func scan(txn *badger.Txn, prefix string, keys keyRange, fn func(key, rec []byte) error) (err error) {
	it := newIterator(txn, prefix)
	defer it.Close()
	return scanWith(it, keys, fn)
}

func newIterator(txn *badger.Txn, prefix string) *badger.Iterator {
	return txn.NewIterator(badger.IteratorOptions{Prefix: []byte(prefix)})
}

func scanWith(it *badger.Iterator, keys keyRange, fn func(key, rec []byte) error) (err error) {
	inside := false // fn's own panics are passed on
	old := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(old)
		if inside {
			return
		}
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: the database cannot be read: %w", ErrDamaged, faultError(p))
		}
	}()
	var item *badger.Item
	give := func(rec []byte) error {
		inside = true
		err := fn(item.Key(), rec)
		inside = false
		return err
	}
	for it.Seek(keys.from); it.Valid(); it.Next() {
		item = it.Item()
		if bytes.Compare(item.Key(), keys.to) >= 0 {
			return nil
		}
		if err := item.Value(give); err != nil {
			return err
		}
	}
	return nil
}
