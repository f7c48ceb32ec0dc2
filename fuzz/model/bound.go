package model

import (
	"cmp"
	"slices"
)

// size is what a packet counts for a bound.
func (p *packet) size() int64 {
	n := int64(len(p.payload))
	if p.key != nil {
		n += int64(len(*p.key))
	}
	return n
}

func (q settings) over(packets, bytes int64) bool {
	return q.bound > 0 && packets > q.bound || q.boundBytes > 0 && bytes > q.boundBytes
}

// admits says what keeps packets from coming into a queue, nil if nothing does.
func (s *Server) admits(queue string, come ...*packet) any {
	q := s.settings(queue)
	switch {
	case q.closed:
		return Err("CLOSED")
	case q.pauseIn:
		return Err("PAUSED")
	}
	bytes := int64(0)
	for _, p := range come {
		bytes += p.size()
	}
	if q.over(int64(len(come)), bytes) {
		return Err("ERR")
	}
	all := append(s.in(queue, ready, delayed, claimed), come...)
	for _, p := range all[:len(all)-len(come)] {
		bytes += p.size()
	}
	if q.over(int64(len(all)), bytes) {
		return Err("FULL")
	}
	return nil
}

// drop makes room for what is pushed with a priority. It says whether there is enough.
func (s *Server) drop(queue string, come []*packet) bool {
	worst := slices.DeleteFunc(s.in(queue, ready, delayed), func(p *packet) bool { return p.prio <= come[0].prio })
	slices.SortFunc(worst, func(a, b *packet) int { return cmp.Or(cmp.Compare(b.prio, a.prio), cmp.Compare(b.id, a.id)) })
	before := slices.Clone(s.packets)
	for n, p := range worst {
		if s.remove(p); s.admits(queue, come...) == nil {
			for range n + 1 {
				s.count(queue, dropped)
			}
			return true
		}
	}
	s.packets = before
	return false
}

func qclose(s *Server, c call) any {
	q := s.settings(c.name)
	if q.closed {
		return int64(0)
	}
	if no := s.stores(); no != nil {
		return no
	}
	q.closed = true
	s.own(c.name, q)
	return int64(1)
}

// qdrop is not refused where a full disk stops what changes anything, nor is del.
func qdrop(s *Server, c call) any {
	windows := slices.ContainsFunc(s.windows, func(w window) bool { return w.queue == c.name && !w.over })
	if !s.exists(c.name) && !windows {
		return Err("NOQUEUE")
	}
	s.changes++
	s.packets = slices.DeleteFunc(s.packets, func(p *packet) bool { return p.queue == c.name && !p.over })
	s.windows = slices.DeleteFunc(s.windows, func(w window) bool { return w.queue == c.name })
	if s.make(c.name).atMost = true; s.queues[c.name].own { // else it is only empty, and perhaps not forgotten yet
		delete(s.queues, c.name)
	}
	return "OK"
}

// finished says that a queue is closed, and has nothing that may still be taken.
func (s *Server) finished(queue string) bool {
	return s.settings(queue).closed && len(s.in(queue, ready, delayed, claimed)) == 0
}
