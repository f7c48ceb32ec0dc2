package broker

import (
	"errors"
	"fmt"

	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/storage"
)

// Why a call was refused; it has changed nothing. Each is a sentence for the user.
var (
	// ErrClosed: the broker is closing or has failed.
	ErrClosed = errors.New("server is shutting down: nothing more is accepted")
	// ErrNoSpace: the disk has less free than pushes leave to all else, or tables cannot be written.
	ErrNoSpace = errors.New("disk is nearly full: pushes are refused until space is freed, pops go on")
	// ErrNoMemory: the process has less memory left than pushes leave to all else.
	ErrNoMemory = errors.New("memory is nearly full: pushes are refused until packets are taken or deleted, pops go on")
	// ErrNoClaim is an ErrNoMemory of a queue with many claims, where hardly any memory is left.
	ErrNoClaim = fmt.Errorf("%w; claims are refused, too, until some are acknowledged or returned", ErrNoMemory)
	// ErrStopped: the disk's free space is under the watermark for any write.
	ErrStopped = errors.New("disk is full: nothing is accepted until space is freed")
	// ErrTooManyQueues: MaxQueues or MaxNameBytes is reached.
	ErrTooManyQueues = errors.New("too many queues: empty or reuse some")
	// ErrTooManyPackets: the index has no number left for one more.
	ErrTooManyPackets = errors.New("too many packets: four billion are queued, pop some")
	// ErrTooManySubscriptions: MaxSubscriptions is reached.
	ErrTooManySubscriptions = errors.New("too many subscriptions on one connection: unsubscribe from some")
	// ErrTooManyAwaited: MaxAwaited is reached.
	ErrTooManyAwaited = fmt.Errorf("too many names are awaited: all clients together may wait for %d, of %d MiB: let some waits end", MaxAwaited, MaxNameBytes/2>>20)
	// ErrTooLarge: a packet, a string or a field does not fit the storage's limits.
	ErrTooLarge = errors.New("too large")
	// ErrTooMuchOpen: the open batch has passed MaxOpen.
	ErrTooMuchOpen = fmt.Errorf("%w: what waits to be written at once may have %d bytes", ErrTooLarge, MaxOpen)
	// ErrTooManyChanged: the calls of one Atomic would pass MaxChanged.
	ErrTooManyChanged = fmt.Errorf("too many elements: one command or transaction takes, removes or moves at most %d, and writes at most %d MiB of them again", MaxChanged, MaxChanged*writtenUnit>>20)
	// ErrTooManyLooks: the looks of one Atomic would pass MaxLooks.
	ErrTooManyLooks = errors.New("too much is looked at in one command or transaction: this command was not carried out, ask for less or send it by itself")
	// ErrTooManyEqual: a search in several priorities would have to sort more than index.MaxSorted
	// elements.
	ErrTooManyEqual = fmt.Errorf("too many elements equal the value: where a list has several priorities, %d are found at most", index.MaxSorted)
	// ErrReplyTooLarge: the calls of one Atomic answer with more than MaxAtomicReply.
	ErrReplyTooLarge = errors.New("reply too large")
	// ErrWaiting: a consumer that waits can do nothing else.
	ErrWaiting = errors.New("a blocked pop of this connection waits")
	// ErrNothing: a queue has nothing to take, and Selection.MustFind wants something. No user sees
	// it.
	ErrNothing = errors.New("no packet can be taken")
	// ErrFilling: it has something to take, and less than Selection.Least wants. No user sees it.
	ErrFilling = errors.New("fewer packets can be taken than make a batch")
	// ErrSweeping: a take has deleted many packets that had expired, and has not come to others yet.
	// The call is to be made again in the next turn. Users see it only in a transaction.
	ErrSweeping = errors.New("thousands of packets at the queue's head have expired: they are being deleted, try again")
	// ErrNoElement: a list has no elements where some are wanted.
	ErrNoElement = errors.New("no such elements in the list")
	// ErrChanged: elements of a list could not be read, and are none any more: the call may be made
	// again. No user sees it.
	ErrChanged = errors.New("list has lost elements that cannot be read")

	// ErrStale: a claim has ended, or never was.
	ErrStale = errors.New("the claim has ended: its lease ended, or it was acknowledged or returned")
	// ErrTooDear: a rate would wait too long for what a claim is to cost.
	ErrTooDear = errors.New("the cost is too high for the rate: it would have to wait too long for so many takes")
	// ErrCancelled: the packet of a claim is not to be worked on.
	ErrCancelled = errors.New("the packet was cancelled: end the work and acknowledge or return it, which ends the packet; the lease is not extended")
	// ErrUnknownQueue: no queue has the name.
	ErrUnknownQueue = errors.New("no queue has this name: it holds no packets and has no settings")
	// ErrNoOrigin: the queues are gone to which packets would return.
	ErrNoOrigin = errors.New("the queues where they died are gone")

	// ErrFull: a queue holds as much as its bound allows.
	ErrFull = errors.New("queue is full")
	// ErrDropped: it drops packets that are worse than those that come, and too few may go. It is
	// an ErrFull.
	ErrDropped = fmt.Errorf("%w and cannot drop enough packets that are worse", ErrFull)
	// ErrShareFull: a share of a queue holds as much as its bound allows. It is an ErrFull for which
	// nobody waits: others of the queue's line would wait behind.
	ErrShareFull = fmt.Errorf("%w for one share", ErrFull)
	// ErrPaused: a queue takes nothing in for now.
	ErrPaused = errors.New("queue is paused: it takes nothing in until pause-in is off")
	// ErrQueueClosed: a queue takes nothing in any more; whoever takes from it has had all.
	ErrQueueClosed = errors.New("queue is closed: nothing will ever be pushed again")
	// ErrInUse: a queue has an exclusive producer or consumer, and that is another client.
	ErrInUse = errors.New("queue is in use by another client")
	// ErrTooManyLanes: a queue has MaxLanes different sets of tags.
	ErrTooManyLanes = errors.New("too many different sets of tags in one queue")
	// ErrNotInOrder: the values of a tag have an order in a queue, and one is not among them.
	ErrNotInOrder = errors.New("value is not one of those that the queue declares for the tag")

	// ErrNoShares: a call names a share of a queue that is not shared out.
	ErrNoShares = errors.New("queue has no shares: set its share-by first")
	// ErrManyShares: a filter would be asked about more than MaxLanes.
	ErrManyShares = fmt.Errorf("too many shares for a filter: the packets of the queue have more than %d sets of tags; name one with SHARE", MaxLanes)
	// ErrReshaped: a page would miss packets that have come to other shares since the one before.
	ErrReshaped = errors.New("packets have come to other shares since the last page: begin the list anew")
	// ErrByShares: a list command names a place of a queue that is shared out.
	ErrByShares = errors.New("places in a list are not known in a queue with share-by: its shares take turns")
	// ErrGroupLimited: a group is to be claimed from a queue that limits how many are.
	ErrGroupLimited = errors.New("groups are not claimed from a queue with max-claimed, share-max-claimed or a share's own max-claimed: a group may be larger than what is left")

	// ErrNoKey: a packet that was to go by its key has none.
	ErrNoKey = errors.New("packet has no key: take it through another protocol")
	// ErrShared: a packet is not the only one with its key, so that key has no one priority.
	ErrShared = errors.New("several packets have this key: take them first")
)

// ErrUnreadable refuses a call, which has changed nothing: a packet or a large value that it needs
// is damaged or gone.
var ErrUnreadable = errors.New("cannot be read from the disk")

// ErrDiskFull: Disk.Apply found no room, and has written nothing. The same batch may be applied
// later.
var ErrDiskFull = storage.ErrFull

// noRoom returns ErrNoSpace, which says why if that is not the disk's free space.
func noRoom(why string) error {
	if why == "" {
		return ErrNoSpace
	}
	return cannotStore(why)
}

// cannotStore is an ErrNoSpace of a store that fails for another reason.
type cannotStore string

func (e cannotStore) Error() string {
	return "tables cannot be written: pushes are refused until that is mended, pops go on: " + string(e)
}

func (e cannotStore) Is(other error) bool { return other == ErrNoSpace }
