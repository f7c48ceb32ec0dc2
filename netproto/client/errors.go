package client

import (
	"context"
	"errors"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"
)

// What the server refuses. The errors of calls wrap them, and say the server's words. Nothing was
// changed, unless a call says otherwise.
var (
	// ErrStale: the claim was answered, or its lease is over. Another consumer may have the packet.
	ErrStale = errors.New("the claim has ended")
	// ErrNoQueue: the queue holds no packets and has no settings. A push makes it.
	ErrNoQueue = errors.New("no such queue")
	// ErrFull: the packets would exceed the bound of the queue. Block waits for room.
	ErrFull = errors.New("the queue is full")
	// ErrPaused: the queue has pause-in, and takes no packets for now. Block waits for its end.
	ErrPaused = errors.New("the queue is paused")
	// ErrClosed: the queue takes no more packets, or it is closed and drained.
	ErrClosed = errors.New("the queue is closed")
	// ErrInUse: the queue has an exclusive producer or consumer, and it is not this client.
	ErrInUse = errors.New("another client has the queue for itself")
	// ErrNoSpace: the disk of the server is nearly full. Takes and acknowledgements still work.
	ErrNoSpace = errors.New("the server's disk is nearly full")
	// ErrWrongType: the name is that of a string or a hash.
	ErrWrongType = errors.New("the name is not that of a queue")
	// ErrTooLarge: a packet, a batch or a reply is beyond a limit, which the error names.
	ErrTooLarge = errors.New("too large")
	// ErrTooMany: the server accepts no more connections for now.
	ErrTooMany = errors.New("the server has too many connections")
	// ErrDenied: the server has a password. It goes into redis.Options.
	ErrDenied = errors.New("the password is missing or wrong")
	// ErrInvalid: an option or an argument is wrong. The same call is refused each time.
	ErrInvalid = errors.New("the server does not accept the call as it is")
)

// ErrNoPacket: the queue has no packet with this id.
var ErrNoPacket = errors.New("no such packet")

// ErrUnknown: the connection was lost before the answer to a request that is not repeated. It may
// have been carried out.
var ErrUnknown = errors.New("the connection was lost before the answer, so the call may have been carried out")

// kinds are the first words of the server's errors. The first that fits counts.
var kinds = []struct {
	prefix string
	kind   error
}{
	{"STALE ", ErrStale}, {"NOQUEUE ", ErrNoQueue}, {"FULL ", ErrFull}, {"PAUSED ", ErrPaused},
	{"CLOSED ", ErrClosed}, {"INUSE ", ErrInUse}, {"OOM ", ErrNoSpace}, {"WRONGTYPE ", ErrWrongType},
	{"NOAUTH ", ErrDenied}, {"WRONGPASS ", ErrDenied}, {"ERR too large", ErrTooLarge},
	{"ERR transaction too large", ErrTooLarge}, {"ERR reply too large", ErrTooLarge},
	{"ERR max number of clients", ErrTooMany}, {"ERR ", ErrInvalid},
}

// kindError is an error in the server's words that is also one of a kind.
type kindError struct{ kind, err error }

func (e *kindError) Error() string   { return e.err.Error() }
func (e *kindError) Unwrap() []error { return []error{e.kind, e.err} }

// refusal gives an error its kind.
func refusal(err error) error {
	var reply redis.Error
	if !errors.As(err, &reply) {
		return err
	}
	for _, k := range kinds {
		if strings.HasPrefix(reply.Error(), k.prefix) {
			return &kindError{k.kind, err}
		}
	}
	return err
}

// isReply says whether an error is the server's answer.
func isReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

// unknownIfSent marks an error after which a request may have been carried out.
func unknownIfSent(err error) error {
	var op *net.OpError
	switch {
	case isReply(err), errors.Is(err, redis.ErrClosed), errors.Is(err, redis.ErrPoolTimeout),
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded),
		errors.As(err, &op) && op.Op == "dial":
		return err
	}
	return &unknownError{err}
}

type unknownError struct{ err error }

func (e *unknownError) Error() string   { return ErrUnknown.Error() + ": " + e.err.Error() }
func (e *unknownError) Unwrap() []error { return []error{ErrUnknown, e.err} }
