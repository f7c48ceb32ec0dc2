package model

// redrive makes a packet that died ready again in a queue, "" in its own; or says what refuses it.
func (s *Server) redrive(p *packet, to string) (no any) {
	if to == "" {
		to = p.queue
	}
	if to != p.queue && s.room >= NoPush {
		return Err("OOM")
	}
	if to != p.queue || p.state == dead {
		will := *p
		if will.state = ready; s.kind(to) != isNone && s.kind(to) != isList {
			return Err("WRONGTYPE")
		}
		if no := s.admits(to, &will); no != nil {
			return no
		}
	}
	s.touch(p.queue)
	reason := p.reason
	p.attempts, p.origin, p.queue = 0, 0, to
	p.back(0, reason)
	s.define(to)
	s.stir(to)
	return nil
}

func qset(s *Server, c call) any {
	q := s.settings(c.name)
	was := q
	for at, forced := 2, false; at < len(c.words); at += 2 {
		if c.words[at] == "FORCE" {
			if forced || c.exec {
				return Err("ERR")
			}
			forced = true
			at--
			continue
		}
		if c.words[at] == "enum" {
			q.order(c.words[at+1], c.words[at+2:])
			break
		}
		q.set(c.words[at], c.words[at+1])
	}
	if q.backoffMin > q.backoffMax || q.deadLetter != "" && q.deadLetter == c.words[1] || q.onDead == "hold" && q.deadLetter != "" {
		return Err("ERR")
	}
	if q.shareBy == none && (q.shareMax > 0 && q.shareMax != was.shareMax || q.boundShare > 0 && q.boundShare != was.boundShare || q.shareRate != none && q.shareRate != was.shareRate) {
		return Err("ERR")
	}
	if no := s.stores(); no != nil {
		return no
	}
	s.own(c.name, q)
	return "OK"
}

// own gives a queue settings of its own.
func (s *Server) own(name string, q settings) {
	s.touch(name)
	made := s.define(name)
	made.redated = made.redated || s.settings(name).retainDead != q.retainDead
	was := s.settings(name)
	made.own, made.settings = true, q
	made.reshape(s, name, was)
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
