package model

import (
	"cmp"
	"fmt"
	"slices"
)

// state is what a packet waits for.
type state int

// In the order in which QLIST shows them.
const (
	ready state = iota + 1
	delayed
	claimed
	dead
	done
	damaged // no rule has one so
)

func (s state) String() string {
	return [...]string{"", "ready", "delayed", "claimed", "dead", "done", "damaged"}[s]
}

// packet is a packet. All that is behind queue is on the disk, but for state, leaseEnd and over.
type packet struct {
	id             int64
	queue, payload string
	key            *string
	prio           int64
	lease          int64 // that it says; 0: none
	enqueued       int64
	tags           Map   // which nobody changes
	expiry         int64 // 0: never
	unique         string
	producer, meta string
	pos            int64 // by which it is newer than another one of its priority
	untilClaim     bool  // it has its unique id until it is claimed

	state        state
	until        int64 // of a delay, a lease as the disk has it, or since when it is dead
	leaseEnd     int64 // on the steady clock
	token        int64
	attempts     int64
	first, last  int64 // claims
	consumer     string
	cancelled    bool
	reason       string
	progress     int64 // in percent, and 1 more; 0: none was told
	progressText string
	origin       int64 // the number of the queue where it died; 0: it did not
	goes         int64 // when a dead one goes; 0: it stays
	over         bool  // its time was over at a start: nobody sees it, and it is to be swept
}

// back has a packet wait again, until a moment; 0 is now.
func (p *packet) back(until int64, reason string) {
	p.state, p.until, p.token, p.reason, p.progress = ready, until, 0, reason, 0
	if until > 0 {
		p.state = delayed
	}
}

func (s *Server) remove(p *packet) {
	s.packets = slices.DeleteFunc(s.packets, func(o *packet) bool { return o == p })
}

// in returns the packets of a queue that are in some states, in the order of QLIST.
func (s *Server) in(queue string, states ...state) (list []*packet) {
	for _, p := range s.packets {
		if p.queue == queue && !p.over && slices.Contains(states, p.state) {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, inOrder)
	return list
}

func inOrder(a, b *packet) int {
	if a.state == delayed && b.state == delayed {
		return cmp.Or(cmp.Compare(a.until, b.until), cmp.Compare(a.pos, b.pos))
	}
	return cmp.Or(cmp.Compare(a.state, b.state), cmp.Compare(a.prio, b.prio), cmp.Compare(a.pos, b.pos))
}

// all returns all packets of a queue.
func (s *Server) all(queue string) []*packet { return s.in(queue, ready, delayed, claimed, dead, done) }

// kept is until when a dead packet stays; 0: without end.
func (s *Server) kept(p *packet) int64 {
	if keep := s.settings(p.queue).retainDead; keep > 0 {
		return p.until + keep
	}
	return 0
}

// current makes what is due for a packet, and returns it, nil if it is gone. A claim alone lasts
// until the turn that ends it.
func (s *Server) current(p *packet) *packet {
	if p.state != claimed {
		s.advance(p)
	}
	if !slices.Contains(s.packets, p) {
		return nil
	}
	return p
}

// find returns the packet of a queue with an id, nil if there is none.
func (s *Server) find(queue, id string) *packet {
	at := slices.IndexFunc(s.all(queue), func(p *packet) bool { return text(p.id) == id })
	if at < 0 {
		return nil
	}
	return s.current(s.all(queue)[at])
}

// claim returns the packet that a claim is of, nil if that has ended.
func (s *Server) claim(queue, id, token string) *packet {
	if p := s.find(queue, id); p != nil && p.state == claimed && fmt.Sprint(p.token) == token {
		return p
	}
	return nil
}

func (s *Server) tooOften(p *packet) bool {
	most := s.settings(p.queue).maxAttempts
	return most != 0 && p.attempts >= most
}

// die ends the attempts for a packet: it stays as dead, or moves to the dead-letter queue.
func (s *Server) die(p *packet, reason string) {
	s.count(p.queue, died)
	to := s.settings(p.queue).deadLetter
	if to = p.queue[:1] + to; len(to) == 1 || s.kind(to) != isNone && s.kind(to) != isList || s.admits(to, p) != nil {
		p.back(s.now, reason)
		p.state, p.goes = dead, s.kept(p)
		return
	}
	text := fmt.Sprintf("dead at attempt %d", p.attempts)
	if reason != "" {
		text += ": " + reason
	}
	p.attempts, p.origin, p.queue = 0, s.make(p.queue).number, to
	s.define(to)
	s.stir(to)
	p.back(0, text)
}

// number gives the next number.
func (s *Server) number() int64 {
	s.next++
	return s.next - 1
}

func text(n int64) string { return fmt.Sprint(n) }
