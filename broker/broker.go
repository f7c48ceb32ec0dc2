// Package broker keeps the index and the storage in step. Every protocol calls it and nothing
// else. Under one lock a call is checked, applied to the index and appended to the open batch. So
// batches hold the calls in the order in which they were made. The reply to a call is handed out
// only after its batch is on disk.
//
//	broker.go    Broker, New, Close
//	tx.go        Do: the right to make calls; Atomic: calls that belong together
//	push.go      a packet comes
//	unique.go    pushes of packets that may be there already
//	tags.go      which tags a queue takes
//	filter.go    which tags a consumer takes
//	pop.go       packets go
//	move.go      packets move to another place
//	priority.go  packets that have a key change their priority, and go by it
//	list.go      a queue seen as a list
//	reshape.go   a list changes in its middle, or loses most of itself
//	names.go     names, whatever has them: type, expiry, scans
//	keys.go      the records of strings and hashes
//	strings.go   strings
//	hashes.go    hashes
//	values.go    values of strings and fields
//	copy.go      what a name stands for, copied to another
//	flush.go     the end of everything
//	leftovers.go keys that are gone, but not from the disk
//	watch.go     who wants to know of changes
//	wait.go      blocked pops
//	bound.go     how much a queue holds at most
//	line.go      pushes that wait for room
//	reply.go     replies that a session puts together itself
//	conn.go      a connection as the broker sees it: subscriptions, bytes on their way
//	class.go     what those in line take: width and filter
//	deliver.go   the rule by which subscribers get packets
//	queue.go     the queues that are known
//	sweep.go     queues go, the large ones in slices
//	claim.go     claims: a consumer gets packets for a while
//	return.go    claims end without success: packets come back, or die
//	consumers.go who claims from a queue
//	admit.go     whether a queue takes what comes
//	gate.go      queues that are paused or closed
//	role.go      who is the only producer or consumer of a queue
//	detail.go    what a reply says of a packet besides its record
//	settings.go  what a queue does with packets that come, and with those that are claimed
//	counters.go  what queues have done
//	inspect.go   what queues hold, and who works on them
//	change.go    packets change by their ids
//	bulk.go      many packets change, in slices
//	batch.go     one group commit
//	commit.go    batches go to disk
//	puts.go      which packets the batch puts
//	payloads.go  records come from the open batch, the cache or the disk
//	complete.go  replies go to their receivers
//	cache.go     recent payloads
//	limits.go    every limit with its reason
//	errors.go    why a call is refused
//
// The package keyspace holds the names.
//
// The path of one push: Tx.Push (push.go), batch (batch.go), commitLoop (commit.go), completeLoop
// (complete.go), Receiver (conn.go).
package broker

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-queue/holdfast/broker/keyspace"
	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/recovery"
	"github.com/holdfast-queue/holdfast/storage"
)

// Packet is what the broker takes in and hands out: key, payload and times.
type Packet = storage.Packet

// Store is what the broker needs of the storage. Only the committer goroutine calls Apply. The
// other methods may be called at any time, also while Apply runs.
type Store interface {
	// Apply makes the batch durable, all or nothing. Any error but storage.ErrFull leaves the outcome
	// unknown and ends the broker.
	Apply(b *storage.Batch) error
	// Read calls fn with the record of each id, valid during the call, or nil and why there is
	// none.
	Read(ids []storage.PacketID, fn func(i int, record []byte, damage error))
	// ReadValues is Read for the large values of strings and fields, and ReadNotes for the texts of
	// notes.
	ReadValues(ids []storage.ValueID, fn func(i int, value []byte, damage error))
	ReadNotes(ids []storage.NoteID, fn func(i int, text []byte, damage error))
	// Flush returns the flush record of the last batch applied.
	Flush() storage.Flush
	Limits() storage.Limits
	Space() storage.Space
}

// Options are the broker's settings; zero values mean the defaults named in limits.go.
type Options struct {
	Cache int64        // bytes of recent payloads kept in memory, rounded up to a power of two
	Clock func() int64 // Unix milliseconds; time.Now if nil
	// Steady is like Clock, but never jumps: leases end by it. Clock if it is nil and Clock is not.
	Steady func() int64
	Logger *slog.Logger
}

// clocks returns what reads both clocks.
func (o *Options) clocks() func() (now, steady int64) {
	clock, steady := o.Clock, o.Steady
	if clock == nil {
		start := time.Now()
		return func() (int64, int64) {
			now := time.Now()
			return now.UnixMilli(), start.UnixMilli() + now.Sub(start).Milliseconds()
		}
	}
	if steady == nil {
		steady = clock
	}
	return func() (int64, int64) { return clock(), steady() }
}

// Broker owns the index, the open batch and two goroutines: the committer takes batches to disk,
// the completer takes replies to their receivers. Its invariants, each true whenever mu is free:
//
//  1. Index and names are the state of the store after all batches up to and including the open
//     one, but for what the sweeper (sweep.go, leftovers.go) has still to delete.
//  2. No queue has both a packet and somebody in line who can take it, a subscriber or a waiter,
//     unless it is paused out. No queue has a first push in its line that has its turn (hasTurn).
//     Either may be so where the open batch was full or the broker refused deliveries
//     (refusesDelivery). Then the queue is in deferredQueues, or the subscriber in
//     deferredConns.
//  3. Batches are applied, and their replies handed out, in the order in which they were opened.
type Broker struct {
	store  Store
	clocks func() (now, steady int64)
	log    *slog.Logger
	limits storage.Limits // at which a batch is full

	mu             sync.Mutex
	room           sync.Cond // signalled when a fresh batch is opened, the disk's level changes or the broker ends
	ix             *index.Index
	dispatch       *index.Dispatch
	classes        []*class               // by index.Class; nil where the number is free
	classOf        map[string]index.Class // those with a filter, by class.key
	freeClasses    []index.Class
	queues         queueTable
	names          *keyspace.Directory
	leftovers      []*keyspace.Entry // see leftovers.go
	orphans        []recovery.Orphan
	endedUniques   []storage.UniqueID // see unique.go
	identify       bool               // index.BuildIdentities has to go on
	consumers      consumers
	roleHolders    map[string]*roleHolder // those with a name, see role.go
	counted        []*queue               // whose counters are to be saved, see counters.go
	countersAt     int64                  // when, on the steady clock
	redated        []redated              // see settings.go
	flush          storage.Flush          // that is being carried out
	watches        map[watched][]*Conn    // who wants to know of a change to what has a name
	watchers       map[*Conn]struct{}     // all of them
	watchedBytes   int                    // that the names take
	marks          storage.Marks
	cache          *cache
	open           *batch
	onWay          *batch   // to the disk: it was open before; nil: all but open is there
	durableBatch   uint64   // number of the last batch that is on disk
	durableKey     uint64   // and the last version of a key when it was closed
	minBatch       int      // size from which the open batch is committed while the completer is busy
	conns          []*Conn  // by index.SubscriberID
	deferredQueues []*queue // see deliver.go
	dropped        []*queue // see sweep.go
	deferredConns  []*Conn
	waits          waitHeap // connections that wait with a deadline, see wait.go
	wakeAt         int64    // when the committer looks at what is due by itself, on the steady clock
	tx             Tx       // the only one, so that Do allocates nothing
	scratch        []index.Packet
	worst          []index.Packet // see bound.go
	fetched        [][]byte       // see payloads.go, with the next four
	missing        []int
	missed         []storage.PacketID
	ahead          []index.Packet
	one            [1]index.Packet
	keyScratch     []byte
	tags           []byte // of an entry on its way to the index
	uniqueScratch  []byte
	name           []byte // of a key or field on its way to the open batch
	patched        []byte // what a patch makes
	ids            []index.QueueID
	space          storage.Level // at spaceAt
	spaceAt        int64
	closing        bool
	failure        error // set once, by fail

	wake    chan struct{} // holds one token when the committer may have something to do
	free    chan *batch   // empty batches, for the committer to open
	durable chan *batch   // batches on disk, for the completer
	failed  chan struct{} // closed by fail
	stopped sync.WaitGroup
	stats   counters
}

type counters struct {
	conns   atomic.Int64 // attached now
	damaged atomic.Int64 // see Tx.Damaged
}

// New starts a broker on the state that recovery has built from store. Close ends it.
func New(store Store, state *recovery.State, o Options) *Broker {
	if o.Cache <= 0 {
		o.Cache = DefaultCache
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	b := &Broker{
		store:     store,
		clocks:    o.clocks(),
		log:       o.Logger,
		limits:    store.Limits(),
		ix:        state.Index,
		dispatch:  index.NewDispatch(),
		classes:   newClasses(),
		classOf:   make(map[string]index.Class),
		names:     state.Names,
		leftovers: state.Leftovers,
		orphans:   state.Orphans,

		endedUniques: state.EndedUniques,
		identify:     true,
		flush:        store.Flush(),
		watches:      make(map[watched][]*Conn),
		watchers:     make(map[*Conn]struct{}),
		roleHolders:  make(map[string]*roleHolder),
		marks:        state.Marks,
		durableKey:   state.Marks.LastKey,
		cache:        newCache(o.Cache),
		wake:         make(chan struct{}, 1),
		free:         make(chan *batch, batchesInFlight),
		durable:      make(chan *batch, batchesInFlight),
		failed:       make(chan struct{}),
	}
	b.room.L = &b.mu
	b.begin()
	b.loadQueues(state.Queues)
	b.loadDropped(state.Dropped)
	b.consumers.load(state.Workers, &b.queues)
	b.open = newBatch(b.marks)
	b.open.number = 1
	b.space = store.Space().Level
	for range batchesInFlight - 1 {
		b.free <- newBatch(storage.Marks{})
	}
	b.stopped.Add(2)
	go b.commitLoop()   // ends when Close or fail says so
	go b.completeLoop() // ends when commitLoop closes durable
	return b
}

// Close commits what is open, hands out its replies and stops. Calls after it get ErrClosed.
// It returns the error that ended the broker before, if any.
func (b *Broker) Close() error {
	b.mu.Lock()
	b.closing = true
	b.room.Broadcast()
	b.mu.Unlock()
	b.signal()
	b.stopped.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failure
}

// Failed is closed when a batch could not be committed. Nothing more is accepted or answered. The
// process should exit: an fsync is never tried again, and the next start recovers from the disk.
func (b *Broker) Failed() <-chan struct{} { return b.failed }

func (b *Broker) fail(err error) {
	b.mu.Lock()
	if b.failure == nil {
		b.failure = err
		close(b.failed)
	}
	b.room.Broadcast()
	b.mu.Unlock()
}

// signal tells the committer to look at the open batch, the timers and the empty queues.
func (b *Broker) signal() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// spaceLevel is what the disk's free space allows. The committer looks at the disk for every batch.
// While the level refuses something there may be no batches: then calls look, every spaceCheck.
func (b *Broker) spaceLevel(now int64) storage.Level {
	if passed := now - b.spaceAt; b.space != storage.Normal && (passed >= spaceCheck || passed < 0) {
		b.space, b.spaceAt = b.store.Space().Level, now
	}
	return b.space
}

// Space is the state of the disk.
func (tx *Tx) Space() storage.Space { return tx.b.store.Space() }

// Damaged is how many packets were set aside since New, because they cannot be read.
func (tx *Tx) Damaged() int64 { return tx.b.stats.damaged.Load() }
