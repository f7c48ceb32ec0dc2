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
// the first error of fn, unless that is about one record and the view is tolerant, or of step, the
// visitor's. What cannot be read is an error that wraps ErrDamaged: no scan is silently short.
func (n *Snapshot) scan(keys keyRange, step func() error, fn func(key, rec []byte) error) error {
	it := n.view.Iterator(keys.from[:2])
	it.Step = step
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
	n.tolerate(Finding{FindingRecord, bad.Name, Plain(bad)})
	return nil
}

// Visitor says what a walk shows, and whom. A nil func is shown nothing. What the others get is
// valid during the call, and their errors end the walk, unless Wrong passes them over.
type Visitor struct {
	// Queue gets every queue definition, in order of identity, and Unique the record of every unique
	// push, in the order of their keys, those that are over, too.
	Queue  func(content.Queue) error
	Unique func(*content.Unique) error
	// Share gets what shares have of their own, in the order of their keys.
	Share func(*content.Share) error
	// State gets every delivery state, in order of identity; stored says which records there are.
	// Where the state cannot be read, or there are only its notes, d has beside these its identity
	// only and damage, which wraps ErrDamaged, says why.
	State func(d *content.Delivery, stored content.Stored, damage error) error
	// Packet gets the packets of the queues in Range, in the order of their keys. Where a record
	// cannot be read m is nil, where that or a large payload cannot rec is nil, and damage, which
	// wraps ErrDamaged, says why, naming the packet.
	Packet func(id content.PacketID, m *content.Meta, rec []byte, damage error) error
	// Item gets every head and every field, in the order of their numbers, which v says: the fields
	// of a hash follow its head, if that is there. One of h and f is nil. Those that have expired or
	// are dropped (Flush) are shown, too. Where a record cannot be read both are nil, where a large
	// value cannot Value is nil, and damage, which wraps ErrDamaged, says why, naming v.
	Item func(v content.ValueID, h *content.Head, f *content.Field, damage error) error

	Range QueueRange
	// Whole shows the texts of notes, and large payloads and values, too. Then m has neither tags
	// nor Extra, and a Hash only of what is large.
	Whole bool
	// Uncounted leaves it to the caller to count what is shown, and to hold that against the control
	// record.
	Uncounted bool
	// Step, if not nil, is called each few thousand records that are read, also those that are deleted
	// and not shown: a walk may show nothing for long. Its error ends the scan.
	Step func() error
	// Wrong, if not nil, gets why the scan of one of the six ended early, and how it differs from
	// the control record. What it returns ends the walk.
	Wrong func(error) error
}

func (n *Snapshot) queues(v *Visitor) error {
	var q content.Queue
	var definition []byte
	held := false // q waits for its counters, which lie behind it
	give := func() error {
		if !held {
			return nil
		}
		held = false
		return v.Queue(q)
	}
	err := n.scan(all(content.QueuePrefix), v.Step, func(key, rec []byte) error {
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

func (n *Snapshot) packets(v *Visitor) error {
	state := &readState{view: n.view}
	var m content.Meta
	return n.scan(v.Range.packets(), v.Step, func(key, rec []byte) error {
		id, err := content.DecodePacketKey(key)
		if err != nil {
			return err
		}
		var x content.MetaRest
		if v.Whole {
			err = content.ReadRecord(rec, &m, &x, false)
		} else {
			err = content.DecodeMeta(rec, &m)
		}
		if err != nil {
			return v.Packet(id, nil, nil, badRecord(id, "packet ", err))
		}
		if m.Large {
			n.shown.Add(int64(m.Size))
		}
		if m.Large && v.Whole {
			rec, err = state.join(id, rec, &x)
		}
		return v.Packet(id, &m, rec, err)
	})
}

// errSlice ends a slice of a walk.
var errSlice = errors.New("a slice is over")

// Some shows fn packets of the queue of from, from that one on in the order of their keys: n at
// most, and fewer where many deleted ones lie between. It returns where the next slice begins; more
// is false where there is none. It reads the tables alone, so what was deleted a short while ago
// may be there.
func (s *Store) Some(from content.PacketID, n int, fn func(id content.PacketID, m *content.Meta)) (next content.PacketID, more bool, err error) {
	v := s.tables.View()
	defer v.Close()
	it := v.Iterator([]byte(content.PacketPrefix))
	defer it.Close()
	it.Step = func() error { return errSlice }
	var m content.Meta
	for it.Seek(content.AppendPacketKey(nil, from)); it.Valid(); it.Next() {
		next, err = content.DecodePacketKey(it.Entry().Key)
		if err != nil || n == 0 || next.Queue != from.Queue {
			return next, err == nil && next.Queue == from.Queue, err
		}
		if err := content.DecodeMeta(it.Entry().Value, &m); err != nil {
			return next, false, badRecord(next, "packet ", err)
		}
		fn(next, &m)
		n--
	}
	if !errors.Is(it.Err(), errSlice) {
		return next, false, damaged(it.Err())
	}
	next, err = content.DecodePacketKey(it.Last())
	return next, err == nil && next.Queue == from.Queue, err
}

// Payloads calls fn for the record of every large payload, in the order of the keys: the queue and
// the sequence of the packet it belongs to, and its size in bytes. It stops at the first error of
// fn.
func (n *Snapshot) Payloads(fn func(queue uint32, seq uint64, size int64) error) error {
	return n.scan(all(content.PayloadPrefix), nil, func(key, rec []byte) error {
		queue, seq, err := content.DecodePayloadKey(key)
		if err != nil {
			return err
		}
		return fn(queue, seq, int64(len(rec)))
	})
}

func (n *Snapshot) uniques(v *Visitor) error {
	return n.scan(all(content.UniquePrefix), v.Step, func(key, rec []byte) error {
		id, err := content.DecodeUniqueKey(key)
		if err != nil {
			return err
		}
		u := content.Unique{UniqueID: id}
		if err := content.DecodeUnique(rec, &u); err != nil {
			return badRecord(id, "", err)
		}
		return v.Unique(&u)
	})
}

func (n *Snapshot) shares(v *Visitor) error {
	return n.scan(all(content.SharePrefix), v.Step, func(key, rec []byte) error {
		id, err := content.DecodeShareKey(key)
		if err != nil {
			return err
		}
		s := content.Share{ShareID: id}
		if err := content.DecodeShare(rec, &s); err != nil {
			return badRecord(id, "", err)
		}
		return v.Share(&s)
	})
}
