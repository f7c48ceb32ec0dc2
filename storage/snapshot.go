package storage

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/holdfast-queue/holdfast/storage/tables"
)

// QueueRange selects queues by identity: First ≤ identity ≤ Last. A Last of 0 is no upper end, so
// the zero value selects all of them.
type QueueRange struct{ First, Last uint32 }

// Snapshot is the state of a store after one batch, whatever is written later. Its methods may be
// called from any goroutine, also at the same time. It is closed before the store: while it is
// open, what it shows takes room on the disk, deleted or not.
//
// A snapshot of a View with ViewOptions.Tolerant notes what it cannot read as findings and goes on;
// any other stops with an error that wraps ErrDamaged.
type Snapshot struct {
	view    *tables.View
	control Control
	load    []byte
	flush   Flush

	tolerate func(Finding) // of a tolerant view; nil otherwise
}

// Snapshot returns the state after the last batch that Apply wrote. It waits until that is in
// tables: mostly some tens of milliseconds, while batches go on. It gives an error when the store
// has stopped, and one that wraps ErrFull when the disk has no room for the tables.
func (s *Store) Snapshot() (*Snapshot, error) {
	n, w, err := s.snapshot()
	if err != nil || w == nil {
		return n, err
	}
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case <-w.done:
			return n, nil
		case <-s.stop:
			err = ErrClosed
		case <-look.C:
			if _, err = s.state(); err == nil {
				err = s.flushFails()
			}
		}
		if err == nil {
			continue
		}
		if isFull(err) {
			err = fmt.Errorf("%w: %w", ErrFull, err)
		}
		if s.layers.giveUp(n) {
			return nil, fmt.Errorf("no snapshot: %w", err)
		}
	}
}

// snapshot freezes what is not in tables yet. The view of the snapshot is there when the window is
// done; without a window it is there.
func (s *Store) snapshot() (*Snapshot, *window, error) {
	s.commitMu.Lock()
	defer s.commitMu.Unlock()
	s.mu.Lock()
	n, failed := &Snapshot{control: s.control, load: s.load, flush: s.flush}, s.failed
	s.mu.Unlock()
	if failed != nil {
		return nil, nil, fmt.Errorf("no snapshot of a store that has stopped: %w", failed)
	}
	if w := s.layers.freezeFor(n); w != nil {
		s.wake(s.frozen)
		return n, w, nil
	}
	n.view = s.tables.View()
	return n, nil, nil
}

// Control returns the control record.
func (n *Snapshot) Control() Control { return n.control }

// Load returns the load record, nil when there is none. The caller does not change it.
func (n *Snapshot) Load() []byte { return n.load }

// Close gives the snapshot up. Nothing of it may run or be called then.
func (n *Snapshot) Close() { n.view.Close() }

// Queues calls fn for every queue definition, in order of identity; Name and Rest are valid during
// the call. It stops at the first error of fn.
func (n *Snapshot) Queues(fn func(Queue) error) error {
	w := queueWalk{fn: fn, tolerate: n.tolerate}
	return w.end(n.scan(queuePrefix, prefixRange(queuePrefix), w.take))
}

// Packets calls fn for the packets of the queues in r, in the order of their keys; the Meta is
// valid during the call and its payload is not read. Packets that have expired are shown as long as
// no merge has dropped them. It stops at the first error of fn.
//
// When r is all queues, what was shown is held against the control record in the end: a difference
// is a *MismatchError, unless the view is tolerant.
func (n *Snapshot) Packets(r QueueRange, fn func(PacketID, *Meta) error) error {
	var m Meta
	var sum Tally
	err := n.scan(packetPrefix, r.packets(), func(key, rec []byte) error {
		return givePacket(key, rec, &m, func(id PacketID, m *Meta) error {
			sum.Add(id, m.Expiry)
			return fn(id, m)
		}, n.tolerate)
	})
	if err != nil {
		return err
	}
	return n.compare(r, sum, 0)
}

// Records calls fn for the packets of the queues in r, in the order of their keys, with the full
// record of each, valid during the call. The record is nil when that one packet cannot be read:
// then damage, which wraps ErrDamaged, says why, naming the packet. Records stops at the first
// error of fn. As in Packets, all queues are held against the control record.
func (n *Snapshot) Records(r QueueRange, fn func(id PacketID, rec []byte, damage error) error) error {
	var id PacketID
	state := &readState{view: n.view}
	state.fn = func(_ int, rec []byte, damage error) error { return fn(id, rec, damage) }
	var sum Tally
	unread := uint64(0)
	err := n.scan(packetPrefix, r.packets(), func(key, rec []byte) (err error) {
		if id, err = decodePacketKey(key); err != nil {
			return tolerated(err, fmt.Sprintf("%x", key), n.tolerate)
		}
		var m Meta
		var x metaRest
		if err := readRecord(rec, &m, &x, false); err != nil {
			unread++
			return fn(id, nil, fmt.Errorf("%w: packet %v: %w", ErrDamaged, id, err))
		}
		sum.Add(id, m.Expiry)
		if m.Large {
			return state.giveLarge(rec, &x, id, 0)
		}
		return fn(id, rec, nil)
	})
	if err != nil {
		return err
	}
	return n.compare(r, sum, unread)
}

// Payloads calls fn for the record of every large payload, in the order of the keys: the queue and
// the sequence of the packet it belongs to, and its size in bytes. It stops at the first error of
// fn.
func (n *Snapshot) Payloads(fn func(queue uint32, seq uint64, size int64) error) error {
	return n.scan(payloadPrefix, prefixRange(payloadPrefix), func(key, rec []byte) error {
		queue, seq, err := decodePayloadKey(key)
		if err != nil {
			return tolerated(err, fmt.Sprintf("%x", key), n.tolerate)
		}
		return fn(queue, seq, int64(len(rec)))
	})
}

// compare checks a scan that reached its end, or seems to.
func (n *Snapshot) compare(r QueueRange, scan Tally, unread uint64) error {
	all := r.First == 0 && (r.Last == 0 || r.Last == math.MaxUint32)
	if !all || n.tolerate != nil {
		return nil
	}
	return n.control.Check(scan, unread)
}

// packets returns the keys of the packets in the range.
func (r QueueRange) packets() keyRange { return r.keys(packetPrefix, appendPacketKey) }

func (r QueueRange) keys(prefix string, appendKey func([]byte, PacketID) []byte) keyRange {
	keys := prefixRange(prefix)
	keys.from = appendKey(nil, PacketID{Queue: r.First})
	if r.Last != 0 && r.Last != math.MaxUint32 {
		keys.to = appendKey(nil, PacketID{Queue: r.Last + 1})
	}
	return keys
}

func (n *Snapshot) scan(prefix string, keys keyRange, fn func(key, rec []byte) error) error {
	return scan(n.view, prefix, keys, fn)
}

// givePacket calls fn with what an index needs of a packet as it is stored.
func givePacket(key, rec []byte, m *Meta, fn func(PacketID, *Meta) error, tolerate func(Finding)) error {
	id, err := decodePacketKey(key)
	if err != nil {
		return tolerated(err, fmt.Sprintf("%x", key), tolerate)
	}
	if err := decodeMeta(rec, m); err != nil {
		return tolerated(fmt.Errorf("%w: packet %v: %w", ErrDamaged, id, err), id.String(), tolerate)
	}
	return fn(id, m)
}

// tolerated makes a finding of what is wrong with one record, or returns it where nothing is
// tolerated.
func tolerated(err error, key string, tolerate func(Finding)) error {
	if tolerate == nil || !errors.Is(err, ErrDamaged) {
		return err
	}
	tolerate(Finding{Kind: FindingRecord, Key: key, What: plain(err)})
	return nil
}
