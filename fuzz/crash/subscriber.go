package crash

import (
	"errors"
	"io"
	"math/rand/v2"

	"github.com/holdfast-queue/holdfast/netproto/pinpriq"
)

// subscriber is a client that takes deliveries. It always asks for some more than it has got.
type subscriber struct {
	r     *run
	rng   *rand.Rand
	link  *link
	ready int // deliveries that it has asked for and not got
	group []packet
}

const (
	readyHigh = 32
	readyLow  = 20
)

func (s *subscriber) connect() (err error) {
	s.link, err = s.r.server.dial(pinpriqListener)
	return err
}

func (s *subscriber) work() {
	s.ready = 0
	for _, q := range s.r.queues.byKind[subscribed] {
		s.link.add(pinpriq.OpSubscribe, s.r.queues.all[q].name)
	}
	for {
		if s.ready < readyLow && s.r.gate.enter() {
			err := s.ask()
			s.r.gate.leave()
			if err != nil {
				s.r.broken("a subscriber", err)
				return
			}
		}
		queue := -1 // a delivery does not name it; its first packet tells
		s.group = s.group[:0]
		err := s.link.receive(func(key, payload []byte) {
			if queue < 0 {
				queue = s.r.queueOf(payload)
			}
			if t, ok := s.r.take(queue, key, payload, 0); ok {
				s.group = append(s.group, t)
			}
		})
		if err != nil {
			if endKind(s.r.end.Load()) != stop || !errors.Is(err, io.EOF) { // a clean stop ends between deliveries
				s.r.broken("a subscriber", err)
			}
			return
		}
		s.ready--
		s.r.ops[ofPinpriq].Add(1)
		s.r.checkGroup(queue, s.group)
	}
}

// ask asks for more deliveries, at times with subscriptions that change nothing in the end.
func (s *subscriber) ask() error {
	q := s.r.queues.all[pick(s.rng, s.r.queues.byKind[subscribed])].name
	switch s.rng.IntN(10) {
	case 0:
		s.link.add(pinpriq.OpSubscribe, q)
	case 1:
		s.link.add(pinpriq.OpUnsubscribe, q)
		defer func() {
			s.link.add(pinpriq.OpSubscribe, q)
			_ = s.link.send() // an error also shows at the next receive
		}()
	}
	for ; s.ready < readyHigh; s.ready++ {
		s.link.add(pinpriq.OpReady, "")
	}
	return s.link.send()
}

// hangUp counts the deliveries that may be lost on their way. A clean stop loses none.
func (s *subscriber) hangUp(end endKind) int {
	s.link.conn.Close()
	if end != stop {
		s.r.slack[s.r.queues.slackClass(s.r.queues.byKind[subscribed][0])] += s.ready
	}
	return 0
}
