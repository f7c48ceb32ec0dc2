package client

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// Handler works on a packet that is claimed. If it returns nil the packet is acknowledged; else it
// is returned with the error's text as the reason, and tried again after the queue's backoff. A
// panic is an error whose text has the stack. See also Dead, RetryIn and Snooze. If the server
// refuses such a wish, or the packet's Cost, it gets the answer without it.
//
// The context ends when the lease is lost: then another consumer may have the packet. It ends with
// the cause ErrCancelled when the packet was cancelled: nobody else gets it, whatever is returned.
type Handler func(ctx context.Context, p *Packet) error

// Middleware wraps a handler.
type Middleware func(Handler) Handler

// With wraps a handler. The first middleware is the outermost.
func (h Handler) With(all ...Middleware) Handler {
	for i := len(all) - 1; i >= 0; i-- {
		h = all[i](h)
	}
	return h
}

// Handle makes a handler of typed payloads. A payload that the codec cannot read makes the packet
// dead at once.
func Handle[T any](codec Codec, handle func(ctx context.Context, p *Packet, value T) error) Handler {
	return func(ctx context.Context, p *Packet) error {
		var value T
		if err := codec.Unmarshal(p.Payload, &value); err != nil {
			return Dead(fmt.Errorf("reading the payload: %w", err))
		}
		return handle(ctx, p, value)
	}
}

// Dead wraps the error of a handler, or of Nack: the packet is dead, and not tried again. It stays
// until somebody looks at it. Dead(nil) is nil.
func Dead(err error) error { return (&verdict{err: err, dead: true}).orNil() }

// RetryIn wraps the error of a handler, or of Nack: the packet is tried again after d, in place of
// the queue's backoff, unless it was its last attempt. RetryIn(d, nil) is nil.
func RetryIn(d time.Duration, err error) error { return (&verdict{err: err, after: d}).orNil() }

// Snooze is an error of a handler, or of Nack, that is no failure: the packet is delivered again
// after d, and the claim does not count as an attempt.
func Snooze(d time.Duration) error { return Uncounted(d, fmt.Errorf("snoozed for %v", d)) }

// Uncounted is Snooze with an error that has the reason. Uncounted(d, nil) is nil.
func Uncounted(d time.Duration, err error) error {
	return (&verdict{err: err, after: d, uncounted: true}).orNil()
}

// Hold wraps the error of a handler, or of Nack, when the other side says "not now", as HTTP 429
// does: the packet's share rests for d, or the queue if it has no shares. Less than a second is
// one, so that nobody asks without a pause, and more than a day is a day. The packet returns to its
// place, and the claim does not count as an attempt. Hold(d, nil) is nil.
func Hold(d time.Duration, err error) error {
	return (&verdict{err: err, hold: min(max(d, time.Second), 24*time.Hour), uncounted: true}).orNil()
}

// verdict is an error that says what becomes of the packet.
type verdict struct {
	err       error
	reason    string // the text of the error, once it was judged
	said      bool   // by Dead and its like, not by any error
	dead      bool
	after     time.Duration
	uncounted bool // the claim was no attempt
	hold      time.Duration
}

func (v *verdict) orNil() error {
	if v.err == nil {
		return nil
	}
	return v
}

func (v *verdict) Error() string { return v.err.Error() }
func (v *verdict) Unwrap() error { return v.err }

// judge reads an error, once: its methods are somebody else's, and may panic. It returns nil for
// none.
func judge(err error) *verdict {
	if err == nil {
		return nil
	}
	v, wrapped := new(verdict), (*verdict)(nil)
	if errors.As(err, &wrapped) {
		*v = *wrapped
		v.said = true
	}
	v.reason = err.Error()
	return v
}

// run calls the handler, and says what becomes of the packets: nil if they are done. A panic is a
// failure.
func (h BatchHandler) run(ctx context.Context, all []*Packet) (v *verdict) {
	defer func() {
		if p := recover(); p != nil {
			v = &verdict{reason: fmt.Sprintf("panic: %v\n\n%s", p, debug.Stack())}
		}
	}()
	return judge(h(ctx, all))
}
