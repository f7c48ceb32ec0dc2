package storage

import (
	"bytes"
	"errors"
	"fmt"
	"github.com/holdfast-queue/holdfast/storage/content"
	"math"
)

// badRecord says why the record of something cannot be read; nil if it can.
func badRecord(name fmt.Stringer, kind string, err error) error {
	if err == nil {
		return nil
	}
	return &content.Unreadable{Name: name.String(), Err: fmt.Errorf("%w: %s%v: %w", ErrDamaged, kind, name, err)}
}

// keyRange is the keys from one on, up to another one that it has not. All begin with one prefix.
type keyRange struct{ from, to []byte }

// all returns the range of all keys that have a prefix, which does not end in the last byte there
// is.
func all(prefix string) keyRange {
	to := []byte(prefix)
	to[len(to)-1]++
	return keyRange{[]byte(prefix), to}
}

// QueueRange selects queues by identity: First ≤ identity ≤ Last. A Last of 0 is no upper end, so
// the zero value selects all of them.
type QueueRange struct{ First, Last uint32 }

func (r QueueRange) all() bool { return r.First == 0 && (r.Last == 0 || r.Last == math.MaxUint32) }

// packets returns the keys of the packets in the range.
func (r QueueRange) packets() keyRange {
	keys := all(content.PacketPrefix)
	keys.from = content.AppendPacketKey(nil, content.PacketID{Queue: r.First})
	if r.Last != 0 && r.Last != math.MaxUint32 {
		keys.to = content.AppendPacketKey(nil, content.PacketID{Queue: r.Last + 1})
	}
	return keys
}

// scan calls fn with every key of a range, and its value, both valid during the call. It stops at
// the first error of fn, unless that is about one record and the view is tolerant. What cannot be
// read is an error that wraps ErrDamaged: no scan is silently short.
func (n *Snapshot) scan(keys keyRange, fn func(key, rec []byte) error) error {
	it := n.view.Iterator(keys.from[:2])
	defer it.Close()
	for it.Seek(keys.from); it.Valid(); it.Next() {
		e := it.Entry()
		if bytes.Compare(e.Key, keys.to) >= 0 {
			return nil
		}
		n.shown.Add(int64(len(e.Key) + len(e.Value) + content.EntryBytes))
		if err := n.tolerated(fn(e.Key, e.Value)); err != nil {
			return err
		}
	}
	return damaged(it.Err())
}

// tolerated makes a finding of what is wrong with one record, where that is tolerated.
func (n *Snapshot) tolerated(err error) error {
	bad := (*content.Unreadable)(nil)
	if n.tolerate == nil || !errors.As(err, &bad) {
		return err
	}
	n.tolerate(Finding{FindingRecord, bad.Name, plain(bad)})
	return nil
}

// Queues calls fn for every queue definition, in order of identity; Name and Rest are valid during
// the call. It stops at the first error of fn.
func (n *Snapshot) Queues(fn func(content.Queue) error) error {
	var q content.Queue
	var definition []byte
	held := false // q waits for its counters, which lie behind it
	give := func() error {
		if !held {
			return nil
		}
		held = false
		return fn(q)
	}
	err := n.scan(all(content.QueuePrefix), func(key, rec []byte) error {
		id, counters, err := content.DecodeQueueKey(key)
		switch {
		case err != nil:
			return err
		case !counters:
			if err := give(); err != nil {
				return err
			}
			q, definition = content.Queue{ID: id}, append(definition[:0], rec...)
			err = content.DecodeQueue(definition, &q)
			held = err == nil
			return badRecord(queueName(id), "", err)
		case held && q.ID == id:
			return badRecord(queueName(id), "counters of ", content.DecodeCounters(rec, &q.Counters))
		}
		return nil // nobody asks for the counters of a queue without a definition
	})
	if err != nil {
		return err
	}
	return give()
}

// queueName is a queue by its number, as findings have it.
type queueName uint32

func (q queueName) String() string { return fmt.Sprintf("queue %d", uint32(q)) }

// Packets calls fn for every packet, in the order of their keys; the Meta is valid during the call
// and its payload is not read. It stops at the first error of fn. What was shown is held against
// the control record in the end: a difference is a *MismatchError, unless the view is tolerant.
func (n *Snapshot) Packets(fn func(content.PacketID, *content.Meta) error) error {
	var sum content.Tally
	err := n.packets(func(id content.PacketID, m *content.Meta) error {
		sum.Add(id, m.Expiry)
		return fn(id, m)
	})
	return n.held(err, content.Tally.Check, sum, 0)
}

// held holds what a whole scan has shown against the control record, unless the scan had an error
// or the view is tolerant.
func (n *Snapshot) held(err error, check func(t content.Tally, scan content.Tally, unread uint64) error, sum content.Tally, unread uint64) error {
	if err != nil || n.tolerate != nil {
		return err
	}
	return check(n.control.Tally, sum, unread)
}

func (n *Snapshot) packets(fn func(content.PacketID, *content.Meta) error) error {
	var m content.Meta
	return n.scan(all(content.PacketPrefix), func(key, rec []byte) error {
		id, err := content.DecodePacketKey(key)
		if err != nil {
			return err
		}
		if err := content.DecodeMeta(rec, &m); err != nil {
			return badRecord(id, "packet ", err)
		}
		if m.Large {
			n.shown.Add(int64(m.Size))
		}
		return fn(id, &m)
	})
}

// Records calls fn for the packets of the queues in r, in the order of their keys, with the full
// record of each, valid during the call. The record is nil when that one packet cannot be read:
// then damage, which wraps ErrDamaged, says why, naming the packet. Records stops at the first
// error of fn. As in Packets, all queues are held against the control record.
func (n *Snapshot) Records(r QueueRange, fn func(id content.PacketID, rec []byte, damage error) error) error {
	state := &readState{view: n.view}
	var sum content.Tally
	unread := uint64(0)
	err := n.scan(r.packets(), func(key, rec []byte) error {
		id, err := content.DecodePacketKey(key)
		if err != nil {
			return err
		}
		var m content.Meta
		var x content.MetaRest
		if err := content.ReadRecord(rec, &m, &x, false); err != nil {
			unread++
			return fn(id, nil, fmt.Errorf("%w: packet %v: %w", ErrDamaged, id, err))
		}
		sum.Add(id, m.Expiry)
		if m.Large {
			rec, err = state.join(id, rec, &x)
		}
		return fn(id, rec, err)
	})
	if !r.all() {
		return err
	}
	return n.held(err, content.Tally.Check, sum, unread)
}

// Payloads calls fn for the record of every large payload, in the order of the keys: the queue and
// the sequence of the packet it belongs to, and its size in bytes. It stops at the first error of
// fn.
func (n *Snapshot) Payloads(fn func(queue uint32, seq uint64, size int64) error) error {
	return n.scan(all(content.PayloadPrefix), func(key, rec []byte) error {
		queue, seq, err := content.DecodePayloadKey(key)
		if err != nil {
			return err
		}
		return fn(queue, seq, int64(len(rec)))
	})
}

// Uniques calls fn for the record of every unique push, in the order of their keys; valid during
// the call. Those that are over are shown, too. It stops at the first error of fn. Items holds
// their number against the control record.
func (n *Snapshot) Uniques(fn func(*content.Unique) error) error {
	return n.scan(all(content.UniquePrefix), func(key, rec []byte) error {
		id, err := content.DecodeUniqueKey(key)
		if err != nil {
			return err
		}
		u := content.Unique{UniqueID: id}
		if err := content.DecodeUnique(rec, &u); err != nil {
			return badRecord(id, "", err)
		}
		return fn(&u)
	})
}

// scan runs a scan of all that was applied, and counts what it showed for Verify.
func (s *Store) scan(run func(*Snapshot) error) error {
	n, err := s.snapshot()
	if err != nil {
		return err
	}
	defer n.Close()
	err = run(n)
	s.scanned.Add(n.shown.Load() + 1)
	return err
}

// Queues is that of a snapshot of now.
func (s *Store) Queues(fn func(content.Queue) error) error {
	return s.scan(func(n *Snapshot) error { return n.Queues(fn) })
}

// Packets is that of a snapshot of now, which leaves the control record to Verify.
func (s *Store) Packets(fn func(content.PacketID, *content.Meta) error) error {
	return s.scan(func(n *Snapshot) error { return n.packets(fn) })
}

// Uniques is that of a snapshot of now.
func (s *Store) Uniques(fn func(*content.Unique) error) error {
	return s.scan(func(n *Snapshot) error { return n.Uniques(fn) })
}

// Verify compares the tally of a scan with the control record. When they differ it returns an
// ErrLoss: a *MismatchError of packets, one of keys, one of delivery states, or some of them. With
// Options.AcceptLoss it writes the tally to the control record before it returns, so that a loss
// is reported once. When that fails the error says so, too, and the next batch writes it. A control
// record that was lost with its table is written anew, too.
//
// What the tables have and the scan did not show is dead: a merge may be due.
func (s *Store) Verify(scan content.Tally) error {
	if live := s.scanned.Swap(0); live > 0 {
		s.dead.Store(max(0, s.tables.List().Bytes()-live))
		s.wake(s.merge)
	}
	mismatch, err := s.adopt(scan)
	if mismatch == nil {
		if err == nil && s.late {
			err = s.write(&content.Batch{})
		}
		if isFull(err) { // the next batch writes it
			err = nil
		}
		return err
	}
	if s.opt.AcceptLoss {
		if err := s.write(&content.Batch{}); err != nil {
			return fmt.Errorf("%w; what was found is not written to the control record: %w", mismatch, err)
		}
	}
	return mismatch
}

// adopt makes the tally that of the store when a loss is accepted. mismatch is nil when they agree:
// then the store begins. It runs between two commits: each starts from the control record that the
// one before it left.
func (s *Store) adopt(scan content.Tally) (mismatch, err error) {
	s.commitMu.Lock()
	defer s.commitMu.Unlock()
	s.mu.Lock()
	mismatch = s.control.CheckAll(scan)
	if s.opt.AcceptLoss {
		s.control.Tally = scan
	}
	s.mu.Unlock()
	if mismatch == nil {
		err = s.begin()
	}
	return mismatch, err
}
