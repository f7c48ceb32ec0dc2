package model

import (
	"slices"
	"strings"
)

// numbers refuses what should be ids or tokens and is not.
func numbers(words []string) {
	for _, word := range words {
		number(word)
	}
}

func qack(s *Server, c call) any {
	receipts := c.words[2:]
	if at := slices.Index(receipts, "COST"); at >= 0 {
		c.parse(2 + at)
		receipts = receipts[:at]
	}
	numbers(receipts)
	if len(receipts)%2 > 0 || len(receipts) == 0 {
		return Err("ERR")
	}
	if no := s.takes(); no != nil {
		return no
	}
	var claims []*packet
	for at := 0; at < len(receipts); at += 2 {
		if p := s.claim(c.name, receipts[at], receipts[at+1]); p != nil {
			claims = append(claims, p)
		}
	}
	if no := s.cost(claims, c.number("COST", 1), false); no != nil {
		return no
	}
	n := int64(0)
	for at := 0; at < len(receipts); at += 2 {
		p := s.claim(c.name, receipts[at], receipts[at+1])
		if p == nil {
			continue
		}
		n++
		s.cost([]*packet{p}, c.number("COST", 1), true)
		switch retain := s.settings(c.name).retain; {
		case p.cancelled:
			s.count(c.name, cancelled)
			s.remove(p)
			continue
		case retain > 0:
			p.state, p.expiry, p.until, p.token = done, s.now+retain, 0, 0
		default:
			s.remove(p)
		}
		s.count(c.name, acked)
	}
	if n == 0 && (len(receipts) == 2 || !s.exists(c.name)) {
		return Err("STALE")
	}
	s.touch(c.name)
	return n
}

func qnack(s *Server, c call) any {
	numbers(c.words[2:4])
	if no := s.takes(); no != nil {
		return no
	}
	p := s.claim(c.name, c.words[2], c.words[3])
	if p == nil {
		return Err("STALE")
	}
	cost, hold := c.number("COST", 1), c.number("HOLD", 0)
	if no := s.cost([]*packet{p}, cost, false); no != nil {
		return no
	}
	if hold > 0 {
		s.rest(p, hold) // which needs no room
	}
	s.cost([]*packet{p}, cost, true)
	s.touch(c.name)
	if p.cancelled {
		s.count(c.name, cancelled)
		s.remove(p)
		return "cancelled"
	}
	s.count(c.name, nacked)
	switch reason := c.options["REASON"]; {
	case p.expiry != 0 && p.expiry <= s.now:
		s.count(c.name, expired)
		s.remove(p)
		return "expired"
	case c.has("DEAD"), !c.has("UNCOUNTED") && hold == 0 && s.tooOften(p):
		s.die(p, reason)
		return "dead"
	default:
		if c.has("UNCOUNTED") || hold > 0 {
			p.attempts--
		}
		until := max(c.number("AT", 0), s.now+c.number("DELAY", 0))
		if !c.has("AT") && !c.has("DELAY") && hold == 0 {
			until = s.now + s.backoff(p)
		}
		if until <= s.now {
			until = 0
		}
		p.back(until, reason)
		return p.state.String()
	}
}

// backoff is how long a packet waits that was returned without a word of that. A tenth more or less
// is drawn: there is a rule only where that is nothing.
func (s *Server) backoff(p *packet) int64 {
	q := s.settings(p.queue)
	wait := q.backoffMin
	for range p.attempts - 1 {
		wait = min(2*wait, q.backoffMax)
	}
	if wait = min(wait, q.backoffMax); wait >= 10 {
		panic("no rule for a backoff that is drawn")
	}
	return wait
}

// Backs says that a return without a moment has a rule.
func (s *Server) Backs(queue string) bool { return s.settings(queue).backoffMax < 10 }

func qextend(s *Server, c call) any {
	numbers(c.words[2:])
	if no := s.takes(); no != nil {
		return no
	}
	p, lease := s.claim(c.name, c.words[2], c.words[3]), number(c.words[4])
	switch {
	case p == nil:
		return Err("STALE")
	case p.cancelled:
		return Err("CANCELLED")
	}
	s.changes++ // which those who watch the queue are not told
	p.until, p.leaseEnd = s.now+lease, s.steady+lease
	return p.until
}

func qprogress(s *Server, c call) any {
	numbers(c.words[2:5])
	within(number(c.words[4]), 0, 100)
	within(int64(len(strings.Join(c.words[5:], ""))), 0, 4096)
	if no := s.takes(); no != nil {
		return no
	}
	p := s.claim(c.name, c.words[2], c.words[3])
	if p == nil {
		return Err("STALE")
	}
	s.changes++
	p.progress, p.progressText = number(c.words[4])+1, strings.Join(c.words[5:], " ")
	return "OK"
}

func qcancel(s *Server, c call) any {
	numbers(c.words[2:])
	if no := s.takes(); no != nil {
		return no
	}
	all := []any{}
	for _, id := range c.words[2:] {
		p := s.find(c.name, id)
		switch {
		case p == nil || p.state > claimed:
			all = append(all, nil)
			continue
		case p.state == claimed:
			all = append(all, "told")
			s.changes++
			if !p.cancelled {
				p.cancelled, p.until = true, p.leaseEnd-s.steady+s.now
			}
		default:
			all = append(all, "gone")
			s.count(c.name, cancelled)
			s.touch(c.name)
			s.remove(p)
		}
	}
	return all
}

func qdel(s *Server, c call) any {
	numbers(c.words[2:])
	if no := s.takes(); no != nil {
		return no
	}
	n := int64(0)
	for _, id := range c.words[2:] {
		if p := s.find(c.name, id); p != nil {
			s.remove(p)
			s.touch(c.name)
			n++
		}
	}
	return n
}
