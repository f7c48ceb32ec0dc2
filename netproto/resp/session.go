package resp

import (
	"errors"
	"io"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto"
)

// session turns the requests of one connection into broker calls and their replies.
type session struct {
	protocol *Protocol
	peer     *netproto.Peer
	consumer *broker.Consumer
	id       int64

	parser  parser
	out     []byte // literal replies that were not handed over yet
	mark    int    // where in out the reply to the present request begins
	resp3   bool
	quiet   bool // the present request gets no reply
	inExec  bool // the present request is one of a transaction
	serving bool // Serve runs
	leaving bool // the connection ends after what was replied
	// unsettled: a reply of this run of Serve may show what is not on disk.
	unsettled bool

	waiter broker.Waiter // of the request that waits

	// The present request. It is here so that Atomic takes fn, which is bound once: a closure would
	// allocate.
	cmd  *command
	tx   *broker.Tx
	args [][]byte
	fn   func() error
}

const (
	// maxServe is how many bytes of requests are carried out before others may take the broker's lock.
	maxServe = 16 << 10
	// maxReplies is how many bytes of replies end a run early: some are far longer than their request.
	maxReplies = 64 << 10
	// keepReplies is the largest buffer for replies that a connection keeps.
	keepReplies = 16 << 10
)

// Serve implements netproto.Session. What it replies leaves in as few pieces as possible.
func (s *session) Serve(tx *broker.Tx, buf []byte) (n int, stop netproto.Stop, err error) {
	if s.consumer.Waiting() {
		return 0, netproto.Blocked, nil
	}
	s.protocol.sessions[s.id] = s
	s.serving, s.unsettled = true, false
	n, stop, err = s.serve(tx, buf)
	s.serving = false
	s.flush(tx)
	return n, stop, err
}

func (s *session) serve(tx *broker.Tx, buf []byte) (n int, stop netproto.Stop, err error) {
	for n < len(buf) {
		if n >= maxServe || len(s.out) >= maxReplies || n > 0 && s.peer.Full() {
			return n, netproto.More, nil
		}
		args, size, err := s.parser.next(buf[n:], s.protocol.args[:0])
		if err != nil {
			s.error("ERR " + err.Error())
			return n, netproto.Incomplete, err
		}
		if size == 0 {
			return n, netproto.Incomplete, nil
		}
		if len(args) > 0 {
			err = s.request(tx, args)
			s.protocol.keepArgs(args)
		}
		if errors.Is(err, broker.ErrNoRoom) {
			s.parser.again()
			return n, netproto.NoRoom, nil
		}
		n += size
		s.parser.done()
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

// request carries out one request. An error ends the connection, but for ErrNoRoom: then nothing
// was done.
func (s *session) request(tx *broker.Tx, args [][]byte) error {
	s.mark = len(s.out)
	if isHTTP(args[0]) {
		return errHTTP
	}
	c := s.protocol.lookup(args[0])
	if text := s.refusal(c, args); text != "" {
		s.error(text)
		return nil
	}
	return s.carryOut(tx, c, args)
}

// refusal says why a request is not carried out, "" if it is.
func (s *session) refusal(c *command, args [][]byte) string {
	switch {
	case c == nil:
		return unknownCommand(args)
	case !c.accepts(len(args)):
		return wrongArity(c.name)
	}
	return ""
}

// carryOut runs a command, alone.
func (s *session) carryOut(tx *broker.Tx, c *command, args [][]byte) error {
	s.cmd, s.tx, s.args = c, tx, args
	var err error
	if c.flags&flagLocal != 0 {
		err = c.run(s, tx, args)
	} else {
		err = tx.Atomic(c.roomFor(s, tx, args), s.fn)
	}
	s.cmd, s.tx, s.args = nil, nil, nil
	switch {
	case err == nil:
	case errors.Is(err, broker.ErrNoRoom), errors.Is(err, broker.ErrClosed):
		s.out = s.out[:s.mark]
		return err
	default:
		s.out = s.out[:s.mark]
		s.error(words(err))
	}
	if c.flags&(flagLocal|flagShows) == 0 {
		s.shows(tx, 0)
	}
	return nil
}

// runCommand runs the present command inside Atomic.
func (s *session) runCommand() error { return s.cmd.run(s, s.tx, s.args) }

// shows notes that the reply depends on what a batch brought, or on everything until now if that is
// 0. A command with flagShows calls it, in place of the session.
func (s *session) shows(tx *broker.Tx, batch uint64) {
	if !s.unsettled && !tx.Settled(batch) {
		s.unsettled = true
	}
}

// to hands the literal replies over and returns the consumer, so that a reply of packets may
// follow.
func (s *session) to(tx *broker.Tx) *broker.Consumer {
	if s.quiet {
		s.out = s.out[:s.mark]
	}
	if len(s.out) > 0 {
		tx.Reply(s.consumer, s.out)
		s.out, s.mark = s.out[:0], 0
	}
	return s.consumer
}

// flush ends a run of Serve: what it replied and has not handed over leaves at once, if no earlier
// reply is queued and all that it shows is on disk.
func (s *session) flush(tx *broker.Tx) {
	if len(s.out) > 0 && !s.unsettled && s.consumer.Idle() {
		s.peer.Send(s.out)
	} else if len(s.out) > 0 {
		tx.Reply(s.consumer, s.out)
	}
	if s.out = s.out[:0]; cap(s.out) > keepReplies {
		s.out = nil
	}
}

// wait makes the present request wait, until a packet comes to one of the queues or until a moment
// in Unix milliseconds, 0 for ever. The waiter replies as a command does; room is what its Ready
// brings besides the best packet of the queue. Inside a transaction (inExec) a command does not
// wait.
func (s *session) wait(tx *broker.Tx, w broker.Waiter, queues [][]byte, room broker.Room, until int64) error {
	if err := tx.Wait(s.consumer, s, queues, room, until); err != nil {
		return err
	}
	s.waiter = w
	return nil
}

// Ready implements broker.Waiter: it hands over what the request's own waiter replies.
func (s *session) Ready(tx *broker.Tx, queue []byte) {
	s.mark = len(s.out)
	s.endWait().Ready(tx, queue)
	s.to(tx)
}

// Expired implements broker.Waiter.
func (s *session) Expired(tx *broker.Tx) {
	s.mark = len(s.out)
	s.endWait().Expired(tx)
	s.to(tx)
}

func (s *session) endWait() broker.Waiter {
	w := s.waiter
	s.waiter = nil
	return w
}
