package model

import "slices"

// bulk is a command for many packets that goes on in slices: of a state each, and of 500 packets.
type bulk struct {
	states []state
	last   *packet // that was looked at in the first of these; nil: none
	left   int     // that are looked at in this state
	done   int64
	stayed bool // one whose origin is gone
}

// sweep says what becomes of which packets.
type sweep struct {
	states []state
	wants  func(s *Server, c call, p *packet) bool
	verb   func(s *Server, c call, p *packet) (no any)
}

var sweeps = map[string]sweep{
	"QREDRIVE": {[]state{dead, delayed, ready}, func(_ *Server, _ call, p *packet) bool { return redrivable(p) }, redriveTo},
	"QPURGE":   {[]state{claimed, delayed, ready, dead, done, damaged}, func(*Server, call, *packet) bool { return true }, purge},
	"QMOVE":    {[]state{ready, delayed, claimed, dead, done, damaged}, func(_ *Server, _ call, p *packet) bool { return p.state != claimed }, move},
	"QHARVEST": {[]state{claimed}, harvestable, harvest},
}

// inSlices carries out a slice of a command.
func inSlices(s *Server, c call) any {
	o, most, dry := s.conns[c.conn], c.number("COUNT", 0), c.has("DRYRUN")
	b, of := o.bulk, sweeps[c.words[0]]
	if o.bulk = nil; b == nil {
		b = &bulk{states: of.states}
		if t := c.options["STATE"]; t != "" {
			b.states = slices.DeleteFunc([]state{ready, delayed, claimed, dead, done, damaged}, func(is state) bool { return is.String() != t })
		}
	}
	if no := s.takes(); no != nil && !dry {
		return no
	}
	s.checkFilter(c, c.name)
	b = new(*b)
	for _, p := range s.pick(c, b, of, most) {
		if was := p.state; dry {
			b.done++
			continue
		} else if s.current(p) == nil || p.state != was {
			continue
		}
		if no := of.verb(s, c, p); no != nil {
			return no
		}
		b.done++
	}
	switch {
	case len(b.states) > 0 && (most == 0 || b.done < most):
		o.bulk = b
		return More{}
	case b.done == 0 && b.stayed:
		return Err("ERR")
	}
	return b.done
}

// endBulk ends what a client does in slices. It returns how many packets that has changed.
func (s *Server) endBulk(client string) (done int64) {
	o := s.conns[client]
	if o.bulk != nil {
		done = o.bulk.done
	}
	o.bulk = nil
	return done
}

// pick is what the next slice changes: no more than COUNT asks for, though some may be gone then.
func (s *Server) pick(c call, b *bulk, of sweep, most int64) (picked []*packet) {
	list := s.in(c.name, b.states[0])
	if b.states[0] == ready { // what is passed over costs nothing
		list = slices.DeleteFunc(list, func(p *packet) bool { return p.prio != 0 && !s.accepts(c, p) })
	}
	if b.last != nil {
		list = slices.DeleteFunc(list, func(p *packet) bool { return inOrder(p, b.last) <= 0 })
	} else {
		b.left = len(s.all(c.name))
	}
	for i, p := range list {
		if b.left == 0 {
			break
		}
		if i == 500 && !c.has("DRYRUN") {
			return picked
		}
		switch {
		case !s.accepts(c, p) || !of.wants(s, c, p):
		case c.words[0] == "QREDRIVE" && !c.has("TO") && p.origin != 0 && s.nameOf(p.origin) == "":
			b.stayed = true
		case most > 0 && b.done+int64(len(picked)) == most:
			return picked
		default:
			picked = append(picked, p)
		}
		b.last = new(*p)
		b.left--
	}
	b.states, b.last = b.states[1:], nil
	return picked
}

// redrivable says that a packet has died: here, or elsewhere.
func redrivable(p *packet) bool { return p.state == dead || p.origin != 0 }

func redriveTo(s *Server, c call, p *packet) any {
	to := s.nameOf(p.origin)
	if c.has("TO") {
		to = c.name[:1] + c.options["TO"]
	}
	return s.redrive(p, to)
}

func purge(s *Server, _ call, p *packet) any {
	s.touch(p.queue)
	s.remove(p)
	return nil
}

// move moves a packet to another queue, with its place and state.
func move(s *Server, c call, p *packet) any {
	to := c.name[:1] + c.words[len(c.words)-1]
	if c.words[2] == "TO" {
		to = c.name[:1] + c.words[3]
	}
	if no := s.mayMove(c.name, to, p); no != nil || to == c.name {
		return no
	}
	s.moveTo(p, to)
	return nil
}

// mayMove says what keeps packets from moving to a queue.
func (s *Server) mayMove(from, to string, packets ...*packet) any {
	switch no := s.stores(); {
	case no != nil:
		return no
	case s.kind(to) != isNone && s.kind(to) != isList:
		return Err("WRONGTYPE")
	case to == from:
		return nil
	}
	return s.admits(to, packets...)
}

func (s *Server) moveTo(p *packet, to string) {
	s.touch(p.queue)
	s.stir(to)
	s.define(to)
	p.queue = to
	if p.state == dead {
		p.goes = s.kept(p)
	}
}

func harvestable(s *Server, c call, p *packet) bool {
	by, named := c.options["CONSUMER"]
	return max(0, s.now-p.last) >= c.number("OLDER", 0) && (!named || p.consumer == by)
}

func harvest(s *Server, _ call, p *packet) any {
	s.touch(p.queue)
	switch {
	case p.cancelled:
		s.count(p.queue, cancelled)
		s.remove(p)
	case p.expiry != 0 && p.expiry <= s.now:
		s.count(p.queue, expired)
		s.remove(p)
	default:
		p.back(0, "harvested")
	}
	return nil
}

// qredrive is QREDRIVE of one packet, or of many.
func qredrive(s *Server, c call) any {
	if len(c.words) != 3 || c.words[2] == "DRYRUN" {
		c.parse(2)
		return inSlices(s, c)
	}
	number(c.words[2])
	if no := s.takes(); no != nil {
		return no
	}
	p := s.find(c.name, c.words[2])
	switch {
	case p == nil || !redrivable(p) || p.state == claimed || p.state == done:
		return int64(0)
	case p.origin != 0 && s.nameOf(p.origin) == "":
		return Err("ERR")
	}
	if no := s.redrive(p, s.nameOf(p.origin)); no != nil {
		return no
	}
	return int64(1)
}

// qmove is QMOVE of packets by their ids, or of all.
func qmove(s *Server, c call) any {
	if c.words[2] == "TO" {
		c.parse(4)
		return inSlices(s, c)
	}
	last := len(c.words) - 2
	if c.words[last] != "TO" {
		return Err("ERR")
	}
	numbers(c.words[2:last])
	var packets []*packet
	for _, id := range c.words[2:last] {
		if p := s.find(c.name, id); p != nil && p.state != claimed && !slices.Contains(packets, p) {
			packets = append(packets, p)
		}
	}
	to := c.name[:1] + c.words[last+1]
	if len(packets) == 0 {
		return int64(0)
	}
	if no := s.mayMove(c.name, to, packets...); no != nil {
		return no
	}
	for _, p := range packets {
		if to != c.name {
			s.moveTo(p, to)
		}
	}
	return int64(len(packets))
}

func qprio(s *Server, c call) any {
	number(c.words[2])
	n := number(c.words[3])
	within(n, 0, 1<<32-1)
	if !s.exists(c.name) {
		return Err("NOQUEUE")
	}
	p := s.find(c.name, c.words[2])
	switch {
	case p == nil || p.state == claimed && p.expiry != 0 && p.expiry <= s.now:
		return int64(0)
	case p.prio == n:
		return int64(1)
	case n == 0 && p.key == nil:
		return Err("ERR")
	}
	if no := s.stores(); no != nil {
		return no
	}
	s.touch(c.name)
	p.prio = n
	return int64(1)
}

func qrun(s *Server, c call) any {
	number(c.words[2])
	if no := s.takes(); no != nil {
		return no
	}
	if !s.exists(c.name) {
		return Err("NOQUEUE")
	}
	p, at := s.find(c.name, c.words[2]), max(c.number("AT", 0), s.now+c.number("DELAY", 0))
	switch no := s.stores(); {
	case p == nil || p.state > delayed:
		return int64(0)
	case at > s.now && no != nil:
		return no
	case at > s.now:
		p.state, p.until = delayed, at
	case p.state == ready:
		return int64(1)
	default:
		p.state, p.until = ready, 0
	}
	s.touch(c.name)
	return int64(1)
}
