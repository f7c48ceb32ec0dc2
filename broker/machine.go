package broker

import (
	"log/slog"
	"math"

	"github.com/holdfast-queue/holdfast/broker/keyspace"
	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/recovery"
	"github.com/holdfast-queue/holdfast/storage"
)

// Packet is what the broker takes in and hands out: key, payload and times.
type Packet = storage.Packet

// Store is what the machine reads of the storage. The bytes of a record are valid during the call
// of fn. It gets nil and why where there is none.
type Store interface {
	Read(ids []storage.PacketID, fn func(i int, record []byte, damage error))
	// ReadValues is Read for the large values of strings and fields, and ReadNotes for the texts of
	// notes.
	ReadValues(ids []storage.ValueID, fn func(i int, value []byte, damage error))
	ReadNotes(ids []storage.NoteID, fn func(i int, text []byte, damage error))
	// Flush returns the flush record of the last batch applied.
	Flush() storage.Flush
	Limits() storage.Limits
}

// Batch is what calls changed, for the storage.
type Batch = storage.Batch

// Disk is what a driver needs of the storage, with what its machine reads.
type Disk interface {
	Store
	// Apply makes the batch durable, all or nothing. Any error but ErrDiskFull leaves the outcome
	// unknown: the driver stops.
	Apply(b *Batch) error
	Space() storage.Space
}

// Options are the machine's settings; zero values mean the defaults named in limits.go.
type Options struct {
	Cache  int64 // bytes of recent payloads kept in memory, rounded up to a power of two
	Logger *slog.Logger
}

// Machine is the state of all queues, strings and hashes, and the rules by which calls change it.
// It starts no goroutine, takes no lock, reads no clock and knows no socket. A driver owns it: only
// that may call its methods, one at a time. The driver's round is
//
//	Turn     what is due by now happens
//	Work     a slice of what nobody waits for
//	...      calls, each inside Tx.Atomic
//	Take     the batch that all of it made, which the driver brings to disk
//	Done     it is there
//
// What a call replies or delivers may leave the server when the batch that was open is on disk.
// Calls may be made between Take and Done. The invariants, each true between two calls:
//
//  1. Index and names are the state of the store after all batches up to and including the open
//     one, but for what Work has still to delete.
//  2. No queue has both a packet and somebody in line who can take it, unless it is paused out. No
//     queue has a push first in its line that it would take. Either may be so where the open batch
//     was full or deliveries are refused (refusesDelivery). Then the queue is in dirty, or the
//     subscriber in dirtyConns.
type Machine struct {
	store  Store
	log    *slog.Logger
	limits storage.Limits // at which a batch is full

	ix          *index.Index
	dispatch    *index.Dispatch
	classes     []*class               // by index.Class; nil where the number is free
	classOf     map[string]index.Class // those with a filter, by class.key
	freeClasses []index.Class
	queues      queueTable
	names       *keyspace.Directory
	garbage     []garbage
	identify    bool // index.BuildIdentities has to go on
	consumers   consumers
	roleHolders map[string]*roleHolder     // those with a name, see role.go
	counted     []*queue                   // whose counters are to be saved, see counters.go
	countersAt  int64                      // when, on the steady clock
	redated     []redated                  // see settings.go
	flush       storage.Flush              // that is being carried out
	watches     map[watched][]*Conn        // who wants to know of a change to what has a name
	watchers    map[*Conn]struct{}         // all of them
	stamps      map[*keyspace.Entry]uint64 // see Tx.Stamp
	lastStamp   uint64
	marks       storage.Marks
	cache       *cache
	open        *batch
	onWay       *batch  // Take returned it, and Done was not called since
	spare       *batch  // to be opened next
	conns       []*Conn // by index.SubscriberID
	attached    int     // consumers of all protocols
	damaged     int     // see Tx.Damaged
	dirty       []*queue
	dirtyConns  []*Conn // see deliver.go
	settling    bool    // settle works dirty off
	parked      parkedHeap
	tx          Tx // the only one, so that calls allocate nothing
	scratch     []index.Packet
	worst       []index.Packet // see bound.go
	found       Found          // what the last call found
	fetched     [][]byte       // see payloads.go, with the next five
	missing     []int
	missed      []storage.PacketID
	ahead       []index.Packet
	one         [1]index.Packet
	copied      []byte
	keyScratch  []byte
	tags        []byte // of an entry on its way to the index
	uniqueScratch,
	name []byte // of a key or field on its way to the open batch
	patched []byte // what a patch makes
	ids     []index.QueueID
	space   storage.Space // as the driver saw it
	stuck   bool          // the batch on its way finds no room on the disk
	closing bool
}

// New makes a machine of the state that recovery has built from store.
func New(store Store, state *recovery.State, o Options) *Machine {
	if o.Cache <= 0 {
		o.Cache = DefaultCache
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	m := &Machine{
		store: store, log: o.Logger, limits: store.Limits(),
		ix: state.Index, names: state.Names, identify: true, flush: store.Flush(), marks: state.Marks,
		dispatch: index.NewDispatch(), classes: newClasses(), classOf: make(map[string]index.Class),
		watches: make(map[watched][]*Conn), watchers: make(map[*Conn]struct{}),
		stamps: make(map[*keyspace.Entry]uint64), roleHolders: make(map[string]*roleHolder),
		cache: newCache(o.Cache), spare: newBatch(),
	}
	m.tx.m = m
	m.loadQueues(state.Queues)
	m.loadGarbage(state)
	m.consumers.load(state.Workers, &m.queues)
	m.open = newBatch()
	m.open.begin(m.marks)
	return m
}

// Turn begins a round of calls at a moment in Unix milliseconds, and the same on a clock that never
// jumps, by which leases and waits end. What is due by now happens: expired packets go, delayed and
// leased ones come back, waits end. The Tx is valid until the next Turn.
func (m *Machine) Turn(now, steady int64, space storage.Space) *Tx {
	m.space = space
	m.tx = Tx{m: m, now: now, steady: steady}
	m.forget()
	m.tx.advance()
	m.settle()
	return &m.tx
}

// forget gives back the memory that a large call has left.
func (m *Machine) forget() {
	m.copied = emptied(m.copied, keepCopied)
	m.scratch = emptied(m.scratch, keepScratch)
	if cap(m.fetched) > keepScratch {
		m.fetched, m.missing, m.missed, m.found = nil, nil, nil, Found{}
	}
}

// Take returns what the calls since the last Take changed, nil if that is nothing. Done must follow
// before the next Take.
func (m *Machine) Take() *Batch {
	t := m.open
	if t.ops.Len() == 0 && !t.claims {
		if t.used() {
			t.reset() // all that filled it has cancelled itself
			t.begin(m.marks)
		}
		return nil
	}
	t.ops.SetMarks(m.marks)
	t.ops.MustWrite()
	m.onWay, m.open, m.spare = t, m.spare, nil
	m.open.begin(m.marks)
	return t.ops
}

// Done says that the batch of the last Take is on disk.
func (m *Machine) Done() {
	m.onWay.reset()
	m.spare, m.onWay, m.stuck = m.onWay, nil, false
}

// Stuck says that the batch of the last Take finds no room on the disk. Until Done every call that
// touches data is refused with ErrStopped.
func (m *Machine) Stuck() { m.stuck = true }

// Close lets every call from now on return ErrClosed, and prepares the last batch for Take. It
// returns true if there is another one.
func (m *Machine) Close() (more bool) {
	m.closing = true
	m.saveCounters()
	return len(m.counted) > 0 && m.open.full(m.limits)
}

// Work does a slice of what nobody waits for: empty queues end, what was dropped is deleted, and
// the table grows by which calls find packets by their ids. It returns true if there is more.
func (m *Machine) Work() (more bool) {
	if m.stuck || m.open.full(m.limits) {
		return false
	}
	more = m.evictDue()
	more = m.sweep() || more
	more = m.saveCounters() || more
	more = m.redate() || more
	m.identify = m.identify && m.ix.BuildIdentities(identifySlice)
	more = m.identify || more
	return more
}

// Next is how many milliseconds after the last Turn the next must come, whatever clients do.
func (m *Machine) Next() int64 {
	switch {
	case m.space.Level != storage.Normal:
		return spaceCheck
	case len(m.dirty)+len(m.dirtyConns) > 0 && !m.refusesDelivery():
		return 0 // the batch was full
	}
	now, steady, wait := m.tx.now, m.tx.steady, int64(math.MaxInt64)
	if due, ok := m.ix.Wait(now, steady); ok {
		wait = min(wait, due)
	}
	if due, ok := m.names.Deadline(); ok {
		wait = min(wait, due-now)
	}
	if len(m.counted) > 0 {
		wait = min(wait, m.countersAt-steady)
	}
	if len(m.parked) > 0 {
		wait = min(wait, m.parked[0].until-steady)
	}
	if len(m.queues.idle) > 0 {
		wait = min(wait, m.queues.idle[0].emptied+maxIdleTime-now)
	}
	if m.stuck {
		wait = max(1, wait)
	}
	return max(0, wait) // 0: a slice of what was due is done
}
