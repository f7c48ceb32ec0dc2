package model

import "slices"

// bulk is a command for many packets that goes on in slices: of a state each, and of 500 packets.
type bulk struct {
	states []state
	last   *packet // that was looked at in the first of these; nil: none
	done   int64
}

func qredrive(s *Server, c call) any {
	if no := s.takes(); no != nil {
		s.conns[c.conn].bulk = nil
		return no
	}
	if len(c.words) == 3 {
		p := s.find(c.name, c.words[2])
		if p == nil || !redrivable(p) || p.state == claimed || p.state == done {
			return int64(0)
		}
		if no := s.redrive(p, p.origin); no != nil {
			return no
		}
		return int64(1)
	}
	c.parse(2)
	b := s.conns[c.conn].bulk
	if b == nil {
		b = &bulk{states: []state{dead, delayed, ready}}
	}
	b = new(*b)
	most := c.number("COUNT", 0)
	list := s.in(c.name, b.states[0])
	if b.last != nil {
		list = slices.DeleteFunc(list, func(p *packet) bool { return inOrder(p, b.last) <= 0 })
	}
	if b.last, b.states = nil, b.states[1:]; len(list) > 500 {
		list = list[:500]
		b.last, b.states = new(*list[499]), append([]state{list[0].state}, b.states...)
	}
	var picked []*packet // no more than COUNT asks for, though some may be gone then
	for i, p := range list {
		if !redrivable(p) {
			continue
		}
		if most > 0 && b.done+int64(len(picked)) == most {
			b.last, b.states = new(*list[i-1]), append([]state{p.state}, b.states...)
			break
		}
		picked = append(picked, p)
	}
	for _, p := range picked {
		if was := p.state; s.current(p) == nil || p.state != was {
			continue
		}
		to := p.origin
		if c.has("TO") {
			to = c.options["TO"]
		}
		if no := s.redrive(p, to); no != nil {
			s.conns[c.conn].bulk = nil
			return no
		}
		b.done++
	}
	if len(b.states) > 0 && (most == 0 || b.done < most) {
		s.conns[c.conn].bulk = b
		return More{}
	}
	s.conns[c.conn].bulk = nil
	return b.done
}

// redrivable says that a packet has died: here, or elsewhere.
func redrivable(p *packet) bool { return p.state == dead || p.origin != "" }

// redrive makes a packet that died ready again in a queue, "" in its own; or says what refuses it.
func (s *Server) redrive(p *packet, to string) (no any) {
	if to == "" {
		to = p.queue
	}
	if to != p.queue && s.room >= NoPush {
		return Err("OOM")
	}
	if to != p.queue || p.state == dead {
		if no := s.admits(to, p); no != nil {
			return no
		}
	}
	s.changes++
	reason := p.reason
	p.attempts, p.origin, p.queue = 0, "", to
	p.back(0, reason)
	s.make(to)
	return nil
}

func qset(s *Server, c call) any {
	if no := s.stores(); no != nil {
		return no
	}
	q := s.settings(c.name)
	for at := 2; at+1 < len(c.words); at += 2 {
		q.set(c.words[at], c.words[at+1])
	}
	if q.backoffMin > q.backoffMax || q.deadLetter == c.name {
		return Err("ERR")
	}
	s.own(c.name, q)
	return "OK"
}

// own gives a queue settings of its own.
func (s *Server) own(name string, q settings) {
	s.changes++
	made := s.make(name)
	made.redated = made.redated || s.settings(name).retainDead != q.retainDead
	made.own, made.settings = true, q
}

func qpause(s *Server, c call) any {
	in := c.words[2] == "IN"
	until := number(c.words[len(c.words)-1])
	no := s.stores()
	if until <= s.now {
		no = s.takes()
	}
	if no != nil {
		return no
	}
	q := s.settings(c.name)
	paused, end := &q.pauseOut, &q.pauseUntil
	if in {
		paused, end = &q.pauseIn, &q.pauseInUntil
	}
	was := *paused
	if *paused, *end = until > s.now, until; !*paused {
		*end = 0
	}
	if was || *paused {
		s.own(c.name, q)
	}
	return "OK"
}
