package broker

import (
	"github.com/holdfast-queue/holdfast/storage"
)

// The broker's limits, each with its reason.
const (
	// DefaultCache keeps enough recent payloads that a consumer which keeps up never reads the disk.
	DefaultCache = 16 << 20

	// MaxGroup is the most packets one pop hands out: the pinpriq reply counts them in 16 bits.
	MaxGroup = 0xffff
	// MaxNarrow is the longest key or payload that a consumer of narrow packets is given.
	MaxNarrow = storage.MaxNarrow
	// MaxGroupBytes bounds the keys and payloads of one pop, and so what one client can make
	// the server hold: what is past it stays queued.
	MaxGroupBytes = 16 << 20

	// MaxBareGroup is the most packets of one key that a call on bare packets looks at, for each of
	// which it holds the broker's lock a little longer, also when it then refuses.
	MaxBareGroup = 32

	// MaxQueues bounds what clients can make the server remember of names.
	MaxQueues = storage.MaxQueues
	// MaxNameBytes bounds the bytes of all queue names together.
	MaxNameBytes = storage.MaxNameBytes
	// MaxSubscriptions bounds the queues that one consumer can subscribe to.
	MaxSubscriptions = 1024
	// MaxOutstandingBytes is how many bytes of replies a consumer may have outstanding before the server
	// stops reading its requests and delivering to it.
	MaxOutstandingBytes = 4 << 20

	maxIdleQueues       = 1024     // empty queues whose definition is kept, so that a queue that empties often costs nothing
	maxBatchQueuedBytes = 8 << 20  // bytes that one batch may owe to receivers
	maxBatchReplies     = 1 << 16  // replies of one batch, and packets in them: full one call after that
	maxBatchPushes      = 1 << 16  // packets that one batch may push, those that were popped or moved again included
	maxBatchHeld        = 16 << 20 // bytes of pushed packets that one batch may hold, those that were popped again included
	batchesInFlight     = 4        // open, committing, completing, and one to swap
	replyOverhead       = 8        // bytes that a reply counts for besides its packets
	readAhead           = 512      // neighbours read with a payload that was not cached
	readAheadBytes      = 1 << 20  // and how large they may be together
	spaceCheck          = 100      // milliseconds between two looks at the disk while it is too full
	timersAtOnce        = 128      // timers handled between two looks at the room in the batch
	evictAtOnce         = 16       // queues forgotten by one call
)

// batchLimits are the sizes at which the open batch takes no further call, so that one more call
// that begins below them always fits into what the storage applies as a whole.
type batchLimits struct {
	ops      int // records at which a batch is full
	bytes    int // bytes at which a batch is full
	maxBytes int // bytes that a push must not take a batch beyond
	group    int // packets that one pop may take
	record   int // bytes of queue name, key and payload of one packet
}

const (
	// pushOverhead is what a push may bring to disk beyond its queue name, key and payload.
	pushOverhead = 512
	// recordsPerPacket: a packet, and its payload if that is large.
	recordsPerPacket = 2
)

// limitsFor uses half of what a transaction holds: the other half is the room for one more call.
// A pop may delete more than that, which the storage allows for deletes.
func limitsFor(l storage.Limits) batchLimits {
	half := l.MaxOps / 2
	return batchLimits{
		ops:      half,
		bytes:    l.MaxBytes / 4,
		maxBytes: l.MaxBytes / 2,
		group:    min(MaxGroup, max((l.MaxOps-half)/recordsPerPacket, l.MaxDeletes-half)),
		record:   min(l.MaxRecord, l.MaxBytes-pushOverhead),
	}
}
