package pinpriq

import (
	"errors"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto"
)

// Protocol serves pinpriq on a broker; it is what netproto.Listen takes.
type Protocol struct {
	Broker *broker.Broker // set before the server serves
}

// Name implements netproto.Protocol.
func (p *Protocol) Name() string { return "pinpriq" }

// Open implements netproto.Protocol.
func (p *Protocol) Open(out *netproto.Output) netproto.Session {
	r := &receiver{out: out}
	s := &session{broker: p.Broker, out: out, consumer: p.Broker.Attach(r)}
	r.broker, r.consumer = p.Broker, s.consumer
	out.OnDrain(r.resume)
	s.run = s.serve
	return s
}

// session turns the requests of one connection into broker calls. It belongs to the
// connection's reader.
type session struct {
	broker   *broker.Broker
	out      *netproto.Output
	consumer *broker.Consumer

	request Request
	guard   httpGuard
	buf     []byte // what serve works on
	taken   int
	run     func(tx *broker.Tx) error // serve, bound once
}

// maxServe is how many bytes of requests are carried out before the broker's lock is given up
// and the connection's unsent replies are looked at.
const maxServe = 16 << 10

// Serve implements netproto.Session: one broker transaction for all complete requests of buf, up
// to a bound, so that a pipeline of pushes takes the lock once.
func (s *session) Serve(buf []byte) (n int, err error) {
	if err := s.guard.check(buf); err != nil {
		return 0, err
	}
	if n, err := s.request.Parse(buf); errors.Is(err, ErrShort) {
		return 0, nil
	} else if err != nil {
		return n, err
	}
	s.buf, s.taken = buf, 0
	err = s.broker.Do(s.run)
	n, s.buf = s.taken, nil
	s.guard.served(n)
	return n, err
}

// serve carries out requests until one is incomplete or the bound is reached.
func (s *session) serve(tx *broker.Tx) error {
	for s.taken < len(s.buf) {
		if s.taken >= maxServe || s.taken > 0 && s.consumer.QueuedBytes() >= broker.MaxOutstandingBytes {
			return nil
		}
		n, err := s.request.Parse(s.buf[s.taken:])
		if errors.Is(err, ErrShort) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := s.call(tx); err != nil {
			return err
		}
		s.taken += n
	}
	return nil
}

// call carries out the parsed request.
func (s *session) call(tx *broker.Tx) error {
	r := &s.request
	switch r.Op {
	case OpPush:
		return tx.Push(broker.PushRequest{
			Queue:    r.Queue,
			Priority: uint32(r.Priority),
			TTL:      time.Duration(r.TTL) * time.Millisecond,
			Key:      r.Packet.Key,
			Payload:  r.Packet.Payload,
		})
	case OpPop:
		return tx.Pop(s.consumer, r.Queue, broker.Newest)
	case OpSubscribe:
		return tx.Subscribe(s.consumer, r.Queue)
	case OpUnsubscribe:
		return tx.Unsubscribe(s.consumer, r.Queue)
	default:
		return tx.Ready(s.consumer, 1)
	}
}

// Unsent implements netproto.Session.
func (s *session) Unsent() int64 { return s.consumer.QueuedBytes() }

// Close implements netproto.Session.
func (s *session) Close(stop bool) {
	owed := false
	_ = s.broker.Do(func(tx *broker.Tx) error {
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

// receiver encodes what the broker hands out: replies and deliveries look the same.
type receiver struct {
	out      *netproto.Output
	broker   *broker.Broker
	consumer *broker.Consumer
}

// Packets implements broker.Receiver.
func (r *receiver) Packets(packets []broker.Packet) {
	r.out.Append(func(dst []byte) []byte {
		dst = AppendCount(dst, len(packets))
		for i := range packets {
			dst = AppendPacket(dst, packets[i].Key, packets[i].Payload)
		}
		return dst
	})
}

// Reply implements broker.Receiver. No request of this protocol is answered with bytes of its own.
func (r *receiver) Reply(data []byte) {
	r.out.Append(func(dst []byte) []byte { return append(dst, data...) })
}

// Finish implements broker.Receiver.
func (r *receiver) Finish() { r.out.Finish() }

// Flush implements broker.Receiver.
func (r *receiver) Flush() {
	r.out.Flush()
	if r.consumer.CaughtUp() {
		go r.broker.Resume(r.consumer) // ends when the broker's lock was free once
	}
}

// UnwrittenBytes implements broker.Receiver.
func (r *receiver) UnwrittenBytes() int64 { return r.out.Backlog() }

// resume asks for deliveries again once a slow peer has caught up.
func (r *receiver) resume() {
	if r.consumer.CaughtUp() {
		r.broker.Resume(r.consumer)
	}
}
