package storage

import (
	"bytes"
	"fmt"

	"github.com/holdfast-queue/holdfast/storage/tables"
)

// Queues calls fn for every queue definition, in order of identity; Name and Rest are valid during
// the call. It stops at the first error of fn.
func (s *Store) Queues(fn func(Queue) error) error {
	w := queueWalk{fn: fn}
	return w.end(s.scan(queuePrefix, w.take))
}

// Packets calls fn for every packet on disk, in the order of their keys; the Meta is valid during
// the call and its payload is not read. Packets that have expired are shown as long as no merge
// has dropped them. It stops at the first error of fn.
func (s *Store) Packets(fn func(PacketID, *Meta) error) error {
	var m Meta
	return s.scan(packetPrefix, func(key, rec []byte) error {
		err := givePacket(key, rec, &m, fn, nil)
		if m.Large {
			s.scanned.Add(int64(m.Size))
		}
		return err
	})
}

// Verify compares the tally of a scan with the control record. When they differ it returns an
// ErrLoss: a *MismatchError of packets, one of keys, one of delivery states, or some of them. With
// Options.AcceptLoss it writes the tally to the control record before it returns, so that a loss
// is reported once. When that fails the error says so, too, and the next batch writes it.
//
// What the tables have and the scan did not show is dead: a merge may be due.
func (s *Store) Verify(scan Tally) error {
	if live := s.scanned.Swap(0); live > 0 {
		s.dead.Store(max(0, s.tables.List().Bytes()-live) / 2)
		s.wake(s.merge)
	}
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

// scan calls fn with every key that has a prefix, and its value, both valid during the call.
func (s *Store) scan(prefix string, fn func(key, rec []byte) error) error {
	n, err := s.Snapshot()
	if err != nil {
		return err
	}
	defer n.Close()
	return n.scan(prefix, prefixRange(prefix), func(key, rec []byte) error {
		s.scanned.Add(int64(len(key) + len(rec) + entryBytes))
		return fn(key, rec)
	})
}

// keyRange is the keys from one on, up to another one that it has not.
type keyRange struct{ from, to []byte }

// prefixRange returns the range of all keys that have the prefix, which does not end in the last
// byte there is.
func prefixRange(prefix string) keyRange {
	to := []byte(prefix)
	to[len(to)-1]++
	return keyRange{[]byte(prefix), to}
}

// scan calls fn with every key of a range that has the prefix, and its value, both valid during
// the call. It stops at the first error of fn. What cannot be read is an error that wraps
// ErrDamaged.
func scan(v *tables.View, prefix string, keys keyRange, fn func(key, rec []byte) error) error {
	it := v.Iterator([]byte(prefix))
	defer it.Close()
	for it.Seek(keys.from); it.Valid(); it.Next() {
		e := it.Entry()
		if bytes.Compare(e.Key, keys.to) >= 0 {
			return nil
		}
		if e.Deleted {
			continue
		}
		if err := fn(e.Key, e.Value); err != nil {
			return err
		}
	}
	return damaged(it.Err())
}
