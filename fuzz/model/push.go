package model

import (
	"cmp"
	"slices"
)

func qpush(s *Server, c call) any {
	c.parse(3, "TELL")
	if c.has("UNIQUE") {
		if met := s.met(c); met != nil {
			return met
		}
	}
	ids, no := s.push(c, c.words[2:3])
	if no != nil || ids[0] == nil {
		return no
	}
	id := s.next - 1
	if ms := c.number("WINDOW", 0); ms > 0 {
		s.windows = append(s.windows, window{c.name, c.options["UNIQUE"], id, s.now + ms, false})
	}
	return c.told(id, "new")
}

func qmpush(s *Server, c call) any {
	n := int(number(c.words[2]))
	c.parse(3 + n)
	ids, no := s.push(c, c.words[3:3+n])
	if no != nil {
		return no
	}
	return ids
}

// push adds packets, or says what refuses them.
func (s *Server) push(c call, payloads []string) (ids []any, no any) {
	if no := s.stores(); no != nil {
		return nil, no
	}
	var come []*packet
	for _, payload := range payloads {
		p := &packet{
			queue: c.name, payload: payload, prio: c.number("PRIO", 128), lease: c.number("LEASE", 0),
			enqueued: s.now, state: ready, tags: c.tags,
		}
		if !c.has("WINDOW") {
			p.unique, p.untilClaim = c.options["UNIQUE"], c.options["UNTIL"] == "claim"
		}
		if c.has("KEY") {
			p.key = new(c.options["KEY"])
		}
		if ttl := c.number("TTL", 0); ttl > 0 {
			p.expiry = s.now + ttl
		}
		if at := max(c.number("AT", 0), s.now+c.number("DELAY", 0)); at > s.now {
			p.state, p.until = delayed, at
		}
		come = append(come, p)
	}
	if no := s.admits(c.name, come...); no == Err("FULL") && s.settings(c.name).full == "drop" {
		if !s.drop(c.name, come) {
			return make([]any, len(come)), nil
		}
	} else if no != nil {
		return nil, no
	}
	s.changes++
	s.make(c.name)
	for _, p := range come {
		p.id = s.number()
		s.packets = append(s.packets, p)
		s.count(c.name, pushed)
		ids = append(ids, text(p.id))
	}
	return ids, nil
}

// taken returns the packets that a command takes, or what refuses it.
func (s *Server) taken(c call) (list []*packet, no any) {
	switch {
	case s.finished(c.name):
		return nil, Err("CLOSED")
	case s.settings(c.name).pauseOut:
		return nil, nil
	}
	list = slices.DeleteFunc(s.in(c.name, ready), func(p *packet) bool { return !c.accepts(p) })
	if no := s.takes(); no != nil && len(list) > 0 {
		return nil, no
	}
	if c.has("GROUP") && len(list) > 0 && list[0].key != nil {
		return s.group(list[0]), nil
	}
	list = list[:min(len(list), int(c.number("COUNT", 1)))]
	if len(list) > 0 {
		s.changes++
	}
	return list, nil
}

// group returns a packet and what else is ready of its key, of each priority the newest first.
func (s *Server) group(first *packet) []*packet {
	s.changes++
	others := slices.DeleteFunc(s.in(first.queue, ready), func(p *packet) bool { return p == first || p.key == nil || *p.key != *first.key })
	slices.SortFunc(others, func(a, b *packet) int { return cmp.Or(cmp.Compare(a.prio, b.prio), cmp.Compare(b.id, a.id)) })
	return append([]*packet{first}, others...)
}

func qclaim(s *Server, c call) any {
	c.parse(2, "GROUP")
	list, no := s.taken(c)
	if no != nil {
		return no
	}
	all := []any{}
	for _, p := range list {
		lease := cmp.Or(c.number("LEASE", 0), p.lease, s.settings(c.name).lease)
		p.state, p.token, p.last, p.consumer = claimed, s.number(), s.now, c.conn
		p.first = cmp.Or(p.first, s.now)
		p.until, p.leaseEnd = s.now+lease, s.steady+lease
		p.attempts++
		if p.untilClaim {
			p.unique = ""
		}
		if c.has("CONSUMER") {
			p.consumer = c.options["CONSUMER"]
		}
		all = append(all, s.fields(p))
	}
	return all
}

func qpop(s *Server, c call) any {
	c.parse(2, "GROUP")
	list, no := s.taken(c)
	if no != nil {
		return no
	}
	all := []any{}
	for _, p := range list {
		f := s.fields(p)
		delete(f, "state")
		delete(f, "last-error-class")
		all = append(all, f)
		s.remove(p)
		s.count(c.name, popped)
	}
	return all
}
