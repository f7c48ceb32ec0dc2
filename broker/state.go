package broker

import (
	"log/slog"

	"github.com/holdfast-queue/holdfast/broker/cache"
	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/index/keyspace"
	"github.com/holdfast-queue/holdfast/recovery"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// The rules of each type are in the file that has its name.

// Packet is what the broker takes in and hands out: key, payload and times.
type Packet = content.Packet

// Store is the part of the storage that the machine reads. The bytes of a record are valid during
// the call of fn, and content.DecodeRecord takes them. It gets nil and why where there is none.
type Store interface {
	Read(ids []content.PacketID, fn func(i int, record []byte, damage error))
	// ReadValues is Read for the large values of strings and fields, and ReadNotes for the texts of
	// notes.
	ReadValues(ids []content.ValueID, fn func(i int, value []byte, damage error))
	ReadNotes(ids []content.NoteID, fn func(i int, text []byte, damage error))
	// Some shows packets of the queue of from, from that one on in the order of their keys, n at most.
	// What was deleted since the start may be there. It returns where the next slice begins; more is
	// false where there is none.
	Some(from content.PacketID, n int, fn func(id content.PacketID, m *content.Meta)) (next content.PacketID, more bool, err error)
	// Flush returns the flush record of the last batch applied.
	Flush() content.Flush
	Limits() content.Limits
}

// Batch holds what calls changed, for the storage.
type Batch = content.Batch

// Disk is the part of the storage that a driver needs, with what its machine reads.
type Disk interface {
	Store
	// Apply makes the batch durable, all or nothing. Any error but ErrDiskFull leaves the outcome
	// unknown: the driver stops.
	Apply(b *Batch) error
	Space() storage.Space
}

// Options are the machine's settings; zero values mean the defaults named in limits.go.
type Options struct {
	Cache      int64 // bytes of recent payloads kept in memory, rounded up to a power of two
	MaxPayload int   // bytes of the longest payload that is taken, up to MaxPayload; 0 is DefaultMaxPayload
	Logger     *slog.Logger
	// Defaults are the settings of queues that have none of their own; nil: DefaultSettings for all.
	Defaults Defaults
	// Progress is called now and then while a call takes long, and must not call the machine; nil:
	// nobody.
	Progress func()
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
//     was full or deliveries are refused (refusesDelivery). Then those who wait for its name are in
//     dirty, or the subscriber in dirtyConns.
type Machine struct {
	store  Store
	log    *slog.Logger
	limits content.Limits // at which a batch is full
	// maxRecord bounds the bytes of one packet that comes, with its queue's name.
	maxRecord int

	ix           *index.Index
	dispatch     *index.Dispatch
	classes      []*class               // by index.Class; nil where the number is free
	classOf      map[string]index.Class // those with a filter, by class.key
	freeClasses  []index.Class
	queues       queueTable
	names        *keyspace.Directory
	garbage      []garbage
	identify     bool // index.BuildIdentities has to go on
	consumers    consumers
	roleHolders  map[string]*roleHolder // those with a name, see role.go
	totals       Counters               // of all queues, since New
	begun        int64                  // when the first turn was
	ended        int64                  // when the last batch before that was
	behind       int64                  // how far the first turn was behind that batch
	offset       int64                  // of the wall clock from the steady one
	counted      []*queue               // whose counters are to be saved, see counters.go
	countersAt   int64                  // when, on the steady clock
	redated      map[*queue]index.Place // queues whose retain-dead has changed: dead packets up to there follow it
	defaults     Defaults
	unfollowed   int               // queues below this number have yet to follow new defaults
	kept         int               // of those that have followed, how many keep their shape
	keeper       string            // one of these
	moved        int               // packets and shares that have followed them in this turn
	flush        content.Flush     // that is being carried out
	flushes      [Databases]uint32 // how many there were
	tails        map[watched]int   // how many tail a name, see event.go
	operators    int               // how many are told what operators are
	missedEvents map[source]int    // that were left out, of which it was not told
	told         []Event           // may be told now
	alerts       alerts
	disk, memory refusal                  // as they were told last
	repeats      uint64                   // storage.Space.Repeats, as it was told
	watches      map[watched][]*Conn      // who wants to know of a change to what has a name
	watchers     map[*Conn]struct{}       // all of them
	cursors      map[*ListCursor]struct{} // of looks at lists that are under way
	marks        content.Marks
	noted        content.Marks // as they are on disk, or on the way there
	cache        *cache.Cache
	open         *batch
	onWay        *batch               // Take returned it, and Done was not called since
	spare        *batch               // to be opened next
	conns        []*Conn              // by index.SubscriberID
	attached     int                  // consumers of all protocols
	conned       uint64               // how many there were, since the start
	producers    int                  // that the queues know
	awaited      map[watched]*waiters // at most maxAwaited
	maxAwaited   int
	awaitedBytes int        // of their names, at most half of MaxNameBytes
	lists        []*waiters // by index.WaitListID
	damaged      int        // see Tx.Damaged
	pushTimes    pushTimes
	rests        recovery.Rests
	dirty        []*waiters
	dirtyConns   []*Conn // see deliver.go
	settling     bool    // settle works dirty off
	parked       parkedHeap
	tx           Tx // the only one, so that calls allocate nothing
	scratch      []index.Packet
	worst        []index.Packet // see bound.go
	found        Found          // what the last call found
	fetched      [][]byte       // see payloads.go, with the next five
	missing      []int
	missed       []content.PacketID
	ahead        []index.Packet
	one          [1]index.Packet
	copied       []byte
	keyScratch   []byte
	tags         []byte // of an entry on its way to the index
	uniqueScratch,
	name []byte // of a key or field on its way to the open batch
	patched []byte // what a patch makes
	ids     []index.WaitListID
	space   storage.Space // as the driver saw it
	stuck   bool          // the batch on its way finds no room on the disk
	closing bool
}

// Tx is the right to make calls: all calls are its methods. It is valid until the next Turn.
type Tx struct {
	m       *Machine
	now     int64 // Unix milliseconds
	steady  int64 // the same on a clock that never jumps, by which leases end
	atomic  bool  // inside Atomic
	made    int   // see Made
	changed int   // how many elements the calls of the Atomic have taken, removed or moved, see MaxChanged
	dropped int   // how many packets went together with their queues, see mayDropAtOnce
	looked  int   // with index.Passed: what the looks of the Atomic have cost, see MaxLooks
	settled int   // what settle has done in the turn, see maxSettled
	ahead   int   // how many packets takes of the Atomic have read ahead
	reply   int   // bytes of packets that the Atomic may still answer with
	caller  *Conn // see As; nil: nobody in particular
	filled  bool  // the time to fill a batch is over: Selection.Least does not count
	db      uint8 // in which the names of the calls are
	turn    bool  // the push under way has waited for its turn, see parked.go
}

// queue is one queue that the server knows: one that holds packets or windows of unique pushes, has
// settings, is awaited, or was made or emptied a short while ago. Any other queue does not exist.
type queue struct {
	entry      *keyspace.Entry // its name; after a drop another queue has it, or none
	id         uint32          // storage's number; used again only when all numbers were used once
	ix         index.QueueID   // index's number; used again after the queue is dropped
	waiters    *waiters        // for its name; nil: nobody waits
	emptied    int64           // while idle: when it was made or emptied last, in Unix milliseconds
	idle       bool            // listed in queueTable.idle
	defined    bool            // the store, or the open batch, holds the definition
	stale      bool            // that has an expiry which ended when the queue was emptied
	wideLogged bool            // logWide has logged it
	deadLogged bool            // deadLetter has logged it
	dropped    bool            // it has no name and is in Machine.garbage
	expired    garbage         // packets that the store alone has; nil: none
	tailed     bool            // somebody tails its name
	alerts     bool            // listed in Machine.alerts
	old, full  bool            // operators were told so
	keeps      bool            // the shape that it had, as too many packets would move
	flushes    uint32          // that its database had had when it was made

	own       *Settings        // its own settings; nil: none, and the queue ends when it is empty
	shares    shares           // what those have of their own; then the queue has settings, too
	settings  *Settings        // in force, see defaults.go; nil: DefaultSettings
	orders    map[string]order // of the settings in force, see tags.go
	counters  Counters
	due       index.TakeDue        // of its own rate
	from      int64                // content.Queue.SharesFrom, on the steady clock
	taken     int64                // when packets were last popped or claimed; 0: not since the start
	counted   bool                 // listed in Machine.counted
	roles     [2]*roleHolder       // see role.go
	consumers map[string]*consumer // see consumers.go
	pruneAt   int                  // how many of them there are when they are pruned

	producers   map[string]*producer // see producers.go
	producersAt int                  // as pruneAt
	// producersFull is when they are pruned next though there are fewer, because MaxProducers is
	// reached, in Unix milliseconds.
	producersFull int64
}

// Share is what one share of a queue has of its own. Its number and Due are the broker's.
// HeldUntil and Due are on the steady clock.
type Share = content.Share

// shares is what the shares of a queue have of their own.
type shares struct {
	byName map[string]*Share
	all    []*Share // in the order of their numbers; of those that are gone some are there, and empty
	limits int      // those with a limit
	last   uint64   // number
	rests  int      // those that rest and have nothing besides
}

// waiters is who waits for a name. There is one while somebody does.
type waiters struct {
	of       watched
	lists    [2]index.WaitListID // by role: pushes that wait for room, and those who take packets
	filtered int32               // of these, those with a filter
	marked   bool                // listed in Machine.dirty
	busy     bool                // deliver goes on here when it is done with a better queue
	queue    *queue              // that has the name; nil: none
}

// queueTable finds queues by number.
type queueTable struct {
	all   []*queue                          // by index.QueueID; nil where the number is free
	idle  []*queue                          // unused queues, the longest unused first; some may be in use again
	names [Databases]struct{ n, bytes int } // of queues
	// origins are the queues with settings of their own or a dead-letter queue, by storage's number:
	// packets that died name them.
	origins map[uint32]*queue

	taken  map[uint32]bool // numbers of storage in use; nil until the mark of the next queue is at its end
	number uint32          // of storage: the last one that was given out since then
}

// Receiver is a connection as the machine sees it: where deliveries go, and who makes a request
// that waits again. Both are called while a call ends, whoever made that.
type Receiver interface {
	// Deliver adds a delivery to what goes to the client. The packets are valid during the call.
	Deliver(packets []Packet)
	// Again makes the request that waits (Tx.Park) again, from its first byte. Its turn has come by
	// what happened to a queue, whose name is valid during the call. nil: its time is over, and it
	// must not park.
	Again(tx *Tx, queue []byte)
	// Unsent is how many bytes go to the client and have not left yet.
	Unsent() int64
	// Address is where the client is. It is asked of a client without a name that has a role.
	Address() string
}

// Conn is one receiver as the machine sees it.
type Conn struct {
	to          Receiver
	delivery    Selection          // what its subscriptions take
	sub         index.SubscriberID // 0 until it first subscribes or is ready
	class       index.Class        // see class.go
	queues      int                // that it waits for or subscribes to
	detached    bool
	roleHolder  *roleHolder // nil: it has no name and no role, see role.go
	number      uint64
	pushed      *producer // as which it pushed last; nil: it did not, under its name
	db          uint8     // that its names are in
	watched     []watched // see watch.go
	watchesIn   uint16    // bit by database: a watched name stood for something when the watch began
	watchBroken bool      // one of them was changed
	marked      bool      // listed in Machine.dirtyConns
	paused      bool      // nothing is delivered until Resume

	// While its request waits (parked.go):
	parked bool
	as     string // the consumer that it claims for; "": the client
	until  int64  // deadline on the steady clock, 0 for none
	place  int    // in Machine.parked, if it has a deadline
	fills  bool   // something is there, and until is when it takes less than a batch
	again  bool   // the request is being made again
	stays  bool   // that has parked again
}

func (m *Machine) conn(s index.SubscriberID) *Conn { return m.conns[s] }

// class joins those in line that take the same packets, by width and filter. So a queue asks a
// filter once for all waiters that have it.
type class struct {
	narrow  bool
	claims  bool    // what they take is claimed
	filter  *Filter // nil: any packet
	key     string  // in Machine.classOf; "": it is one of those that are always there
	members int     // of any other
	least   int     // of those who fill a batch: how many packets that has
	filling int     // of these: how many wait for more than there is

	found index.Key // what wakes them, see wake

	// selection is for the queue that was asked last, as long as that has these settings.
	selection index.Selection
	queue     *queue
	settings  *Settings
}

// consumer is a consumer of one queue, by the name that it claims with. A packet names the consumer
// that claimed it last.
type consumer struct {
	name    string
	number  uint32 // in consumers.all, plus 1
	packets int    // that name it
	seen    int64  // Unix milliseconds
	listed  bool   // in its queue's consumers
}

// consumers holds the consumers of all queues. One that no packet names stays listed in its queue
// for ConsumerTime. Past MaxConsumers one is known only while a packet names it.
type consumers struct {
	all    []*consumer // nil where the number is free
	free   []uint32
	listed int
}

// Producer is a client that pushes to a queue: all connections of a name, or one without a name.
type Producer struct {
	Name   string // or the address of the connection
	Seen   int64  // when it last pushed, in Unix milliseconds
	Pushed uint64 // packets since it is known
	Conn   uint64 // the number of the connection that did it last
}

// producer is a producer as its queue knows it.
type producer struct {
	Producer
	of *queue // nil: it was forgotten
}

// roleHolder is a client that may have roles.
type roleHolder struct {
	name        string // or the address of the connection that has no name
	connections int
	roles       map[holding]struct{}
}

// holding is one role of one queue.
type holding struct {
	q    *queue
	role role
}

// watched is a name that somebody watches.
type watched struct {
	db   uint8
	name string
}

// ListCursor is where a look at a list goes on, or a trim. It is made by Elements, Find or
// TrimInSlices, and must not be copied while there is more.
type ListCursor struct {
	machine *Machine // that has it among its cursors; nil: none
	queue   *queue
	marks   content.Marks // when it began
	after   index.Place   // the last element that it has passed; of a search from the right the first that it has not
	last    index.Place   // the one with which it ends
	then    index.Place   // of a trim: the last element that it keeps, behind which it goes on; priority 0: nowhere
	n       int           // elements when it began
	skip    int           // matches that a search still passes over
	passed  int           // on the way to its positions, but for what is free
}
