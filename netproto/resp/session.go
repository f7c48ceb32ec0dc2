package resp

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto"
	"github.com/holdfast-queue/holdfast/netproto/access"
	"github.com/holdfast-queue/holdfast/netproto/resp/wire"
)

// session turns the requests of one connection into broker calls and their replies.
type session struct {
	protocol *Protocol
	peer     *netproto.Peer
	consumer *broker.Conn
	id       int64

	parser      wire.Parser
	resp3       bool // RESP3 was agreed on
	pass        access.Pass
	cancelLogin func()   // of the login that the present request waits for; nil: none
	verdict     *verdict // of that login, when the request is made again
	client      client
	address     []byte // of the client; nil until it is needed
	multi       transaction
	watched     int // bytes that watched names take
	channels    map[string]subscription
	patterns    map[string]subscription
	parked      parked
	sliced      *broker.Bulk // of the request that is carried out slice by slice
	slicing     *command     // of that request
	forItself   bool         // the command manages nothing: it was about a value, or a wait of the client's own
	look        look
	toSelf      []byte // messages that the present request publishes to this session

	requestStart int  // where in the peer's Out the reply to the present request begins
	commandStart int  // where the reply to the present command begins: later in a transaction
	overLimit    bool // its reply has too many bytes; see fits
	steps        int  // how many the present request may still take; see maxSteps
	noReply      bool // the present request gets no reply
	inExec       bool // the present request is one of a transaction
	serving      bool // Serve runs
	leaving      bool // the connection ends after what was replied
	ended        bool // the connection has ended, or was ended by another

	// The present request. It is here so that Atomic takes run and exec, which are bound once: a
	// closure would allocate.
	request   []byte // its bytes
	cmd       *command
	tx        *broker.Tx
	args      [][]byte
	run, exec func() error
}

// Open implements netproto.Protocol.
func (p *Protocol) Open(peer *netproto.Peer) netproto.Session {
	p.opened++
	s := &session{protocol: p, peer: peer, consumer: peer.Consumer(), id: int64(p.config.Epoch)<<32 + p.opened}
	s.run, s.exec = s.runCommand, s.runTransaction
	s.parser.Most = p.config.MaxPayload
	s.pass = access.NewPass(p.config.Users)
	s.beginAsUser()
	return s
}

// Serve implements netproto.Session.
func (s *session) Serve(tx *broker.Tx, buf []byte) (n int, stop netproto.Stop, err error) {
	if s.ended {
		return 0, netproto.Incomplete, net.ErrClosed
	}
	if s.client.since == 0 {
		s.client.since = tx.Now()
		s.protocol.sessions[s.id] = s
	}
	s.serving = true
	n, stop, err = s.serve(tx, buf)
	s.serving = false
	return n, stop, err
}

func (s *session) serve(tx *broker.Tx, buf []byte) (n int, stop netproto.Stop, err error) {
	late, replied := false, len(s.peer.Out)
	for n < len(buf) {
		if n >= netproto.MaxServe || len(s.peer.Out)-replied >= netproto.MaxReplies || n > 0 && (s.peer.Full() || late || tx.Full()) {
			return n, netproto.More, nil
		}
		args, size, err := s.next(buf[n:])
		refusal, refused := err.(wire.Refusal)
		switch {
		case refused:
		case err != nil:
			if !errors.Is(err, netproto.ErrHTTP) {
				s.error("ERR " + err.Error())
			}
			return n, netproto.Incomplete, err
		case size == 0:
			s.peer.Announce(s.parser.Announced())
			return n, netproto.Incomplete, nil
		}
		if len(args) > 0 || refused {
			s.request = buf[n : n+size]
			err = s.serveRequest(tx, args, string(refusal))
			if err == errUnfinished && len(args) > maxKeptArgs {
				s.protocol.long, s.protocol.args = longRequest{s, s.request, args}, nil
			} else {
				s.protocol.args = reusable(args)
			}
			s.request = nil // else it keeps the buffer
			late = s.peer.Late(s.client.last != nil && s.client.last.flags&flagFast != 0 && s.steps == maxSteps)
		}
		s.parser.Reset()
		switch err {
		case errUnfinished:
			if s.sliced != nil {
				return n, netproto.Unfinished, nil
			}
			return n, netproto.More, nil
		case errLater:
			return n, netproto.Later, nil
		}
		n += size
		switch {
		case err != nil:
			return n, netproto.Incomplete, err
		case s.leaving:
			return n, netproto.Incomplete, io.EOF
		case s.consumer.Parked():
			return n, netproto.Blocked, nil
		}
	}
	return n, netproto.Incomplete, nil
}

// longRequest is a request that goes on in a later turn, and its many arguments: to cut it anew for
// each slice would take longer than the slice. A protocol keeps one, so the memory is bounded.
type longRequest struct {
	session *session
	bytes   []byte // of the read buffer
	args    [][]byte
}

// next returns the arguments of the first request of buf, as the parser does.
func (s *session) next(buf []byte) (args [][]byte, n int, err error) {
	if p := s.protocol; p.long.session == s {
		long := p.long
		p.long = longRequest{}
		if &long.bytes[0] == &buf[0] { // it has not moved, and nothing is read before it ends
			return long.args, len(long.bytes), nil
		}
	}
	if args, n, err = s.parser.Next(buf, s.protocol.args[:0]); n == 0 {
		clear(s.protocol.args[:cap(s.protocol.args)]) // they would keep the buffer
	}
	return args, n, err
}

// maxKeptArgs is the most arguments for which an array is kept.
const maxKeptArgs = 1024

// reusable returns the array of arguments for the next request of any session.
func reusable(args [][]byte) [][]byte {
	clear(args)
	if cap(args) > maxKeptArgs {
		return nil
	}
	return args
}

// serveRequest carries out one request, or replies with why it is refused already. An error ends
// the connection, but for errUnfinished and errLater: a part was done, or nothing, and the same
// request is made again.
func (s *session) serveRequest(tx *broker.Tx, args [][]byte, refusal string) (err error) {
	if refusal == "" && netproto.BeginsLikeHTTP(args[0]) {
		return netproto.ErrHTTP
	}
	s.requestStart = len(s.peer.Out)
	if !s.look.under {
		s.steps = maxSteps
	}
	skip := s.client.skipNext
	s.noReply, s.client.skipNext = skip || s.client.replyOff, false
	s.client.active = tx.Now()
	var c *command
	if refusal == "" {
		c, refusal = s.protocol.find(args)
	}
	if refusal == "" {
		refusal, s.client.last = s.refusal(c, args), c
	}
	switch {
	case refusal != "":
		s.dropLook()
		s.endSlices()
		s.error(refusal)
		s.multi.dirty = s.multi.on
	case s.multi.on && c.flags&flagAtOnce == 0:
		s.queue(c, args)
	case tx.Space().Wait > 0 && (c.flags&flagAdds != 0 || s.multi.adds()):
		err = errLater
	default:
		err = s.carryOut(tx, c, args)
	}
	if s.noReply {
		s.peer.Out = s.peer.Out[:s.requestStart]
	}
	if s.toSelf != nil {
		s.peer.Out, s.toSelf = append(s.peer.Out, s.toSelf...), nil
	}
	if err == errUnfinished || err == errLater {
		s.client.skipNext = skip
		return err
	}
	s.protocol.requests++
	return err
}

// errLater: the request brings data, and the storage wants none for now.
var errLater = errors.New("the storage is behind")

// refusal says why a request is not carried out, "" if it is.
func (s *session) refusal(c *command, args [][]byte) string {
	switch {
	case !s.known() && c.flags&flagNoAuth == 0:
		return errNoAuth
	case c.flags&flagPayload == 0 && s.parser.Large():
		return fmt.Sprintf("ERR too large: an argument has %d bytes, the limit is %d for all but payloads", longest(args), wire.MaxArg)
	case c.per > 0 && len(args) > broker.MaxChanged && c.changes(args) > broker.MaxChanged:
		return fmt.Sprintf("ERR too many elements: one request takes at most %d, got %d: send them in several", broker.MaxChanged, c.changes(args))
	case !s.resp3 && s.subscriptions() > 0 && c.flags&flagPubSub == 0:
		return fmt.Sprintf("ERR Can't execute '%s': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context", c.name)
	case s.multi.on && c.flags&flagSlices != 0:
		return fmt.Sprintf("ERR '%s' cannot be part of a transaction: it changes packets slice by slice", c.name)
	}
	return s.forbidden(c, args)
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
		s.audit(c, args)
	case err == errUnfinished, errors.Is(err, broker.ErrClosed):
		s.peer.Out = s.peer.Out[:s.requestStart]
		return err
	default:
		s.dropLook() // the machine may have refused its next slice
		s.fail(err)
	}
	return nil
}

// fail replies with the error of the present command, in place of what that has replied.
func (s *session) fail(err error) {
	s.peer.Out = s.peer.Out[:s.commandStart]
	s.error(worded(err))
}

// runCommand runs the present command. It is a function of its own because Atomic takes it, unless
// the command is local. A reply that is too large becomes an error.
func (s *session) runCommand() error {
	s.forItself = false
	if s.cmd.prepare != nil && !s.inExec && !s.parked.again {
		if _, more := s.cmd.prepare(s.tx, s.args); more {
			return errUnfinished
		}
	}
	err := s.call()
	if s.overLimit {
		s.overLimit = false
		err = fmt.Errorf("%w: the limit is %d bytes", broker.ErrReplyTooLarge, maxLiteral)
	}
	if err == broker.ErrSweeping && !s.inExec {
		err = errUnfinished
	}
	switch {
	case !s.look.under:
	case err == errUnfinished:
		s.keep()
	case err != nil:
		s.dropLook()
	default:
		s.endLook()
	}
	return err
}

// call calls the handler of the present command, and returns the failure that it panics with. It is
// a function of its own because recover needs one to return from.
func (s *session) call() (err error) {
	defer func() {
		switch e := recover().(type) {
		case nil:
		case failure:
			err = e
		default:
			panic(e)
		}
	}()
	return s.cmd.run(s, s.tx, s.args)
}

// maxLiteral bounds the literal bytes of the reply to a request, or to a transaction.
const maxLiteral = broker.MaxAtomicReply

// doubled is the size from which Out doubles in a transaction, whose reply is one: append adds a
// quarter, and copies each byte of a long reply five times.
const doubled = 1 << 20

// fits says whether the reply to the present request may have n literal bytes more. Once it may
// not, the rest of the present command's reply is dropped.
func (s *session) fits(n int) bool {
	out := s.peer.Out
	s.overLimit = s.overLimit || len(out)-s.requestStart+s.look.size+n > maxLiteral
	const head = 32 // and more than the head and the end of a bulk
	if s.inExec && len(out) >= doubled && len(out)+n+head > cap(out) && !s.overLimit {
		s.peer.Out = slices.Grow(out, max(n+head, min(len(out), maxLiteral-len(out))))
	}
	return !s.overLimit
}

// parked is the request that waits.
type parked struct {
	request []byte // its bytes
	command *command
	until   int64  // when BLOCK of a take ends, on the steady clock; 0: never
	one     bool   // when its time is over it answers null, not the null array
	held    int    // bytes that are told to Peer.Hold
	again   bool   // it is made again
	queue   []byte // by what happened to this one
	stays   bool   // it has parked again
}

// park makes the present request wait. Inside a transaction (inExec) a command does not call it.
func (s *session) park(tx *broker.Tx, p broker.Parking) error {
	if s.parked.again {
		s.parked.stays = true
		return tx.Park(s.consumer, p)
	}
	if err := tx.Park(s.consumer, p); err != nil {
		return err
	}
	s.parked.request = append(s.parked.request[:0], s.request...)
	s.parked.command, s.parked.held = s.cmd, heldSize(s.args)
	s.peer.Hold(s.parked.held)
	return nil
}

// from returns the queues from which a request that may wait takes now: all that it names, or when
// it is made again the one that got a packet. Redis, too, serves the name that was first to get
// one.
func (p *parked) from(names [][]byte) [][]byte {
	if p.again {
		return [][]byte{p.queue}
	}
	return names
}

// Again implements netproto.Waiter.
func (s *session) Again(tx *broker.Tx, queue []byte) {
	if s.leaving { // it takes nothing more, and the next in line is asked
		return
	}
	s.requestStart, s.steps = len(s.peer.Out), maxSteps
	s.parked.queue, s.parked.stays = queue, false
	switch {
	case queue != nil || s.verdict != nil:
		p := wire.Parser{Most: s.protocol.config.MaxPayload}
		args, _, _ := p.Next(s.parked.request, s.protocol.againArgs[:0]) // it was read before
		s.parked.again = true
		if refusal := s.refusal(s.parked.command, args); refusal != "" { // the users were changed
			s.error(refusal)
		} else {
			_ = s.carryOut(tx, s.parked.command, args) // ErrClosed, which the next request gets, too
		}
		s.protocol.againArgs, s.parked.again = reusable(args), false
	case s.parked.one:
		s.null()
	default:
		s.nullArray()
	}
	if s.noReply {
		s.peer.Out = s.peer.Out[:s.requestStart]
	}
	if !s.parked.stays {
		s.unpark()
	}
}

// unpark gives back what the request that waited has kept.
func (s *session) unpark() {
	const keep = 1 << 10
	s.peer.Hold(-s.parked.held)
	s.parked = parked{request: s.parked.request[:0]}
	if cap(s.parked.request) > keep {
		s.parked.request = nil
	}
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
	if s.protocol.long.session == s {
		s.protocol.long = longRequest{}
	}
	s.endSlices()
	if s.cancelLogin != nil {
		s.cancelLogin()
		s.cancelLogin = nil
	}
	tx.Unpark(s.consumer) // so that it takes nothing more
	s.unpark()
	s.clear(tx)
	delete(s.protocol.sessions, s.id)
}

// clear drops a transaction, watched names and subscriptions.
func (s *session) clear(tx *broker.Tx) {
	s.discard(tx)
	s.unsubscribeAll(tx)
	s.dropLook()
}
