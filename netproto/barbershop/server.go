package barbershop

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto"
)

// Protocol serves one queue as a board; it is what netproto.Listen takes.
type Protocol struct {
	Broker  *broker.Broker   // set before the server serves
	Queue   string           // the queue that is the board, any name; see DefaultQueue
	Version string           // of the server, one word
	Since   time.Time        // when the server started, for its uptime; the time of the first connection if zero
	Now     func() time.Time // time.Now if nil

	first   sync.Once     // sets Since if it was not
	updates atomic.Uint64 // accepted since the start
}

// Name implements netproto.Protocol.
func (p *Protocol) Name() string { return "barbershop" }

// Open implements netproto.Protocol.
func (p *Protocol) Open(out *netproto.Output) netproto.Session {
	p.first.Do(func() {
		if p.Since.IsZero() {
			p.Since = p.now()
		}
	})
	s := &session{protocol: p, out: out, queue: []byte(p.Queue), consumer: p.Broker.Attach(&receiver{out: out})}
	s.run, s.to, s.accept = s.serve, s.raise, s.acceptItem
	return s
}

func (p *Protocol) now() time.Time {
	if p.Now == nil {
		return time.Now()
	}
	return p.Now()
}

// session turns the lines of one connection into broker calls and their replies. It belongs to the
// connection's reader.
type session struct {
	protocol *Protocol
	out      *netproto.Output
	consumer *broker.Consumer
	queue    []byte

	lines   lines
	words   words
	later   bool   // the dialect of the latest line with a word
	delta   uint32 // what the present update adds
	key     []byte // of the present item
	replies []byte // of the present run of lines
	// free: nothing in replies depends on the broker, and nothing before them is on its way, so they
	// may leave without waiting for the disk.
	free bool

	buf   []byte // what serve works on
	taken int

	// Methods, bound once.
	run    func(tx *broker.Tx) error
	to     func(old uint32, known bool) uint32
	accept func(key []byte) error
}

const (
	// maxServe is how many bytes of lines are carried out before the broker's lock is given up and
	// the connection's unsent replies are looked at.
	maxServe = 16 << 10
	// maxReplies is how many bytes of replies end a run of lines early: a line of statistics is far
	// longer than the line that asks for it.
	maxReplies = 64 << 10
	// keepReplies is the most buffer for replies that a connection holds on to.
	keepReplies = 16 << 10
)

// Serve implements netproto.Session: one broker transaction and one reply for all complete lines
// of buf, up to a bound.
func (s *session) Serve(buf []byte) (n int, err error) {
	before := s.lines
	_, _, kind := s.lines.next(buf)
	s.lines = before
	if kind == lineShort {
		return 0, nil
	}
	s.buf, s.taken, s.replies = buf, 0, s.replies[:0]
	err = s.protocol.Broker.Do(s.run)
	n, s.buf = s.taken, nil
	if s.free && len(s.replies) > 0 {
		s.out.Append(func(dst []byte) []byte { return append(dst, s.replies...) })
		s.out.Flush()
	}
	if cap(s.replies) > keepReplies {
		s.replies = nil
	}
	return n, err
}

// serve carries out lines until one is incomplete or a bound is reached, and replies to them at once.
func (s *session) serve(tx *broker.Tx) error {
	s.free = s.consumer.Idle()
	if !s.free {
		if err := tx.Begin(); err != nil {
			return s.end(tx, err)
		}
	}
	err := s.serveLines(tx)
	if !s.free && len(s.replies) > 0 {
		tx.Reply(s.consumer, s.replies)
	}
	return err
}

// errHTTP is why nothing more of a connection is carried out.
var errHTTP = errors.New("a line is of HTTP: perhaps a page in a browser on this machine tries to use the board")

func (s *session) serveLines(tx *broker.Tx) error {
	for s.taken < len(s.buf) && s.taken < maxServe && len(s.replies) < maxReplies {
		text, n, kind := s.lines.next(s.buf[s.taken:])
		if kind == lineShort {
			return nil
		}
		s.taken += n
		if kind == lineDropped {
			continue
		}
		if s.words.split(text); s.words.n > 0 {
			s.later = isLater(s.words.at[0])
		}
		if s.words.isHTTP() || kind == lineWhole && endsLikeHTTP(text) {
			s.clientError("HTTP is not spoken here: the connection is closed")
			return errHTTP
		}
		if kind == lineTooLong {
			s.clientError("line too long: expected at most %d bytes", MaxLine)
			continue
		}
		if err := s.command(tx); err != nil {
			return err
		}
	}
	return nil
}

// end is what becomes of a connection that the broker has no room to answer any more: the error is
// the last line, and the connection closes (barbershop document, section error responses).
func (s *session) end(tx *broker.Tx, err error) error {
	if errors.Is(err, broker.ErrClosed) {
		return err
	}
	s.serverError(err)
	tx.Reply(s.consumer, s.replies)
	return err
}

// Unsent implements netproto.Session.
func (s *session) Unsent() int64 { return s.consumer.QueuedBytes() }

// Close implements netproto.Session.
func (s *session) Close(stop bool) {
	owed := false
	_ = s.protocol.Broker.Do(func(tx *broker.Tx) error {
		owed = tx.Detach(s.consumer)
		return nil
	})
	switch {
	case stop:
		s.out.Close()
	case !owed:
		s.out.Finish()
		s.out.Flush()
	}
}

// receiver passes on the replies that the session has put together.
type receiver struct {
	out *netproto.Output
}

// Packets implements broker.Receiver. No command of this protocol asks for packets.
func (r *receiver) Packets([]broker.Packet) {}

// Reply implements broker.Receiver.
func (r *receiver) Reply(data []byte) {
	r.out.Append(func(dst []byte) []byte { return append(dst, data...) })
}

// Finish implements broker.Receiver.
func (r *receiver) Finish() { r.out.Finish() }

// Flush implements broker.Receiver.
func (r *receiver) Flush() { r.out.Flush() }

// UnwrittenBytes implements broker.Receiver.
func (r *receiver) UnwrittenBytes() int64 { return r.out.Backlog() }
