package pinpriq

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto"
	"github.com/holdfast-queue/holdfast/netproto/access"
)

// Name is the protocol's name in logs.
const Name = "pinpriq"

// Protocol serves pinpriq.
type Protocol struct {
	Users access.Plain // who may do what
}

// needs is the right for its queue that a request needs; access.None for what is not named here.
var needs = [256]access.Right{
	OpPush:      access.Push,
	OpPop:       access.Take,
	OpSubscribe: access.Take,
}

// Name implements netproto.Protocol.
func (Protocol) Name() string { return Name }

// selection says what a pop and a delivery take (pinpriq document, section pop). The 16 bits of a
// length cannot say how long a wide packet is.
var selection = broker.Selection{End: broker.Newest, Group: true, Fits16: true}

// Delivery implements netproto.Protocol.
func (Protocol) Delivery() broker.Selection { return selection }

// Open implements netproto.Protocol.
func (p Protocol) Open(peer *netproto.Peer) netproto.Session {
	s := &session{peer: peer, consumer: peer.Consumer(), pass: p.Users.Pass(peer.Certificate())}
	s.run = s.call
	return s
}

// session turns the requests of one connection into broker calls.
type session struct {
	peer     *netproto.Peer
	consumer *broker.Conn
	pass     access.Pass
	request  Request
	guard    httpGuard

	tx  *broker.Tx
	run func() error // call, bound once: binding allocates
}

// Refused implements netproto.Guarded. A subscription goes on only as long as its user may take.
func (s *session) Refused(tx *broker.Tx) error {
	if err := s.pass.Refuses(access.None, nil); err != nil || s.pass.Open() {
		return err
	}
	for _, queue := range tx.Subscriptions(s.consumer) {
		if err := s.pass.Refuses(needs[OpSubscribe], queue); err != nil {
			return err
		}
	}
	return nil
}

// Serve implements netproto.Session.
func (s *session) Serve(tx *broker.Tx, buf []byte) (n int, stop netproto.Stop, err error) {
	if err := s.guard.check(buf); err != nil {
		return 0, netproto.Incomplete, err
	}
	n, stop, err = s.serve(tx, buf)
	s.guard.served(n)
	s.request = Request{} // else it keeps the buffer
	return n, stop, err
}

func (s *session) serve(tx *broker.Tx, buf []byte) (n int, stop netproto.Stop, err error) {
	s.tx = tx
	for n < len(buf) {
		if n >= netproto.MaxServe || n > 0 && (s.peer.Full() || tx.Full() || s.peer.Late(true)) {
			return n, netproto.More, nil
		}
		size, err := s.request.Parse(buf[n:])
		if errors.Is(err, ErrShort) {
			return n, netproto.Incomplete, nil
		}
		if err == nil {
			err = s.pass.Refuses(needs[s.request.Op], s.request.Queue)
		}
		if err == nil && s.request.Op == OpPush && tx.Space().Wait > 0 {
			return n, netproto.Later, nil
		}
		if err == nil {
			err = tx.Atomic(s.run)
		}
		if err == broker.ErrSweeping {
			return n, netproto.More, nil
		}
		if err != nil {
			return n, netproto.Incomplete, err
		}
		n += size
	}
	return n, netproto.Incomplete, nil
}

// call carries out the parsed request.
func (s *session) call() error {
	tx, r := s.tx, &s.request
	switch r.Op {
	case OpPush:
		_, err := tx.Push(broker.PushRequest{
			Queue:    r.Queue,
			Priority: uint32(r.Priority),
			TTL:      time.Duration(r.TTL) * time.Millisecond,
			Key:      r.Packet.Key,
			Payload:  r.Packet.Payload,
		})
		return err
	case OpPop:
		f, err := tx.Pop(r.Queue, selection)
		if err == nil {
			s.Deliver(f.Packets)
		}
		return err
	case OpSubscribe:
		return tx.Subscribe(s.consumer, r.Queue)
	case OpUnsubscribe:
		return tx.Unsubscribe(s.consumer, r.Queue)
	default:
		return tx.Ready(s.consumer, 1)
	}
}

// Deliver implements netproto.Subscriber; the reply to a pop has the same form. A packet that does
// not fit the frame cannot come, as the selection leaves it queued. If one came, it would be left
// out: the stream stays in step.
func (s *session) Deliver(packets []broker.Packet) {
	out := s.peer.Out
	head, count := len(out), 0
	out = AppendCount(out, 0)
	for i := range packets {
		var err error
		if out, err = AppendPacket(out, packets[i].Key, packets[i].Payload); err == nil {
			count++
		}
	}
	binary.BigEndian.PutUint16(out[head:], uint16(count))
	s.peer.Out = out
}
