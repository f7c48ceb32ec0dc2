package model

import (
	"cmp"
	"slices"
)

// size is what a packet counts for a bound.
func (p *packet) size() int64 {
	n := int64(len(p.payload) + len(p.meta))
	if p.key != nil {
		n += int64(len(*p.key))
	}
	return n
}

func size(packets []*packet) (bytes int64) {
	for _, p := range packets {
		bytes += p.size()
	}
	return bytes
}

func (q settings) over(packets, bytes int64) bool {
	return q.bound > 0 && packets > q.bound || q.boundBytes > 0 && bytes > q.boundBytes
}

// admits says what keeps packets from coming into a queue, nil if nothing does.
func (s *Server) admits(queue string, come ...*packet) any {
	no := s.admitsFor(queue, nil, come)
	takesPlace := slices.ContainsFunc(come, func(p *packet) bool { return p.state <= claimed })
	if (no == nil || no == Err("FULL")) && takesPlace && s.firstToPush(queue) != nil { // who comes first
		return Err("FULL")
	}
	return no
}

// admitsFor is admits for what comes in place of a packet, or of none.
func (s *Server) admitsFor(queue string, instead *packet, come []*packet) any {
	q := s.settings(queue)
	stays := instead == nil && len(come) > 0 && come[0].id != 0 && come[0].queue == queue
	switch {
	case !stays && !q.inOrder(come):
		return Err("ERR")
	case q.closed:
		return Err("CLOSED")
	case q.pauseIn:
		return Err("PAUSED")
	}
	come = slices.DeleteFunc(slices.Clone(come), func(p *packet) bool { return p.state > claimed }) // these take no place
	if len(come) == 0 {
		return nil
	}
	if no := s.fullShare(queue, instead, come); no != nil {
		return no
	}
	packets, bytes := s.fill(queue, instead, come)
	if instead != nil {
		packets = 0 // they are not more
	}
	switch {
	case instead != nil && size(come) <= instead.size():
		return nil
	case q.over(int64(len(come)), size(come)):
		return Err("ERR")
	case q.over(packets, bytes):
		return Err("FULL")
	}
	return nil
}

// shareFull is the error of packets for which their share has no room. It is at once that of all.
const shareFull = Err("FULL queue is full for one share")

// fullShare says whether a share has no room for packets.
func (s *Server) fullShare(queue string, instead *packet, come []*packet) any {
	q := s.queues[queue]
	if q == nil || q.boundShare == 0 || q.shareBy == none {
		return nil
	}
	n := map[string]int64{}
	for _, p := range s.in(queue, ready, delayed, claimed) {
		n[q.shareOf(p)]++
	}
	for _, p := range come {
		share := q.shareOf(p)
		if instead != nil && q.shareOf(instead) == share {
			continue
		}
		if n[share]++; n[share] > q.boundShare {
			return shareFull
		}
	}
	return nil
}

// fill is how much a queue holds with what comes.
func (s *Server) fill(queue string, instead *packet, come []*packet) (packets, bytes int64) {
	all := append(s.in(queue, ready, delayed, claimed), come...)
	all = slices.DeleteFunc(all, func(p *packet) bool { return p == instead })
	return int64(len(all)), size(all)
}

// notWorth is the error of packets that are worse than all that are in a full queue.
const notWorth = Err("FULL and not worth a place")

// makeRoom is admits for what is pushed, with a priority: other packets may go for it.
func (s *Server) makeRoom(c call, instead *packet, come ...*packet) any {
	queue := c.name
	no := s.admitsFor(queue, instead, come)
	switch grows := instead == nil || size(come) > instead.size(); {
	case grows && (no == nil || no == Err("FULL")) && s.outOfTurn(queue, c):
		return Err("FULL")
	case no != Err("FULL") || s.settings(queue).full != "drop":
		return no
	case c.has("BLOCK"):
		return notWorth
	}
	worst := slices.DeleteFunc(s.in(queue, ready, delayed), func(p *packet) bool { return p == instead || uint32(p.prio-1) <= uint32(come[0].prio-1) })
	slices.SortFunc(worst, func(a, b *packet) int {
		return cmp.Or(cmp.Compare(uint32(b.prio-1), uint32(a.prio-1)), cmp.Compare(b.pos, a.pos))
	})
	before := slices.Clone(s.packets)
	for n, p := range worst {
		s.remove(p)
		if packets, bytes := s.fill(queue, instead, come); !s.settings(queue).over(packets, bytes) {
			for range n + 1 {
				s.count(queue, dropped)
			}
			return nil
		}
	}
	s.packets = before
	return notWorth
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

// qdrop is not refused where a full disk stops what changes anything.
func qdrop(s *Server, c call) any {
	if !s.exists(c.name) && !s.hasWindow(c.name) {
		return Err("NOQUEUE")
	}
	s.dropQueue(c.name)
	return "OK"
}

// dropQueue drops a queue with all that it has.
func (s *Server) dropQueue(name string) {
	s.touch(name)
	all, q := s.all(name), s.make(name)
	// A few go one by one. Otherwise all goes with the queue, also what a start has found to be over.
	single := len(all) <= 128 && len(all) == len(s.in(name, ready)) && !q.own && !s.hasWindow(name)
	s.packets = slices.DeleteFunc(s.packets, func(p *packet) bool { return p.queue == name && !(p.over && single) })
	s.windows = slices.DeleteFunc(s.windows, func(w window) bool { return w.queue == name })
	if q.atMost = true; q.own { // else it is only empty, and perhaps not forgotten yet
		delete(s.queues, name)
	}
}

func (s *Server) hasWindow(queue string) bool {
	return slices.ContainsFunc(s.windows, func(w window) bool { return w.queue == queue && !w.over })
}

// finished says that a queue is closed, and has nothing that may still be taken.
func (s *Server) finished(queue string) bool {
	return s.settings(queue).closed && len(s.in(queue, ready, delayed, claimed)) == 0
}
