package broker

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/index/keyspace"
	"github.com/holdfast-queue/holdfast/storage"
)

// DropQueue is dropQueue for tests outside.
func (tx *Tx) DropQueue(name []byte) { tx.m.dropQueue(tx.m.queueNamed(name)) }

// RenameQueue is renameQueue for tests outside. What has the name to is dropped first.
func (tx *Tx) RenameQueue(from, to []byte) {
	if q := tx.m.queueNamed(to); q != nil && string(from) != string(to) {
		tx.m.dropQueue(q)
	}
	tx.m.renameQueue(tx.m.queueNamed(from), to)
}

func init() { mistake = func(what string) { panic("broker: " + what) } }

// Astray says what the index holds of queues that have ended, or that no name leads to; "" if that
// is nothing. Where there are very many queues it looks at none.
func (m *Machine) Astray() string {
	if len(m.queues.all) > 100 {
		return ""
	}
	for id, q := range m.queues.all {
		n := m.ix.Counts(index.QueueID(id)).Len()
		switch {
		case n == 0 && !m.ix.HasWindow(index.QueueID(id)), q != nil && !q.dropped && m.isFlushed(q):
		case q == nil:
			return fmt.Sprintf("%d packets of queue %d, which has ended", n, id)
		case q.dropped && !slices.Contains(m.garbage, garbage(q)):
			return fmt.Sprintf("%d packets of queue %d, which is dropped and no garbage", n, id)
		case !q.dropped && (q.entry.Queue() != q.ix || !m.names.Has(q.entry) || q.entry.IsValue() && n > 0):
			return fmt.Sprintf("%d packets of %q, whose name leads to a %v", n, q.entry.Name(), q.entry.Kind())
		}
	}
	return ""
}

// Receiver is who made the connection.
func (c *Conn) Receiver() Receiver { return c.to }

// Paused says that nothing is delivered to c until Resume.
func (c *Conn) Paused() bool { return c.paused }

// Attach is Tx.Attach between two turns.
func (m *Machine) Attach(to Receiver, delivery Selection) *Conn { return m.tx.Attach(to, delivery) }

// AwaitAtMost bounds the names that are awaited; Awaited is how many are.
func (m *Machine) AwaitAtMost(n int) { m.maxAwaited = n }
func (tx *Tx) Awaited() int          { return len(tx.m.awaited) }
func (tx *Tx) AwaitedBytes() int     { return tx.m.awaitedBytes }

// Passed is what walks over the index have passed.
func (tx *Tx) Passed() int { return tx.m.ix.Passed() }

// Settled is how much settle has done in this turn.
func (tx *Tx) Settled() int { return tx.m.tx.settled }

// Redated is how many queues have dead packets that do not follow their retain-dead yet.
func (tx *Tx) Redated() int { return len(tx.m.redated) }

// NextQueue is the number of the storage that the next queue gets.
func (tx *Tx) NextQueue() uint32 { return tx.m.marks.NextQueue }

// Gives says that something of a queue seems to be there for who pops.
func (tx *Tx) Gives(name []byte) bool {
	return tx.m.selects(tx.m.queueNamed(name), &Selection{})
}

// Settle gives those who wait what calls outside of an Atomic have brought.
func (tx *Tx) Settle() { tx.m.settle() }

// Stats is how much the broker holds.
type Stats struct {
	Queues  int // queues that hold packets
	Known   int // those, queues with subscribers, and some that are empty
	Packets int // packets in all of them
}

// Stats returns the figures of this moment.
func (m *Machine) Stats() (s Stats) {
	s.Known, _ = m.queues.named()
	for _, q := range m.queues.all {
		if q == nil || q.dropped || m.isFlushed(q) {
			continue
		}
		if n := m.ix.Counts(q.ix).Len(); n > 0 {
			s.Queues++
			s.Packets += n
		}
	}
	return s
}

// Untold are the events that wait for what they tell to be on disk.
func (m *Machine) Untold() (all []Event) {
	if m.onWay != nil {
		all = append(all, m.onWay.events.all...)
	}
	return append(all, m.open.events.all...)
}

// LeavesWhatIsDue says that the open batch has no room for what expires by itself.
func (m *Machine) LeavesWhatIsDue() bool { return m.open.halfFull(m.limits) }

// ProducersKnown is how many producers the queues know.
func (tx *Tx) ProducersKnown() int { return tx.m.producers }

// WorkersKnown is how many consumers of all queues have a number.
func (tx *Tx) WorkersKnown() int { return len(tx.m.consumers.all) - len(tx.m.consumers.free) }

// Dropped is how much garbage there is.
func (tx *Tx) Dropped() int { return len(tx.m.garbage) }

// SetSpace lets calls of this transaction find the disk's free space at a level.
func (tx *Tx) SetSpace(level storage.Level) { tx.m.space.Level = level }

// FillNames lets no queue be made for a name that has none, until a call of what it returns.
func (tx *Tx) FillNames() (undo func()) {
	_, bytes := tx.m.queues.named()
	full := &tx.m.queues.names[Databases-1].bytes
	*full += MaxNameBytes - bytes
	return func() { *full -= MaxNameBytes - bytes }
}

// Receipts are those of the claims of a queue.
func (tx *Tx) Receipts(name []byte) (list []Receipt) {
	if q := tx.m.queueNamed(name); q != nil {
		for _, p := range tx.m.ix.List(q.ix, index.Claimed, Place{}, MaxCount, nil) {
			list = append(list, Receipt{ID: idOf(p.Identity), Token: int64(tx.m.ix.Delivery(p.ID).Token - middle)})
		}
	}
	return list
}

// Everything tells all that calls can change: names, what they stand for, roles, lines, and how
// much goes to disk.
func (tx *Tx) Everything() string {
	m := tx.m
	var out strings.Builder
	for db := range uint8(Databases) {
		names, expiring := m.names.Len(db)
		fmt.Fprintln(&out, db, names, expiring)
		m.names.Scan(db, 0, 1<<20, func(e *keyspace.Entry) {
			fmt.Fprintf(&out, "%q %v %d %d %d %q\n", e.Name(), e.Kind(), e.Expiry(), e.ID, e.Version, e.Small)
			if e.Kind() == keyspace.Hash {
				e.ScanFields(0, 1<<20, func(f *keyspace.Field) { fmt.Fprintf(&out, "  %q %d\n", f.Name(), f.Version) })
			}
		})
	}
	for _, q := range m.queues.all {
		if q == nil || !q.dropped && (m.unused(q) || q.waiters != nil && !m.exists(q) && q.roles == [2]*roleHolder{}) {
			continue
		}
		fmt.Fprintf(&out, "%d %q %v %p %v %d %d\n", q.id, q.entry.Name(), q.dropped, q.settings, q.counters, q.expiry(), len(q.consumers))
		for _, s := range q.shares.all {
			fmt.Fprintf(&out, "  %+v\n", *s)
		}
		for r := range q.roles {
			if k := q.roles[r]; k != nil {
				fmt.Fprintf(&out, "  %v %s\n", role(r), k.name)
			}
		}
		for state := index.Ready; state <= index.Damaged; state++ {
			for _, p := range m.ix.List(q.ix, state, Place{}, MaxCount, nil) {
				p.Ref, p.Lane = 0, 0
				fmt.Fprintf(&out, "  %+v %+v\n", p, m.ix.Delivery(p.ID))
			}
		}
	}
	for _, w := range m.lists {
		if w == nil {
			continue
		}
		fmt.Fprintf(&out, "%v %d\n", w.of, w.filtered)
		for _, list := range w.lists {
			for _, s := range m.dispatch.Subscribers(list, nil) {
				fmt.Fprintf(&out, "  waits %p\n", m.conn(s))
			}
		}
	}
	fmt.Fprintln(&out, m.open.ops.Len(), len(m.garbage), m.flush)
	return out.String()
}

// CheckNames returns an error if a queue has its name and does not exist, or the reverse.
func (tx *Tx) CheckNames() error {
	m, named := tx.m, 0
	for _, q := range m.queues.all {
		if q == nil || q.dropped || m.isFlushed(q) {
			continue
		}
		if named++; m.exists(q) != (q.entry.Kind() == keyspace.Queue) || q.entry.Queue() != q.ix || !m.names.Has(q.entry) {
			return fmt.Errorf("queue %q exists: %v, its name stands for a %v", q.entry.Name(), m.exists(q), q.entry.Kind())
		}
		if m.unused(q) && !q.idle {
			return fmt.Errorf("queue %q is not used, and is not idle", q.entry.Name())
		}
	}
	if n, _ := m.queues.named(); named != n {
		return fmt.Errorf("%d queues have names, %d are counted", named, n)
	}
	return m.checkWaiters()
}

// checkWaiters returns an error if a name is awaited by nobody, or its queue does not know it.
func (m *Machine) checkWaiters() error {
	n, bytes := 0, 0
	for id, w := range m.lists {
		if w == nil {
			continue
		}
		if n, bytes = n+1, bytes+len(w.of.name); id != int(w.lists[0]) && id != int(w.lists[1]) {
			return fmt.Errorf("%q has the list %d", w.of.name, id)
		}
		if m.awaited[w.of] != w || !m.waits(w, producerRole) && !m.waits(w, consumerRole) {
			return fmt.Errorf("nobody waits for %q", w.of.name)
		}
		q := m.tailedQueue(w.of)
		if q != w.queue || q != nil && q.waiters != w {
			return fmt.Errorf("those who wait for %q have the queue %v, want %v", w.of.name, w.queue, q)
		}
	}
	if n != 2*len(m.awaited) || bytes != 2*m.awaitedBytes {
		return fmt.Errorf("%d names of %d bytes are awaited, %d of %d are counted", n, bytes, len(m.awaited), m.awaitedBytes)
	}
	for _, q := range m.queues.all {
		if q != nil && q.waiters != nil && q.waiters.queue != q {
			return fmt.Errorf("those who wait for %q have another queue", q.waiters.of.name)
		}
	}
	return nil
}

// Claiming is a selection of what is claimed, or popped.
func Claiming(s Selection, claims bool) Selection {
	s.claims = claims
	return s
}

// Takeable is how many packets a take may find in a queue, at most; 0 if it would find none. Only
// one that must find something is told of no packet that cannot be read. ErrInUse, and
// ErrNotInOrder as for CheckFilter.
func (tx *Tx) Takeable(name []byte, s Selection) (int, error) {
	m := tx.m
	q, err := tx.open(name, takes)
	if err == nil {
		err = m.checkFilter(q, s.Filter)
	}
	if q == nil || err != nil {
		return 0, err
	}
	if s.Filter != nil || s.claims || s.Fits16 {
		if _, ok := m.ix.Best(q.ix, m.selection(q, &s)); !ok {
			return 0, nil
		}
	}
	if s.MustFind && !m.readable(q, m.selection(q, &s)) {
		return 0, nil
	}
	return m.ix.Counts(q.ix).Ready, nil
}

// readable says that s selects a packet that can be read.
func (m *Machine) readable(q *queue, s index.Selection) bool {
	for best, ok := m.ix.Best(q.ix, s); ok; best, ok = m.ix.Best(q.ix, s) {
		m.one[0] = best
		if _, err := m.fetch(q, m.one[:], &s); err == nil {
			return true
		}
	}
	return false
}

// Range is a look at n elements that has one slice.
func (tx *Tx) Range(name []byte, from, n int) (f Found, err error) {
	var c ListCursor
	if err = tx.Elements(name, from, n, &c); err == nil && n > 0 {
		f, err = tx.NextElements(name, &c, n)
	}
	c.End()
	return f, err
}

// Places is a search for the elements that equal value, at most max if that is not 0, n at a time.
func (tx *Tx) Places(name, value []byte, end End, skip, max, n int) (at []int, err error) {
	var c ListCursor
	for more := true; more && err == nil && (max == 0 || len(at) < max); more = c.More() {
		at, err = tx.Find(name, value, end, skip, n, &c, at)
	}
	c.End()
	return at[:min(len(at), cmp.Or(max, len(at)))], err
}

// RestAtMost replaces index.MaxResting.
func (m *Machine) RestAtMost(n int) { m.ix.RestAtMost(n) }
