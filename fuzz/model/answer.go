package model

func qack(s *Server, c call) any {
	if no := s.takes(); no != nil {
		return no
	}
	n := int64(0)
	for at := 2; at+1 < len(c.words); at += 2 {
		p := s.claim(c.name, c.words[at], c.words[at+1])
		if p == nil {
			continue
		}
		n++
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
	if n == 0 && (len(c.words) == 4 || !s.exists(c.name)) {
		return Err("STALE")
	}
	s.changes++
	return n
}

func qnack(s *Server, c call) any {
	if no := s.takes(); no != nil {
		return no
	}
	c.parse(4, "DEAD", "UNCOUNTED")
	p := s.claim(c.name, c.words[2], c.words[3])
	if p == nil {
		return Err("STALE")
	}
	s.changes++
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
	case c.has("DEAD"), !c.has("UNCOUNTED") && s.tooOften(p):
		s.die(p, reason)
		return "dead"
	default:
		if c.has("UNCOUNTED") {
			p.attempts--
		}
		until := max(c.number("AT", 0), s.now+c.number("DELAY", 0))
		if !c.has("AT") && !c.has("DELAY") {
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
	s.changes++
	p.until, p.leaseEnd = s.now+lease, s.steady+lease
	return p.until
}

func qcancel(s *Server, c call) any {
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
			if !p.cancelled {
				p.cancelled, p.until = true, p.leaseEnd-s.steady+s.now
			}
		default:
			all = append(all, "gone")
			s.count(c.name, cancelled)
			s.remove(p)
		}
		s.changes++
	}
	return all
}

func qdel(s *Server, c call) any {
	if no := s.takes(); no != nil {
		return no
	}
	n := int64(0)
	for _, id := range c.words[2:] {
		if p := s.find(c.name, id); p != nil {
			s.remove(p)
			s.changes++
			n++
		}
	}
	return n
}
