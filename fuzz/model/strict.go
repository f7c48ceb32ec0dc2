package model

import "slices"

// holdsKey says that no other packet of its key can be taken in strict order.
func (q *queue) holdsKey(p *packet) bool {
	return p.state == claimed || p.state == delayed && p.first != 0 || p.state == dead && q.onDead == "hold"
}

// aheadOf are the packets for one of which another one waits in strict order: those that hold its
// key, or else the first of that.
func (s *Server) aheadOf(p *packet) (list []*packet) {
	q := s.queues[p.queue]
	if p.key == nil || !q.strict {
		return nil
	}
	same := func(o *packet) bool { return o.key != nil && *o.key == *p.key }
	for _, o := range s.all(p.queue) {
		if same(o) && q.holdsKey(o) {
			list = append(list, o)
		}
	}
	if line := s.line(p.queue, false); len(list) == 0 {
		if at := slices.IndexFunc(line, same); at >= 0 && line[at] != p {
			list = append(list, line[at])
		}
	}
	return list
}

// firsts are those of a line that wait for no other of their keys.
func (s *Server) firsts(name string, line []*packet) []*packet {
	q := s.queues[name]
	if !s.settings(name).strict {
		return line
	}
	first := map[string]*packet{} // by keys; nil: none
	for _, p := range append(slices.DeleteFunc(s.all(name), func(p *packet) bool { return !q.holdsKey(p) }), s.line(name, false)...) {
		if p.key == nil {
			continue
		}
		if _, known := first[*p.key]; !known && p.state == ready {
			first[*p.key] = p
		} else if !known {
			first[*p.key] = nil
		}
	}
	return slices.DeleteFunc(line, func(p *packet) bool { return p.key != nil && first[*p.key] != p })
}
