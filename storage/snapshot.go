package storage

import (
	"errors"
	"fmt"
	"math"

	"github.com/dgraph-io/badger/v4"
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
	txn     *badger.Txn // reads only
	control Control
	load    []byte
	flush   Flush
	hidden  []removal // by key: deleted by a redo record that is not carried out

	tolerate func(Finding) // of a tolerant view; nil otherwise
	store    *Store        // whose snapshot it is; nil of a view, whose tables never change
}

// Snapshot returns the state after the last batch that Apply wrote. It waits for a batch under way,
// and gives an error when the store has stopped.
func (s *Store) Snapshot() (*Snapshot, error) {
	s.commitMu.Lock()
	defer s.commitMu.Unlock()
	s.mu.Lock()
	control, load, flush, failed := s.control, s.load, s.flush, s.failed
	s.mu.Unlock()
	if failed != nil {
		return nil, fmt.Errorf("no snapshot of a store that has stopped: %w", failed)
	}
	return &Snapshot{txn: s.db.NewTransaction(false), control: control, load: load, flush: flush, store: s}, nil
}

// Control returns the control record.
func (n *Snapshot) Control() Control { return n.control }

// Load returns the load record, nil when there is none. The caller does not change it.
func (n *Snapshot) Load() []byte { return n.load }

// Close gives the snapshot up. Nothing of it may run or be called then.
func (n *Snapshot) Close() { n.txn.Discard() }

// Queues calls fn for every queue definition, in order of identity; Name and Rest are valid during
// the call. It stops at the first error of fn.
func (n *Snapshot) Queues(fn func(Queue) error) error {
	w := queueWalk{fn: fn, tolerate: n.tolerate}
	return w.end(n.scan(queuePrefix, prefixRange(queuePrefix), nil, w.take))
}

// Packets calls fn for the packets of the queues in r, in the order of their keys; the Meta is
// valid during the call and its payload is not read. Packets that have expired are shown as long as
// Badger has not dropped them. It stops at the first error of fn.
//
// When r is all queues, what was shown is held against the control record in the end: a difference
// is a *MismatchError, unless the view is tolerant.
func (n *Snapshot) Packets(r QueueRange, fn func(PacketID, *Meta) error) error {
	var m Meta
	var sum Tally
	hidden := n.hidden
	err := n.scan(packetPrefix, r.packets(), nil, func(key, rec []byte) error {
		return givePacket(key, rec, &m, &hidden, func(id PacketID, m *Meta) error {
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
	state := &readState{txn: n.txn}
	state.fn = func(_ int, rec []byte, damage error) error { return fn(id, rec, damage) }
	var sum Tally
	unread := uint64(0)
	hidden := n.hidden
	payloads := r.payloads()
	err := n.scan(packetPrefix, r.packets(), &payloads, func(key, rec []byte) (err error) {
		if id, err = decodePacketKey(key); err != nil {
			return tolerated(err, fmt.Sprintf("%x", key), n.tolerate)
		}
		if skipHidden(&hidden, id) {
			return nil
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
// the sequence of the packet it belongs to, and its size in bytes. Those of hidden packets are left
// out like these. It stops at the first error of fn.
func (n *Snapshot) Payloads(fn func(queue uint32, seq uint64, size int64) error) error {
	gone := make(map[[2]uint64]bool)
	for _, r := range n.hidden {
		if r.large {
			gone[[2]uint64{uint64(r.id.Queue), r.id.Seq}] = true
		}
	}
	return n.scan(payloadPrefix, prefixRange(payloadPrefix), nil, func(key, rec []byte) error {
		queue, seq, err := decodePayloadKey(key)
		if err != nil {
			return tolerated(err, fmt.Sprintf("%x", key), n.tolerate)
		}
		if gone[[2]uint64{uint64(queue), seq}] {
			return nil
		}
		return fn(queue, seq, int64(len(rec)))
	})
}

// compare checks a scan that reached its end, or seems to: Badger ends an iteration early at a
// block that became bad, and says nothing.
func (n *Snapshot) compare(r QueueRange, scan Tally, unread uint64) error {
	all := r.First == 0 && (r.Last == 0 || r.Last == math.MaxUint32)
	if !all || n.tolerate != nil {
		return nil
	}
	return n.control.Check(scan, unread)
}

// packets returns the keys of the packets in the range.
func (r QueueRange) packets() keyRange { return r.keys(packetPrefix, appendPacketKey) }

// payloads returns the keys of their payloads.
func (r QueueRange) payloads() keyRange { return r.keys(payloadPrefix, appendPayloadKey) }

func (r QueueRange) keys(prefix string, appendKey func([]byte, PacketID) []byte) keyRange {
	keys := prefixRange(prefix)
	keys.from = appendKey(nil, PacketID{Queue: r.First})
	if r.Last != 0 && r.Last != math.MaxUint32 {
		keys.to = appendKey(nil, PacketID{Queue: r.Last + 1})
	}
	return keys
}

// scan is the scan of a snapshot. Blocks are checked when a view is opened; in a live store they
// may have become bad since, and then those that hold keys, or also what fn reads beside, are
// checked when the scan has reached its end.
func (n *Snapshot) scan(prefix string, keys keyRange, also *keyRange, fn func(key, rec []byte) error) error {
	if n.store == nil {
		return scan(n.txn, prefix, keys, fn)
	}
	ranges := []keyRange{keys}
	if also != nil {
		ranges = append(ranges, *also)
	}
	return n.store.scanHeld(n.txn, prefix, keys, blocksOf(ranges...), fn)
}

// givePacket calls fn with what an index needs of a packet as it is stored.
func givePacket(key, rec []byte, m *Meta, hidden *[]removal, fn func(PacketID, *Meta) error, tolerate func(Finding)) error {
	id, err := decodePacketKey(key)
	if err != nil {
		return tolerated(err, fmt.Sprintf("%x", key), tolerate)
	}
	if skipHidden(hidden, id) {
		return nil
	}
	if err := decodeMeta(rec, m); err != nil {
		return tolerated(fmt.Errorf("%w: packet %v: %w", ErrDamaged, id, err), id.String(), tolerate)
	}
	return fn(id, m)
}

// skipHidden reports whether id is at the head of a list in the order of the keys, of which it
// drops what lies before id.
func skipHidden(hidden *[]removal, id PacketID) bool {
	for len(*hidden) > 0 && (*hidden)[0].id.Compare(id) < 0 {
		*hidden = (*hidden)[1:]
	}
	return len(*hidden) > 0 && (*hidden)[0].id == id
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
