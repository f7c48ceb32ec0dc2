package model

import (
	"cmp"
	"slices"
)

func qpush(s *Server, c call) any {
	c.checkPush()
	if c.has("UNIQUE") {
		if reply, met := s.met(c); met {
			return reply
		}
	}
	ids, no := s.push(c, c.words[2:3])
	if no != nil || ids[0] == nil {
		return s.orWait(c, no)
	}
	id := s.next - 1
	if ms := c.number("WINDOW", 0); ms > 0 {
		s.windows = append(s.windows, window{c.name, c.options["UNIQUE"], id, s.now + ms, false})
	}
	return c.told(id, "new")
}

func qmpush(s *Server, c call) any {
	n := int(number(c.words[2]))
	within(int64(n), 1, int64(len(c.words)-3))
	c.parse(3 + n)
	c.checkPush()
	ids, no := s.push(c, c.words[3:3+n])
	if no != nil {
		return s.orWait(c, no)
	}
	return ids
}

// orWait is the reply to a push that is refused, which may wait.
func (s *Server) orWait(c call, no any) any {
	if !c.exec && (no == Err("FULL") || no == Err("PAUSED") || no == notWorth) && (c.has("BLOCK") || s.settings(c.name).full == "block") {
		return s.park(c, []string{c.name}, true, c.number("BLOCK", 0))
	} else if no == notWorth {
		return Err("FULL")
	}
	return no
}

// checkPush refuses a packet that nothing would ever take.
func (c call) checkPush() {
	if c.number("PRIO", 1) == 0 && !c.has("KEY") {
		panic(Err("ERR"))
	}
}

// push adds packets, or says what refuses them.
func (s *Server) push(c call, payloads []string) (ids []any, no any) {
	if no := s.stores(); no != nil {
		return nil, no
	}
	var come []*packet
	for _, payload := range payloads {
		p := &packet{queue: c.name, prio: c.number("PRIO", 128), enqueued: s.now, state: ready}
		if s.bring(p, c, payload); !c.has("WINDOW") {
			p.unique, p.untilClaim = c.options["UNIQUE"], c.options["UNTIL"] == "claim"
		}
		if c.has("KEY") {
			p.key = new(c.options["KEY"])
		}
		if at := c.moment(s); at > s.now {
			p.state, p.until = delayed, at
		}
		come = append(come, p)
	}
	if no := s.makeRoom(c, nil, come...); no == notWorth && !c.has("BLOCK") {
		return make([]any, len(come)), nil
	} else if no != nil {
		return nil, no
	}
	for _, p := range come {
		s.insert(p, true)
		ids = append(ids, text(p.id))
	}
	return ids, nil
}

// bring gives a packet what a push brings besides its place.
func (s *Server) bring(p *packet, c call, payload string) {
	p.payload, p.lease, p.tags, p.producer, p.meta = payload, c.number("LEASE", 0), c.tags, c.options["PRODUCER"], c.options["META"]
	if p.expiry = 0; c.number("TTL", 0) > 0 {
		p.expiry = s.now + c.number("TTL", 0)
	}
}

// moment is when a packet is ready that comes.
func (c call) moment(s *Server) int64 { return max(c.number("AT", 0), s.now+c.number("DELAY", 0)) }

// insert adds a packet to its queue, as the newest or the oldest of its priority.
func (s *Server) insert(p *packet, newest bool) {
	s.touch(p.queue)
	s.define(p.queue)
	p.id = s.place(newest)
	p.pos = p.id
	s.packets = append(s.packets, p)
	s.count(p.queue, pushed)
}

// place gives a number that is above, or below, all others.
func (s *Server) place(newest bool) int64 {
	if newest {
		return s.number()
	}
	s.low--
	return s.low + 1
}

// replace gives a packet that waits what another push with its id brings.
func (s *Server) replace(p *packet, c call) any {
	if no := s.stores(); no != nil {
		return no
	}
	fresh := *p
	s.bring(&fresh, c, c.words[2])
	if no := s.makeRoom(c, p, &fresh); no != nil {
		return no
	}
	if p.state == ready || c.has("DELAY") || c.has("AT") {
		fresh.state, fresh.until = ready, 0
		if at := c.moment(s); at > s.now {
			fresh.state, fresh.until = delayed, at
		}
	}
	s.touch(c.name)
	*p = fresh
	return nil
}

// line is what takes can have of a queue, in order: packets of priority 0 only go with others.
func (s *Server) line(queue string, newest bool) []*packet {
	list := slices.DeleteFunc(s.in(queue, ready), func(p *packet) bool { return p.prio == 0 })
	if newest {
		slices.SortFunc(list, newestFirst)
	}
	return list
}

func newestFirst(a, b *packet) int {
	return cmp.Or(cmp.Compare(uint32(a.prio-1), uint32(b.prio-1)), cmp.Compare(b.pos, a.pos))
}

// queues are those that a take names, with their database.
func (s *Server) queuesOf(c call) (names []string) {
	names = []string{c.name}
	for at := 2; at+1 < len(c.words) && c.words[at] == "OR"; at += 2 {
		if names = append(names, c.name[:1]+c.words[at+1]); slices.Contains(names[:len(names)-1], names[len(names)-1]) {
			panic(Err("ERR"))
		}
	}
	return names
}

// taken returns the packets that a command takes from the first of its queues that has any, or what
// refuses it.
func (s *Server) taken(c call) (list []*packet, no any) {
	names := s.queuesOf(c)
	if c.again != "" {
		names = []string{c.again}
	}
	if c.has("FILL") && len(s.queuesOf(c)) > 1 {
		return nil, Err("ERR")
	}
	for _, name := range s.queuesOf(c) {
		if is := s.kind(name); len(c.filters) > 0 && is != isNone && is != isList {
			return nil, Err("WRONGTYPE")
		}
		s.checkFilter(c, name)
	}
	for _, name := range names {
		if is := s.kind(name); is != isNone && is != isList {
			return nil, Err("WRONGTYPE")
		}
		if list, no := s.takenFrom(name, c); no != nil || len(list) > 0 {
			return list, no
		}
	}
	names = s.queuesOf(c)
	switch {
	case !slices.ContainsFunc(names, func(name string) bool { return !s.finished(name) }):
		return nil, Err("CLOSED")
	case !c.has("BLOCK"):
		return nil, []any{}
	}
	return nil, s.park(c, names, false, c.number("BLOCK", 0))
}

func (s *Server) takenFrom(name string, c call) (list []*packet, no any) {
	claims, of := c.words[0] == "QCLAIM", s.settings(name)
	switch q := s.queues[name]; {
	case c.has("GROUP") && claims && q != nil && q.limitsClaims():
		return nil, Err("ERR")
	case of.pauseOut:
		return nil, nil
	}
	most := int(c.number("COUNT", 1))
	if c.has("GROUP") {
		most = 1
	}
	list = s.selects(name, choice{most: most, newest: c.has("NEWEST"), claims: claims, accepts: func(p *packet) bool { return s.accepts(c, p) }})
	if len(list) == 0 {
		return nil, nil
	}
	if s.fills(c, list) {
		return nil, s.awaitBatch(c)
	}
	if no := s.takes(); no != nil {
		return nil, no
	}
	s.touch(name)
	if c.has("GROUP") {
		return s.group(list[0]), nil
	}
	return list, nil
}

// group returns a packet and what else is ready of its key, of each priority the newest first.
func (s *Server) group(first *packet) []*packet {
	if first.key == nil {
		return []*packet{first}
	}
	others := slices.DeleteFunc(s.in(first.queue, ready), func(p *packet) bool { return p == first || p.key == nil || *p.key != *first.key })
	slices.SortFunc(others, newestFirst)
	return append([]*packet{first}, others...)
}

func qclaim(s *Server, c call) any {
	list, no := s.taken(c)
	if len(list) == 0 {
		return no
	}
	all := []any{}
	for _, p := range list {
		s.queues[p.queue].take(s.queues[p.queue].shareOf(p), s.steady*milli)
		p.progress = 0
		lease := cmp.Or(c.number("LEASE", 0), p.lease, s.settings(p.queue).lease)
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
	list, no := s.taken(c)
	if len(list) == 0 {
		return no
	}
	all := []any{}
	for _, p := range list {
		f := s.fields(p)
		delete(f, "state")
		delete(f, "last-error-class")
		all = append(all, f)
		s.pop(p)
	}
	return all
}

// pop takes a packet for good.
func (s *Server) pop(p *packet) {
	s.queues[p.queue].take(s.queues[p.queue].shareOf(p), s.steady*milli)
	s.touch(p.queue)
	s.remove(p)
	s.count(p.queue, popped)
}
