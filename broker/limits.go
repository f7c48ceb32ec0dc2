package broker

import (
	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// The broker's limits, each with its reason.
const (
	// DefaultCache keeps enough recent payloads that a consumer which keeps up never reads the disk.
	DefaultCache = 16 << 20

	// MaxGroup is the most packets one pop hands out: the pinpriq reply counts them in 16 bits.
	MaxGroup = 0xffff
	// MaxNarrow is the longest key or payload that a consumer of narrow packets is given.
	MaxNarrow = content.MaxNarrow
	// MaxGroupBytes bounds the keys and payloads of one pop, and so what one client can make the
	// server hold. What is past it stays queued.
	MaxGroupBytes = 16 << 20

	// MaxPayload bounds Options.MaxPayload, which is DefaultMaxPayload if nobody sets it.
	MaxPayload        = content.MaxPayload
	DefaultMaxPayload = 1 << 20
	// MaxRecord bounds the bytes of a string or field with its name, and of one packet with its
	// queue's name unless longer payloads are allowed.
	MaxRecord = content.MaxItem - recordOverhead
	// MaxOpen bounds what a batch takes of memory when calls bring far more than their arguments, as
	// those that define a queue again: an Atomic that has brought more begins no Atomic inside it.
	MaxOpen = 256 << 20

	// MaxAtomicReply bounds the packets that the calls of one Atomic answer with, and so what one
	// client can make the server hold: the longest packet fits, with all that is said of it.
	MaxAtomicReply = MaxPayload + 1<<18

	// MaxChanged bounds the elements that the calls of one Atomic take, remove by their value or move:
	// some 100 ms. A pop of pinpriq takes MaxGroup. What is written again counts one more for each
	// writtenUnit of bytes: a string that is patched, a packet that moves or is retained. But for one
	// longer packet, an Atomic writes 32 MiB so at most.
	MaxChanged  = 1 << 14
	writtenUnit = 2 << 10

	// MaxLooks bounds what the looks of one Atomic cost: MayLook then refuses more, after some 100 ms.
	// A name costs 1, and so does each step in the index. An element or a field costs lookElement, and
	// a KiB that is read lookKiB. lookSearch is for each element of a list that is searched for the
	// first time, and was not prepared.
	MaxLooks    = 4_000_000
	lookElement = 75
	lookKiB     = 150
	nameBytes   = 16 // of a name or field cost 1, too
	lookValue   = 16 // a value of a tag, or 128 bytes of a name, of settings that change
	lookSearch  = 25 // asked for before the search; the index counts as much in it

	// MaxShareName is how long the name of a share may be, in bytes.
	MaxShareName = index.MaxShareName
	// MaxWeight bounds the weight of a share, and MaxShares the shares of a queue that have something
	// of their own besides a rest: some 3 MB.
	MaxWeight = content.MaxWeight
	MaxShares = content.MaxShares
	// MaxHold bounds a rest of a share, in milliseconds, and MaxRests the shares of a queue that have
	// nothing of their own besides: some 100 MB.
	MaxHold  = content.MaxHold
	MaxRests = 250_000
	// MaxCost bounds as how many takes a claim counts, and maxCostTime for how many milliseconds its
	// rate has to wait for these: whoever errs blocks a share for no longer than a year.
	MaxCost     = 1_000_000
	maxCostTime = 365 * dayMillis
	dayMillis   = 24 * 3600 * 1000
	// MaxShareLanes bounds the shares of a queue, each with its sets of tags: some 200 MB.
	MaxShareLanes = index.MaxShareLanes

	// MaxCount bounds the packets that one call claims, lists or changes: each may bring a few records
	// to the batch, and holds others for a moment.
	MaxCount = 1000
	// MaxLook bounds the packets that a List looks at to find those that a filter takes, and a slice
	// of a dry run: a few milliseconds.
	MaxLook = 10_000
	// LookSlice is about how many names, fields or elements a slice of a look takes.
	LookSlice      = 500
	lookSliceBytes = 256 << 10
	// findSlice is how many elements of one value a slice of a search takes. It ends behind findPassed
	// on the way to their positions: one position, if there are 10,000 sets of tags.
	findSlice  = 4096
	findPassed = 250_000
	// MaxTags bounds the tags of a packet, and MaxTagBytes the bytes of their names and values.
	MaxTags     = 64
	MaxTagBytes = 16 << 10
	// MaxConsumer bounds the bytes of the name of a consumer or a producer, which each claim keeps.
	MaxConsumer = 255
	// MaxReason bounds the bytes of a reason, and of the text of a progress.
	MaxReason = 4096
	// MaxMeta bounds what is pushed beside a payload.
	MaxMeta = 4096
	// MaxTime bounds leases, delays and times to live, in milliseconds: ten years.
	MaxTime = content.MaxTime
	// MaxMoment is the latest moment that a client names, in Unix milliseconds: in the year 2109.
	MaxMoment = content.MaxMoment
	// MaxConsumerIDs bounds the ids that Consumers returns of each, MaxConsumerClaims the claims it
	// looks at.
	MaxConsumerIDs    = 100
	MaxConsumerClaims = 100_000
	consumerSlice     = 2000 // claims that a slice of Consumers looks at
	// ConsumerTime is how long a consumer that holds nothing is remembered, in milliseconds, and
	// MaxConsumers how many are, in all queues: each name takes a few hundred bytes at most.
	ConsumerTime = 10 * 60 * 1000
	MaxConsumers = 1 << 17
	// MaxProducers is how many producers of one queue are remembered: Producers returns all of them
	// at once, in some milliseconds.
	MaxProducers = 10_000

	// MaxLanes bounds the different sets of tags that the packets of one queue have: a filter looks at
	// each.
	MaxLanes = 10_000
	// MaxTerms bounds the terms of a filter.
	MaxTerms = 64
	// MaxUnique bounds the bytes of the id of a unique push.
	MaxUnique = content.MaxUnique

	// MaxQueues bounds the queues that are known at a time.
	MaxQueues = content.MaxQueues
	// MaxNameBytes bounds the bytes of their names together.
	MaxNameBytes = content.MaxNameBytes
	// MaxSubscriptions bounds the queues that one consumer can subscribe to.
	MaxSubscriptions = 1024
	// MaxAwaited bounds the names that are awaited: by subscriptions, and by requests that wait for
	// packets, and may take half of MaxNameBytes. The other halves are for queues that hold something.
	MaxAwaited = MaxQueues / 2
	// AwaitedMemory is the memory that a name counts as for each client that waits for it. It takes
	// less, even if nobody else knows it.
	AwaitedMemory = 400
	// MaxOutstandingBytes is how much may be on its way to a consumer before the server stops
	// delivering to it and reading its requests.
	MaxOutstandingBytes = 4 << 20

	// A queue that empties often costs nothing, because the definitions of empty queues are kept:
	// at most maxIdleQueues of them, for maxIdleTime milliseconds. Past these Work evicts.
	maxIdleQueues = 1024
	maxIdleTime   = 10_000

	// PrepareSlice is how many packets get into the tables of ids and of values before others have
	// their turn.
	PrepareSlice = 4096
	// maxSettled is how many queues, and sets of tags for each term of a filter, settle asks for what
	// they have before others have their turn: some 7 ms.
	maxSettled   = 100_000
	advanceSlice = 1024 // leases, packets, names and pauses that end before others have their turn
	evictSlice   = 1024 // queues that go before others have their turn

	// The table of queues is made anew when it takes one in shrinkTable of its memory, if that is more
	// than minShrinkTable queues.
	shrinkTable    = 8
	minShrinkTable = 8192

	// A batch that has reached one of these, or storage.Limits, is full: the next call begins the next
	// batch. Its last call may exceed it.
	maxBatchPushes = 1 << 16  // packets pushed, those that were popped or moved again included
	maxBatchMemory = 16 << 20 // bytes of packets pushed, those that were popped or moved again included

	keepScratch    = 1 << 16 // packets of a large call for which memory is kept
	keepCopied     = 1 << 20 // bytes that were read for it
	recordOverhead = 160     // bytes that a record may have besides those that MaxRecord counts
	recordMemory   = 144     // bytes that a batch takes for a record besides its own
	packetOverhead = 16      // bytes that a packet of a reply counts for besides key and payload
	detailOverhead = 256     // bytes that a detail counts for besides its texts
	readAhead      = 512     // neighbours read with a payload that was not cached
	readAheadBytes = 1 << 20 // and how large they may be together
	readFarAhead   = 4096    // how many an Atomic reads so, besides two for each that it takes
	wallCheck      = 1000    // milliseconds between two turns while something is due: the wall clock may be put forward
	spaceCheck     = 100     // milliseconds between two turns while the disk is too full
)
