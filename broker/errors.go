package broker

import (
	"errors"
	"fmt"
)

// Errors of calls. Each is a sentence for the user; none of them has changed anything.
var (
	// ErrClosed: the broker is closing or has failed.
	ErrClosed = errors.New("server is shutting down: nothing more is accepted")
	// ErrNoSpace: the disk's free space is under the watermark for pushes.
	ErrNoSpace = errors.New("disk is nearly full: pushes are refused until space is freed, pops go on")
	// ErrStopped: the disk's free space is under the watermark for any write.
	ErrStopped = errors.New("disk is full: nothing is accepted until space is freed")
	// ErrTooManyQueues: MaxQueues or MaxNameBytes is reached.
	ErrTooManyQueues = errors.New("too many queues: empty or reuse some")
	// ErrTooManyPackets: the index has no number left for one more.
	ErrTooManyPackets = errors.New("too many packets: four billion are queued, pop some")
	// ErrTooManySubscriptions: MaxSubscriptions is reached.
	ErrTooManySubscriptions = errors.New("too many subscriptions on one connection: unsubscribe from some")
	// ErrNotBare: a packet is not just a key and a priority.
	ErrNotBare = errors.New("packet is not just a key: it has none, or has a payload, tags, a producer or a time to live that would be lost; take it through another protocol")
	// ErrShared: a packet is not the only one with its key, so that key has no one priority.
	ErrShared = errors.New("several packets have this key: take them first")
	// ErrManyShare: more than MaxBareGroup packets have a key.
	ErrManyShare = fmt.Errorf("more than %d packets have the best one's key: take them through another protocol", MaxBareGroup)
	// ErrTooLarge: the packet does not fit the storage's limits.
	ErrTooLarge = errors.New("packet too large")
)

// ErrUnreadable ends a broker: a packet was popped and cannot be read from disk. With Config.AcceptLoss
// the broker leaves such packets out.
var ErrUnreadable = errors.New("a popped packet cannot be read")
