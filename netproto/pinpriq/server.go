package pinpriq

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto"
)

// Name is the protocol's name in logs.
const Name = "pinpriq"

// Protocol serves pinpriq.
type Protocol struct{}

// Name implements netproto.Protocol.
func (Protocol) Name() string { return Name }

// selection is what a pop and a delivery take (pinpriq document, section pop). The 16 bits of a
// length cannot say how long a wide packet is.
var selection = broker.Selection{End: broker.Newest, Group: true, Fits16: true}

// Delivery implements netproto.Protocol.
func (Protocol) Delivery() broker.Selection { return selection }

// Open implements netproto.Protocol.
func (Protocol) Open(p *netproto.Peer) netproto.Session {
	return &session{peer: p, consumer: p.Consumer()}
}

// session turns the requests of one connection into broker calls.
type session struct {
	peer     *netproto.Peer
	consumer *broker.Conn
	request  Request
	guard    httpGuard
}

// maxServe is how many bytes of requests are carried out before others may take the broker's lock.
const maxServe = 16 << 10

// Serve implements netproto.Session.
func (s *session) Serve(tx *broker.Tx, buf []byte) (n int, stop netproto.Stop, err error) {
	if err := s.guard.check(buf); err != nil {
		return 0, netproto.Incomplete, err
	}
	n, stop, err = s.serve(tx, buf)
	s.guard.served(n)
	return n, stop, err
}

func (s *session) serve(tx *broker.Tx, buf []byte) (n int, stop netproto.Stop, err error) {
	for n < len(buf) {
		if n >= maxServe || n > 0 && (s.peer.Full() || tx.Full()) {
			return n, netproto.More, nil
		}
		size, err := s.request.Parse(buf[n:])
		if errors.Is(err, ErrShort) {
			return n, netproto.Incomplete, nil
		}
		if err == nil {
			err = s.call(tx)
		}
		if err != nil {
			return n, netproto.Incomplete, err
		}
		n += size
	}
	return n, netproto.Incomplete, nil
}

// call carries out the parsed request.
func (s *session) call(tx *broker.Tx) error {
	r := &s.request
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
		return tx.Pop(s.consumer, r.Queue, selection, 0)
	case OpSubscribe:
		return tx.Subscribe(s.consumer, r.Queue)
	case OpUnsubscribe:
		return tx.Unsubscribe(s.consumer, r.Queue)
	default:
		return tx.Ready(s.consumer, 1)
	}
}

// AppendPackets implements netproto.Session. A packet that does not fit the frame cannot come, as
// the selection leaves it queued. If one came, it would be left out: the stream stays in step.
func (s *session) AppendPackets(dst []byte, _ broker.Tag, packets []broker.Packet, _ []broker.Detail) []byte {
	head, count := len(dst), 0
	dst = AppendCount(dst, 0)
	for i := range packets {
		var err error
		if dst, err = AppendPacket(dst, packets[i].Key, packets[i].Payload); err == nil {
			count++
		}
	}
	binary.BigEndian.PutUint16(dst[head:], uint16(count))
	return dst
}
