package resp

import (
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto"
)

// session turns the requests of one connection into broker calls and their replies.
type session struct {
	protocol *Protocol
	peer     *netproto.Peer
	consumer *broker.Conn
	id       int64

	parser     parser
	resp3      bool // RESP3 was agreed on
	authorized bool // the password was given, or there is none
	client     client
	address    []byte // of the client; nil until it is needed
	multi      transaction
	channels   map[string]struct{} // subscribed to
	patterns   map[string]struct{}
	waiter     waiter       // of the request that waits
	waitHeld   int          // bytes of the arguments that it keeps
	sliced     *broker.Bulk // of the request that is carried out slice by slice

	out          []byte // literal replies that were not handed over yet
	requestStart int    // where in out the reply to the present request begins
	commandStart int    // where that to the present command begins: later in a transaction
	handedOver   int    // literal bytes that the present request has handed over
	partSent     bool   // the present command has handed over a part of its reply
	overLimit    bool   // its reply has too many bytes; see fits
	// undurable: a reply of this run of Serve may show what is not on disk.
	undurable bool
	steps     int  // that the present request may still take; see maxSteps
	noReply   bool // the present request gets no reply
	inExec    bool // the present request is one of a transaction
	serving   bool // Serve runs
	leaving   bool // the connection ends after what was replied
	ended     bool // the connection has ended, or was ended by another

	// The present request. It is here so that Atomic takes run and exec, which are bound once: a
	// closure would allocate.
	cmd       *command
	tx        *broker.Tx
	args      [][]byte
	run, exec func() error
}

const (
	// maxServe is how many bytes of requests are carried out before others may take the broker's lock.
	maxServe = 16 << 10
	// maxServeSteps is how many steps of requests end a run early.
	maxServeSteps = maxSteps / 10
	// maxReplies is how many bytes of replies end a run early: some are far longer than their request.
	maxReplies = 64 << 10
	// keepReplies is the largest buffer for replies that a connection keeps.
	keepReplies = 16 << 10
)

// Serve implements netproto.Session. What it replies leaves in as few pieces as possible.
func (s *session) Serve(tx *broker.Tx, buf []byte) (n int, stop netproto.Stop, err error) {
	switch {
	case s.ended:
		return 0, netproto.Incomplete, net.ErrClosed
	case s.consumer.Waiting():
		return 0, netproto.Blocked, nil
	case s.client.since == 0:
		s.client.since = tx.Now()
		s.protocol.sessions[s.id] = s
	}
	s.serving, s.undurable = true, false
	n, stop, err = s.serve(tx, buf)
	s.serving = false
	s.flush(tx)
	return n, stop, err
}

func (s *session) serve(tx *broker.Tx, buf []byte) (n int, stop netproto.Stop, err error) {
	steps := 0 // that these requests took
	for n < len(buf) {
		if n >= maxServe || len(s.out) >= maxReplies || n > 0 && (s.peer.Full() || steps > maxServeSteps || tx.Full()) {
			return n, netproto.More, nil
		}
		args, size, err := s.parser.next(buf[n:], s.protocol.args[:0])
		refusal, refused := err.(failure)
		switch {
		case refused:
		case err != nil:
			if !errors.Is(err, netproto.ErrHTTP) {
				s.error("ERR " + err.Error())
			}
			return n, netproto.Incomplete, err
		case size == 0:
			return n, netproto.Incomplete, nil
		}
		if len(args) > 0 || refused {
			err = s.request(tx, args, string(refusal))
			s.protocol.keepArgs(args)
			steps += maxSteps - s.steps
		}
		s.parser.reset()
		if err == errUnfinished {
			return n, netproto.More, nil
		}
		n += size
		switch {
		case err != nil:
			return n, netproto.Incomplete, err
		case s.leaving:
			return n, netproto.Incomplete, io.EOF
		case s.consumer.Waiting():
			return n, netproto.Blocked, nil
		}
	}
	return n, netproto.Incomplete, nil
}

// keepArgs keeps the array of arguments for the next request, of any session.
func (p *Protocol) keepArgs(args [][]byte) {
	const keep = 1024
	clear(args)
	p.args = args
	if cap(args) > keep {
		p.args = nil
	}
}

// request carries out one request, or replies with why it is refused already. An error ends the
// connection, but for errUnfinished: then a part was done, and the same request is made again.
func (s *session) request(tx *broker.Tx, args [][]byte, refusal string) (err error) {
	if refusal == "" && netproto.BeginsLikeHTTP(args[0]) {
		return netproto.ErrHTTP
	}
	s.requestStart, s.handedOver, s.steps = len(s.out), 0, maxSteps
	skip := s.client.skipNext
	s.noReply, s.client.skipNext = skip || s.client.replyOff, false
	s.client.active = tx.Now()
	var c *command
	if refusal == "" {
		c, refusal = s.protocol.find(args)
	}
	if refusal == "" {
		refusal, s.client.last = s.refusal(c), c
	}
	switch {
	case refusal != "":
		s.error(refusal)
		s.multi.dirty = s.multi.on
	case s.multi.on && c.flags&flagAtOnce == 0:
		s.queue(c, args)
	default:
		err = s.carryOut(tx, c, args)
	}
	if s.noReply {
		s.out = s.out[:s.requestStart]
	}
	if err == errUnfinished {
		s.client.skipNext = skip
		return err
	}
	s.protocol.requests++
	return err
}

// refusal says why a request is not carried out, "" if it is.
func (s *session) refusal(c *command) string {
	switch {
	case !s.authorized && c.flags&flagNoAuth == 0:
		return errNoAuth
	case !s.resp3 && s.subscriptions() > 0 && c.flags&flagPubSub == 0:
		return fmt.Sprintf("ERR Can't execute '%s': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context", c.name)
	case s.multi.on && c.flags&flagSlices != 0:
		return fmt.Sprintf("ERR '%s' cannot be part of a transaction: it changes packets slice by slice", c.name)
	}
	return ""
}

// carryOut runs a command, alone.
func (s *session) carryOut(tx *broker.Tx, c *command, args [][]byte) (err error) {
	s.cmd, s.tx, s.args, s.commandStart = c, tx, args, s.requestStart
	if c.flags&(flagLocal|flagSlices) != 0 {
		err = s.runCommand()
	} else {
		err = tx.Atomic(s.run)
	}
	s.cmd, s.tx, s.args = nil, nil, nil
	switch {
	case err == nil:
	case err == errUnfinished, errors.Is(err, broker.ErrClosed):
		s.out = s.out[:s.requestStart]
		return err
	default:
		s.fail(err)
	}
	if c.flags&(flagLocal|flagShows) == 0 {
		s.shows(tx, 0)
	}
	return nil
}

// fail replies with the error of the present command, in place of what that has replied and not
// handed over.
func (s *session) fail(err error) {
	s.out = s.out[:s.commandStart]
	s.error(words(err))
}

// runCommand runs the present command, inside Atomic if it is not local. A reply that is too large
// becomes an error, or ends the connection if a part of it was handed over.
func (s *session) runCommand() error {
	s.partSent = false
	err := s.cmd.run(s, s.tx, s.args)
	if !s.overLimit {
		return err
	}
	s.overLimit = false
	if s.partSent {
		s.kill(s.tx)
		return nil
	}
	return fmt.Errorf("%w: the limit is %d bytes", broker.ErrReplyTooLarge, maxLiteral)
}

// maxLiteral is the most literal bytes of the reply to a request, to a transaction too.
const maxLiteral = broker.MaxAtomicReply

// fits says whether n literal bytes more are not too many for the reply to the present request.
// Once they are, the rest of the present command's reply is dropped.
func (s *session) fits(n int) bool {
	s.overLimit = s.overLimit || s.handedOver+len(s.out)+n > maxLiteral
	return !s.overLimit
}

// shows notes that the reply depends on what a batch brought, or on everything until now if that is
// 0. A command with flagShows calls it, in place of the session.
func (s *session) shows(tx *broker.Tx, batch uint64) {
	if !s.undurable && !tx.Durable(batch) {
		s.undurable = true
	}
}

// to hands the literal replies over and returns the consumer, so that a reply of packets may
// follow.
func (s *session) to(tx *broker.Tx) *broker.Conn {
	if s.noReply {
		s.out = s.out[:s.requestStart]
	}
	if len(s.out) > 0 {
		tx.Reply(s.consumer, s.out)
		s.partSent = s.partSent || len(s.out) > s.commandStart
		s.handedOver += len(s.out)
		s.out, s.requestStart, s.commandStart = s.out[:0], 0, 0
	}
	return s.consumer
}

// flush ends a run of Serve: what it replied and has not handed over leaves at once, if no earlier
// reply is queued and all that it shows is on disk.
func (s *session) flush(tx *broker.Tx) {
	if len(s.out) > 0 && !s.undurable && s.consumer.Idle() {
		s.peer.Send(s.out)
	} else if len(s.out) > 0 {
		tx.Reply(s.consumer, s.out)
	}
	if s.out = s.out[:0]; cap(s.out) > keepReplies {
		s.out = nil
	}
}

// waiter replies to a request that waits, as a broker.Waiter does.
type waiter interface {
	Ready(tx *broker.Tx, queue []byte)
	Expired(tx *broker.Tx)
}

// wait makes the present request wait, until a packet comes to one of the queues or until a moment.
// The waiter replies as a command does. Inside a transaction (inExec) a command does not wait.
func (s *session) wait(tx *broker.Tx, w waiter, t broker.TakeWait) error {
	if err := tx.Wait(s.consumer, s, t); err != nil {
		return err
	}
	s.waiter = w
	return nil
}

// Ready implements broker.Waiter: it hands over what the request's own waiter replies.
func (s *session) Ready(tx *broker.Tx, queue []byte) {
	s.endWait().Ready(tx, queue)
	s.to(tx)
}

// Expired implements broker.Waiter.
func (s *session) Expired(tx *broker.Tx) {
	s.endWait().Expired(tx)
	s.to(tx)
}

// Closed implements broker.Waiter.
func (s *session) Closed(tx *broker.Tx) {
	s.endWait()
	s.fail(broker.ErrQueueClosed)
	s.to(tx)
}

// endWait begins the reply to the request that waited, and returns that one's waiter.
func (s *session) endWait() waiter {
	w := s.waiter
	s.freeHeld()
	s.waiter, s.requestStart, s.commandStart = nil, len(s.out), len(s.out)
	return w
}

// freeHeld gives back what a request that waited has kept.
func (s *session) freeHeld() {
	s.protocol.held -= s.waitHeld
	s.waitHeld = 0
}

// Close implements netproto.Closer.
func (s *session) Close(tx *broker.Tx) { s.end(tx) }

// kill ends the connection at once, as another one or a limit wants it. One that is served carries
// out the present request to its end.
func (s *session) kill(tx *broker.Tx) {
	if s.leaving = true; !s.serving {
		s.end(tx)
	}
	s.peer.Kill()
}

// end takes the session out of all that the protocol holds. A second call does nothing.
func (s *session) end(tx *broker.Tx) {
	if s.ended {
		return
	}
	s.ended = true
	tx.StopWaiting(s.consumer) // so that it takes nothing more
	s.freeHeld()
	s.clear(tx)
	delete(s.protocol.sessions, s.id)
}

// clear drops a transaction, watched names and subscriptions.
func (s *session) clear(tx *broker.Tx) {
	s.discard(tx)
	s.unsubscribeAll()
}
