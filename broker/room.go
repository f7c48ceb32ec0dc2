package broker

import "errors"

// ErrNoRoom: the open batch has no room for a call. The call has changed nothing and is made again
// after WaitRoom.
var ErrNoRoom = errors.New("the open batch is full")

// Room is what calls bring to the open batch, at most.
type Room struct {
	Records int // packets, strings and fields that are put or moved, and queues that are made
	Bytes   int // of their names, keys, fields and values
	Deletes int // packets, strings and fields that are taken or deleted
}

// Plus returns the room of both.
func (r Room) Plus(o Room) Room {
	return Room{Records: r.Records + o.Records, Bytes: r.Bytes + o.Bytes, Deletes: r.Deletes + o.Deletes}
}

// Atomic runs fn as one: nobody else's calls come between those of fn, and what they change reaches
// the disk all in one batch or not at all. Room is reserved first. Subscribers and waiters get what
// fn brought when fn is done. It returns fn's error; what fn did before an error stays done.
//
// Before fn runs it returns ErrTooLargeForBatch, which names the limit, if no batch has that much
// room, and ErrNoRoom if the open one has not. A call inside fn that goes beyond what was announced
// changes nothing and returns ErrNotReserved.
func (tx *Tx) Atomic(r Room, fn func() error) error { return errStub }

// WaitRoom waits until the open batch may have room again. It returns ErrClosed or ErrStopped if
// calls would not be accepted. It is called outside of transactions.
func (b *Broker) WaitRoom() error { return errStub }

var errStub = errors.New("not built yet")
