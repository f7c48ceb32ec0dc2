package barbershop

import (
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto"
	"github.com/holdfast-queue/holdfast/netproto/access"
)

// Name is the protocol's name in logs.
const Name = "barbershop"

// Protocol serves one queue as a board.
type Protocol struct {
	Queue   string           // the queue that is the board, any name; see DefaultQueue
	Version string           // of the server, one word
	Users   access.Plain     // who may do what
	Since   time.Time        // when the server started, for its uptime
	Now     func() time.Time // time.Now if nil

	updates atomic.Uint64 // accepted since the start
}

// Name implements netproto.Protocol.
func (p *Protocol) Name() string { return Name }

// Delivery implements netproto.Protocol. No command of this protocol subscribes.
func (p *Protocol) Delivery() broker.Selection { return broker.Selection{} }

// Open implements netproto.Protocol.
func (p *Protocol) Open(peer *netproto.Peer) netproto.Session {
	s := &session{protocol: p, peer: peer, consumer: peer.Consumer(), queue: []byte(p.Queue)}
	s.run, s.to, s.accept = s.command, s.raise, s.acceptItem
	s.pass = p.Users.Pass(peer.Certificate())
	return s
}

// Refused implements netproto.Guarded.
func (s *session) Refused(*broker.Tx) error {
	err := s.pass.Refuses(access.None, nil)
	if err != nil {
		s.clientError("%v", err)
	}
	return err
}

func (p *Protocol) now() time.Time {
	if p.Now == nil {
		return time.Now()
	}
	return p.Now()
}

// session turns the lines of one connection into broker calls and their replies.
type session struct {
	protocol *Protocol
	peer     *netproto.Peer
	consumer *broker.Conn
	queue    []byte
	pass     access.Pass

	lines lines
	words words
	v2    bool   // the latest line with a word was of the second dialect
	delta uint32 // what the present update adds
	key   []byte // of the present item
	tx    *broker.Tx
	// Methods that are bound once: binding allocates.
	run    func() error
	to     func(old uint32, known bool) uint32
	accept func(key []byte) error
}

// Serve implements netproto.Session.
func (s *session) Serve(tx *broker.Tx, buf []byte) (n int, stop netproto.Stop, err error) {
	s.tx = tx
	for replied := len(s.peer.Out); n < len(buf); {
		if n >= netproto.MaxServe || len(s.peer.Out)-replied >= netproto.MaxReplies || n > 0 && (tx.Full() || s.peer.Late(true)) {
			return n, netproto.More, nil
		}
		text, size, kind := s.lines.next(buf[n:])
		if kind == lineShort {
			return n, netproto.Incomplete, nil
		}
		n += size
		if kind == lineDropped {
			continue
		}
		if s.words.split(text); s.words.n > 0 {
			s.v2 = isV2(s.words.at[0])
		}
		if s.words.n > 0 && netproto.BeginsLikeHTTP(s.words.at[0]) || kind == lineWhole && netproto.EndsLikeHTTP(text) {
			s.clientError("HTTP is not spoken here: the connection is closed")
			return n, netproto.Incomplete, netproto.ErrHTTP
		}
		if kind == lineTooLong {
			s.clientError("line too long: expected at most %d bytes", MaxLine)
			continue
		}
		if s.words.n > 0 && strings.EqualFold(string(s.words.at[0]), "update") && tx.Space().Wait > 0 {
			return n - size, netproto.Later, nil
		}
		if err = tx.Atomic(s.run); err == broker.ErrStopped {
			err = s.run() // each call is refused, and a line that makes none has its reply
		}
		if err == broker.ErrSweeping {
			return n - size, netproto.More, nil
		}
		if err != nil {
			err = s.refuse(err)
		}
		if err != nil {
			return n, netproto.Incomplete, err
		}
	}
	return n, netproto.Incomplete, nil
}
