package storage

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/dgraph-io/badger/v4"
	"github.com/vmihailenco/msgpack/v5"
)

// A batch may delete more packets than one transaction of Badger holds: a pop takes up to 65,535
// packets with it (pinpriq document, section pop). It still happens as a whole. The first
// transaction carries everything else, the control record, and a redo record that lists the
// deletes; from then on the batch is true, and what the redo record lists does not exist. Further
// transactions carry the deletes out, and the last of them removes the redo record. Open does the
// rest of a batch that a crash cut short, before anything is scanned.

// redoIDBytes is what one packet takes in a redo record, at most for all that can happen: the
// packets of a batch lie at most 2^40 sequences apart on average, or moved away from an identity
// that is as near, and rarely change their queue or priority.
const redoIDBytes = 8

// removal is a packet to delete, with its delivery state; or, of queue 0, which no queue has, a
// delivery state alone.
type removal struct {
	id       PacketID
	large    bool
	stored   Stored
	identity uint64 // where stored is not 0
}

// postponed are the deletes of a batch that has too many for one transaction.
type postponed struct {
	deletes []removal
	puts    map[PacketID]bool // what the batch puts
}

// has reports whether an operation of the batch is postponed. It is not where the batch puts the
// same packet: the delete would undo the put, which comes before all that is postponed.
func (p *postponed) has(o *batchOp) bool {
	return p != nil && o.kind == OpDelete && !o.cancelled && !p.puts[o.id]
}

// hasState reports whether what is done to a delivery state is postponed: it only goes.
func (p *postponed) hasState(o *stateOp) bool { return p != nil && o.old != 0 && o.puts() == 0 }

// postpone returns the deletes to postpone, nil where all of the batch fits into one transaction,
// and an error that wraps ErrTooLarge where it does not without them.
func (l Limits) postpone(b *Batch) (*postponed, error) {
	if b.count <= l.MaxOps && b.bytes <= l.MaxBytes {
		return nil, nil
	}
	type place struct { // of a payload, the same whatever the priority
		queue uint32
		seq   uint64
	}
	p := &postponed{puts: make(map[PacketID]bool)}
	stays := make(map[place]bool) // payloads that the batch puts
	for i := range b.ops {
		if o := &b.ops[i]; o.kind != OpDelete && !o.cancelled {
			p.puts[o.id] = true
			stays[place{o.id.Queue, o.id.Seq}] = o.head != nil
		}
	}
	count, bytes := b.count, b.bytes
	for i := range b.ops {
		if o := &b.ops[i]; p.has(o) {
			count, bytes = count-o.entries(), bytes-o.bytes()
			r := removal{id: o.id, large: o.removed.Large && !stays[place{o.id.Queue, o.id.Seq}]}
			if r.stored = o.removed.Stored &^ b.putsOf(o.removed); r.stored != 0 {
				r.identity = o.removed.Identity
			}
			p.deletes = append(p.deletes, r)
		}
	}
	for i := range b.states {
		if o := &b.states[i]; p.hasState(o) {
			count, bytes = count-o.entries(), bytes-o.bytes()
			p.deletes = append(p.deletes, removal{PacketID{Seq: o.identity}, false, o.old, o.identity})
		}
	}
	if len(p.deletes) > l.MaxDeletes || count > l.MaxOps || bytes > l.MaxBytes/2 {
		return nil, fmt.Errorf("%w: %d operations and %d bytes, at most %d and %d; without its %d deletes, at most %d, they are %d and %d, at most %d and %d",
			ErrTooLarge, b.count, b.bytes, l.MaxOps, l.MaxBytes, len(p.deletes), l.MaxDeletes, count, bytes, l.MaxOps, l.MaxBytes/2)
	}
	return p, nil
}

// appendRedo encodes the list, which it sorts: a msgpack map of one field with the bytes
//
//	(queue uvarint | priority uvarint | count uvarint | count × (step uvarint | flags u8 | identity varint?))…
//
// a run for each queue and priority, a step counting from the sequence before it, from 0 at first.
// The flags: redoLarge, redoStored, redoIdentity. An identity counts from the sequence.
func appendRedo(dst []byte, list []removal) []byte {
	slices.SortFunc(list, func(a, b removal) int { return a.id.Compare(b.id) })
	body := []byte{}
	for len(list) > 0 {
		first, n := list[0].id, 1
		for n < len(list) && list[n].id.Queue == first.Queue && list[n].id.Priority == first.Priority {
			n++
		}
		body = binary.AppendUvarint(body, uint64(first.Queue))
		body = binary.AppendUvarint(body, uint64(first.Priority))
		body = binary.AppendUvarint(body, uint64(n))
		seq := uint64(0)
		for _, r := range list[:n] {
			body = binary.AppendUvarint(body, r.id.Seq-seq)
			seq = r.id.Seq
			flags := byte(r.stored) * redoStored
			if r.large {
				flags |= redoLarge
			}
			if r.stored != 0 && r.identity != seq {
				body = append(body, flags|redoIdentity)
				body = binary.AppendVarint(body, int64(r.identity-seq))
				continue
			}
			body = append(body, flags)
		}
		list = list[n:]
	}
	return appendMap(dst, 1, func(e *msgpack.Encoder) error {
		return errors.Join(e.EncodeUint(1), e.EncodeBytes(body))
	})
}

// The flags of a removal in a redo record.
const (
	redoLarge    = 1 << 0
	redoStored   = 1 << 1 // times Stored, which has three bits
	redoIdentity = 1 << 4 // it is not the sequence, and follows
)

// decodeRedo reads what appendRedo wrote.
func decodeRedo(rec []byte) ([]removal, error) {
	var body []byte
	err := eachField(rec, func(field uint64, d *msgpack.Decoder) (err error) {
		if body, err = d.DecodeBytes(); field != 1 {
			err = fmt.Errorf("field %d, and 1 was expected", field)
		}
		return err
	})
	if err != nil || body == nil {
		return nil, fmt.Errorf("%w: the redo record cannot be read: %w", ErrDamaged, cmp.Or(err, ErrRecord))
	}
	return decodeRemovals(body)
}

// decodeRemovals reads the list in a redo record.
func decodeRemovals(body []byte) (list []removal, err error) {
	ok := true
	took := func(n int) {
		if ok = ok && n > 0; ok {
			body = body[n:]
		}
	}
	next := func() uint64 {
		v, n := binary.Uvarint(body)
		took(n)
		return v
	}
	for ok && len(body) > 0 {
		queue, priority, count, seq := next(), next(), next(), uint64(0)
		for ; ok && count > 0; count-- {
			seq += next()
			if ok = ok && len(body) > 0; !ok {
				break
			}
			flags := body[0]
			body = body[1:]
			r := removal{id: PacketID{uint32(queue), uint32(priority), seq}, large: flags&redoLarge != 0}
			if r.stored = Stored(flags/redoStored) & storedAll; r.stored != 0 {
				r.identity = seq
			}
			if flags&redoIdentity != 0 {
				step, n := binary.Varint(body)
				took(n)
				r.identity += uint64(step)
			}
			list = append(list, r)
		}
	}
	if !ok {
		return nil, fmt.Errorf("%w: the list of the redo record is cut short", ErrDamaged)
	}
	return list, nil
}

// carryOut deletes what a redo record lists, and then the record. The control record stays the
// given one, which counts the packets no longer.
func (s *Store) carryOut(list []removal, control *Control) error {
	for len(list) > 0 {
		// One entry is the redo record. MaxOps is without the control record.
		chunk := list[:min(len(list), (s.limits.MaxOps-1)/DeleteEntries)]
		list = list[len(chunk):]
		err := s.transact(func(txn *badger.Txn) error {
			a := &s.apply
			a.reset(DeleteEntries * len(chunk))
			for _, r := range chunk {
				if err := a.remove(txn, &r); err != nil {
					return err
				}
			}
			if len(list) == 0 {
				return txn.Delete([]byte(redoKey))
			}
			return nil
		}, control)
		if err != nil {
			return fmt.Errorf("cannot carry out the redo record: %w", err)
		}
	}
	return nil
}

// remove adds the delete of what one removal names.
func (a *applyState) remove(txn *badger.Txn, r *removal) error {
	if r.id.Queue == 0 && r.stored != 0 {
		return a.deleteStates(txn, r.identity, r.stored)
	}
	return a.packet(txn, &batchOp{id: r.id, kind: OpDelete, removed: Removed{Large: r.large, Stored: r.stored, Identity: r.identity}})
}

// redo finishes a batch that a crash cut short.
func (s *Store) redo() error {
	var list []removal
	err := s.db.View(func(txn *badger.Txn) (err error) {
		list, err = redoOf(txn)
		return err
	})
	if err != nil || len(list) == 0 {
		return err
	}
	s.commitMu.Lock()
	defer s.commitMu.Unlock()
	return s.carryOut(list, &s.control)
}

// redoOf reads the redo record; the list is in the order of the keys, and empty when there is none.
func redoOf(txn *badger.Txn) (list []removal, err error) {
	err = readKey(txn, redoKey, func(rec []byte) (err error) {
		list, err = decodeRedo(rec)
		return err
	})
	return list, err
}
