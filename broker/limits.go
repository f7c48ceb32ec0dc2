package broker

import "github.com/holdfast-queue/holdfast/storage"

// The broker's limits, each with its reason.
const (
	// DefaultCache keeps enough recent payloads that a consumer which keeps up never reads the disk.
	DefaultCache = 16 << 20

	// MaxGroup is the most packets one pop hands out: the pinpriq reply counts them in 16 bits.
	MaxGroup = 0xffff
	// MaxGroupBytes bounds the keys and payloads of one pop, and so what one client can make
	// the server hold: what is past it stays queued.
	MaxGroupBytes = 16 << 20

	// MaxQueues bounds what clients can make the server remember of names.
	MaxQueues = 1 << 20
	// MaxNameBytes bounds the bytes of all queue names together.
	MaxNameBytes = 256 << 20
	// MaxSubscriptions bounds the queues that one consumer can subscribe to.
	MaxSubscriptions = 1024
	// MaxUnsent is how many bytes of replies a consumer may have outstanding before the server
	// stops reading its requests and delivering to it.
	MaxUnsent = 4 << 20

	maxIdleQueues   = 1024     // empty queues whose definition is kept, so that a queue that empties often costs nothing
	maxBatchReplies = 8 << 20  // bytes of payloads that one batch may owe to receivers
	maxBatchHeld    = 16 << 20 // bytes of pushed packets that one batch may hold, those that were popped again included
	batchesInFlight = 4        // open, committing, completing, and one to swap
	readAhead       = 512      // neighbours read with a payload that was not cached
	spaceCheck      = 100      // milliseconds between two looks at the disk while it is too full
	timersAtOnce    = 1024     // timers handled between two looks at the room in the batch
)

// batchLimits are the sizes at which the open batch takes no further call. Every call that
// begins below them fits into one transaction of the storage.
type batchLimits struct {
	ops      int // records at which a batch is full
	bytes    int // bytes at which a batch is full
	groupOps int // records that one pop may still add to a batch that is not full
	record   int // bytes of key and payload of one packet
}

// opsPerPush is the most records a push adds: packet, large payload, queue definition.
const opsPerPush = 3

// limitsFor leaves one call's worth of room between "full" and what the storage takes. A pop
// removes up to two records a packet (record and large payload).
func limitsFor(l storage.Limits) batchLimits {
	const worstPush = 512 << 10 // name, key and payload at their largest, with their encoding
	half := l.MaxOps / 2
	return batchLimits{
		ops:      half,
		bytes:    max(l.MaxBytes/2-worstPush, l.MaxBytes/4),
		groupOps: (l.MaxOps - half - opsPerPush) / 2,
		record:   l.MaxRecord,
	}
}
