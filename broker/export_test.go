package broker

import (
	"fmt"
	"strings"

	"github.com/holdfast-queue/holdfast/broker/keyspace"
	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/storage"
)

// DropQueue is dropQueue for tests outside.
func (tx *Tx) DropQueue(name []byte) { tx.b.dropQueue(tx.b.queueNamed(name)) }

// RenameQueue is renameQueue for tests outside. What has the name to is dropped first.
func (tx *Tx) RenameQueue(from, to []byte) {
	if q := tx.b.queueNamed(to); q != nil && string(from) != string(to) {
		tx.b.dropQueue(q)
	}
	tx.b.renameQueue(tx.b.queueNamed(from), to)
}

// Err says why the broker failed, or nil.
func (b *Broker) Err() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failure
}

// Stats is how much the broker holds.
type Stats struct {
	Queues  int // queues that hold packets
	Known   int // those, queues with subscribers, and some that are empty
	Packets int // packets in all of them
}

// Stats returns the figures of this moment.
func (b *Broker) Stats() (s Stats) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s.Known = b.queues.named
	for _, q := range b.queues.all {
		if q == nil || q.dropped {
			continue
		}
		if n := b.ix.Counts(q.ix).Len(); n > 0 {
			s.Queues++
			s.Packets += n
		}
	}
	return s
}

// OpenMemory is about what the open batch takes of memory.
func (tx *Tx) OpenMemory() int { return tx.b.open.memory() }

// WorkersKnown is how many consumers of all queues have a number.
func (tx *Tx) WorkersKnown() int { return len(tx.b.consumers.all) - len(tx.b.consumers.free) }

// Dropped is how many queues, strings and hashes the sweeper has before it.
func (tx *Tx) Dropped() int { return len(tx.b.dropped) + len(tx.b.leftovers) }

// SetSpace lets calls of this transaction find the disk's free space at a level.
func (tx *Tx) SetSpace(level storage.Level) { tx.b.space, tx.b.spaceAt = level, tx.now }

// FillNames lets no queue be made for a name that has none, until a call of what it returns.
func (tx *Tx) FillNames() (undo func()) {
	t := &tx.b.queues
	free := MaxNameBytes - t.bytes
	t.bytes += free
	return func() { t.bytes -= free }
}

// Receipts are those of the claims of a queue.
func (tx *Tx) Receipts(name []byte) (list []Receipt) {
	if q := tx.b.queueNamed(name); q != nil {
		for _, p := range tx.b.ix.List(q.ix, index.Claimed, Place{}, MaxCount, nil) {
			list = append(list, Receipt{idOf(p.Identity), int64(tx.b.ix.Delivery(p.ID).Token - middle)})
		}
	}
	return list
}

// Everything tells all that calls can change: names, what they stand for, roles, lines, and how
// much goes to disk.
func (tx *Tx) Everything() string {
	b := tx.b
	var out strings.Builder
	for db := range uint8(Databases) {
		names, expiring := b.names.Len(db)
		fmt.Fprintln(&out, db, names, expiring)
		b.names.Scan(db, 0, 1<<20, func(e *keyspace.Entry) {
			fmt.Fprintf(&out, "%q %v %d %d %d %q\n", e.Name(), e.Kind(), e.Expiry(), e.ID, e.Version, e.Small)
			if e.Kind() == keyspace.Hash {
				e.EachField(func(f *keyspace.Field) bool {
					fmt.Fprintf(&out, "  %q %d\n", f.Name(), f.Version)
					return true
				})
			}
		})
	}
	for _, q := range b.queues.all {
		if q == nil || !q.dropped && b.unused(q) {
			continue
		}
		fmt.Fprintf(&out, "%d %q %v %p %v %d %d %d\n", q.id, q.entry.Name(), q.dropped, q.settings, q.counters, q.expiry(), q.subscribers, len(q.consumers))
		for r := range q.roles {
			if k := q.roles[r]; k != nil {
				fmt.Fprintf(&out, "  %v %s\n", role(r), k.name)
			}
		}
		if q.line != nil {
			for e := q.line.Front(); e != nil; e = e.Next() {
				fmt.Fprintf(&out, "  waits %p\n", e.Value)
			}
		}
		for state := index.Ready; state <= index.Damaged; state++ {
			for _, p := range b.ix.List(q.ix, state, Place{}, MaxCount, nil) {
				p.Ref, p.Lane = 0, 0
				fmt.Fprintf(&out, "  %+v %+v\n", p, b.ix.Delivery(p.ID))
			}
		}
	}
	fmt.Fprintln(&out, b.open.ops.Len(), len(b.leftovers), b.flush)
	return out.String()
}

// CheckNames returns an error if a queue has its name and does not exist, or the reverse.
func (tx *Tx) CheckNames() error {
	b, named := tx.b, 0
	for _, q := range b.queues.all {
		if q == nil || q.dropped {
			continue
		}
		if named++; b.exists(q) != (q.entry.Kind() == keyspace.Queue) || q.entry.Queue() != q.ix || !b.names.Has(q.entry) {
			return fmt.Errorf("queue %q exists: %v, its name stands for a %v", q.entry.Name(), b.exists(q), q.entry.Kind())
		}
		if b.unused(q) && !q.idle {
			return fmt.Errorf("queue %q is not used, and is not idle", q.entry.Name())
		}
	}
	if named != b.queues.named {
		return fmt.Errorf("%d queues have names, %d are counted", named, b.queues.named)
	}
	return nil
}
