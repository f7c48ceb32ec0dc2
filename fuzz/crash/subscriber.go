package crash

import (
	"errors"
	"io"
	"math/rand/v2"

	"github.com/holdfast-queue/holdfast/netproto/pinpriq"
)

// subscriber is one connection that takes deliveries and keeps some readiness ahead. It belongs to
// its goroutine while that runs, then to the harness; the goroutine ends with the connection.
type subscriber struct {
	r     *run
	rng   *rand.Rand
	link  *link
	ready int // deliveries that it has asked for and not got
	group []took
}

const (
	readyHigh = 32
	readyLow  = 20
)

// follow subscribes and takes deliveries until the server is gone.
func (s *subscriber) follow() {
	s.ready = 0
	for _, q := range s.r.queues.byKind[fed] {
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
		queue := -1
		s.group = s.group[:0]
		err := s.link.receive(func(key, payload []byte) {
			if queue < 0 { // a delivery does not say; its first packet does
				if queue = s.r.queueOf(payload); queue < 0 {
					queue = s.r.queues.byKind[fed][0]
				}
			}
			if t, ok := s.r.take(queue, key, payload, 0); ok {
				s.group = append(s.group, t)
			}
		})
		if err != nil {
			if !errors.Is(err, io.EOF) || !s.r.gate.shut() {
				s.r.broken("a subscriber", err)
			}
			return
		}
		s.ready--
		s.r.delivered.Add(1)
		s.r.checkGroup(queue, s.group)
	}
}

// ask renews the readiness, at times with subscriptions that change nothing in the end.
func (s *subscriber) ask() error {
	q := s.r.queues.all[pick(s.rng, s.r.queues.byKind[fed])].name
	switch s.rng.IntN(10) {
	case 0:
		s.link.add(pinpriq.OpSubscribe, q)
	case 1:
		s.link.add(pinpriq.OpUnsubscribe, q)
		defer func() {
			s.link.add(pinpriq.OpSubscribe, q)
			_ = s.link.send() // the next receive says what is wrong
		}()
	}
	for ; s.ready < readyHigh; s.ready++ {
		s.link.add(pinpriq.OpReady, "")
	}
	return s.link.send()
}

// unanswered counts the deliveries that may be lost on their way.
func (s *subscriber) unanswered() {
	class := s.r.queues.slackClass(s.r.queues.byKind[fed][0])
	s.r.slack[class] += s.ready
}
