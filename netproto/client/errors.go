package client

import (
	"context"
	"crypto/tls"
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
	// ErrCancelled: [Client.Cancel] has cancelled the packet of a claim, whose lease is not extended.
	ErrCancelled = errors.New("the packet was cancelled")
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
	// ErrNoSpace: the disk or the memory of the server is nearly full. Pops and acknowledgements
	// still work; claims do not where very little memory is left.
	ErrNoSpace = errors.New("the server's disk or memory is nearly full")
	// ErrWrongType: a string or a hash has the name.
	ErrWrongType = errors.New("the name is not that of a queue")
	// ErrTooLarge: a packet, a batch or a reply is beyond a limit, which the error names.
	ErrTooLarge = errors.New("too large")
	// ErrTooMany: the server accepts no more connections or logins for now.
	ErrTooMany = errors.New("the server has too many connections or logins")
	// ErrDenied: the server wants a login. User and password go into redis.Options.
	ErrDenied = errors.New("the user or the password is missing or wrong")
	// ErrForbidden: the user does not have the right to make the call, or not for this queue.
	ErrForbidden = errors.New("the user does not have the right")
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
	{"STALE ", ErrStale}, {"CANCELLED ", ErrCancelled}, {"NOQUEUE ", ErrNoQueue}, {"FULL ", ErrFull}, {"PAUSED ", ErrPaused},
	{"CLOSED ", ErrClosed}, {"INUSE ", ErrInUse}, {"OOM ", ErrNoSpace}, {"WRONGTYPE ", ErrWrongType},
	{"NOAUTH ", ErrDenied}, {"WRONGPASS ", ErrDenied},
	{"NOPERM ", ErrForbidden}, {"ERR too large", ErrTooLarge},
	{"ERR transaction too large", ErrTooLarge}, {"ERR reply too large", ErrTooLarge},
	{"ERR max number of clients", ErrTooMany}, {"ERR too many logins", ErrTooMany}, {"ERR ", ErrInvalid},
}

// kindError is an error in the server's words that is also one of a kind.
type kindError struct{ kind, err error }

func (e *kindError) Error() string   { return e.err.Error() }
func (e *kindError) Unwrap() []error { return []error{e.kind, e.err} }

// noConnection is the server's answer to a HELLO if the connection is of no use. It is no
// redis.Error: after one go-redis would try the same password in an AUTH, and the server would
// count two failures; or it would go on where the server hangs up, and say no more than that.
type noConnection struct{ reply error }

func (e *noConnection) Error() string { return e.reply.Error() }

// noGreeting is why a HELLO was not answered: no request was sent on its connection. A node that
// passes clients on waits in it for an owner.
type noGreeting struct{ error }

// Unwrap returns a list, as go-redis takes a single error out of what wraps it.
func (e *noGreeting) Unwrap() []error { return []error{e.error} }

// Timeout is false also after one, as go-redis repeats nothing else: it cannot know what was sent.
func (e *noGreeting) Timeout() bool { return false }

// oneHello is a hook that has go-redis end a connection that is of no use.
type oneHello struct{ silent *silent }

func (oneHello) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h oneHello) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		at := h.silent.Load()
		err := next(ctx, cmd)
		if cmd.Name() == "hello" && err != nil && !isReply(err) {
			h.silent.CompareAndSwap(at, at+1)
			return &noGreeting{err}
		}
		for _, prefix := range []string{"WRONGPASS ", "ERR max number of clients", "ERR the first bytes are not TLS"} {
			if cmd.Name() == "hello" && isReply(err) && strings.HasPrefix(err.Error(), prefix) {
				return &noConnection{err}
			}
		}
		return err
	}
}

func (oneHello) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// refusal gives an error its kind.
func refusal(err error) error {
	var wrong *noConnection
	if errors.As(err, &wrong) {
		err = wrong.reply
	}
	var reply redis.Error
	if !errors.As(err, &reply) {
		return err
	}
	for _, k := range kinds {
		if strings.HasPrefix(reply.Error(), k.prefix) {
			return &kindError{k.kind, reply} // without what the library says of its connection
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
	var certificate *tls.CertificateVerificationError
	var plain tls.RecordHeaderError
	switch {
	case isReply(err), errors.As(err, new(*noGreeting)), errors.Is(err, redis.ErrClosed), errors.Is(err, redis.ErrPoolTimeout),
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded),
		errors.As(err, &certificate), errors.As(err, &plain), errors.As(err, &op) && (op.Op == "dial" || rejects(op)):
		return err
	}
	return &unknownError{err}
}

// rejects says whether an error is a server's alert about the client's certificate, which may come
// behind the first request. Alerts have no type.
func rejects(op *net.OpError) bool {
	return op.Op == "remote error" && strings.Contains(op.Err.Error(), "certificate")
}

type unknownError struct{ err error }

func (e *unknownError) Error() string   { return ErrUnknown.Error() + ": " + e.err.Error() }
func (e *unknownError) Unwrap() []error { return []error{ErrUnknown, e.err} }
