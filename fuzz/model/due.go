package model

import "slices"

// Due are the moments at which something will happen by itself, the next one first, on the clock on
// the wall.
func (s *Server) Due() (all []int64) {
	wall := func(moments ...int64) { all = append(all, moments...) }
	steady := func(moments ...int64) {
		for _, m := range moments {
			all = append(all, m-s.steady+s.now)
		}
	}
	for _, p := range s.packets {
		if wall(p.expiry, p.goes); p.state == claimed {
			steady(p.leaseEnd)
		} else {
			wall(p.until)
		}
	}
	for _, w := range s.windows {
		wall(w.until)
	}
	for _, v := range s.values {
		wall(v.expiry)
	}
	for _, q := range s.queues {
		wall(q.expiry, q.pauseInUntil, q.pauseUntil)
		steady(up(q.gate.opens()))
		for _, o := range q.shares {
			steady(o.rest)
		}
		for _, t := range q.live {
			steady(up(t.gate.opens()))
		}
	}
	for _, o := range s.conns {
		if o.wait != nil {
			steady(o.wait.until)
		}
	}
	all = slices.DeleteFunc(all, func(m int64) bool { return m <= s.now })
	slices.Sort(all)
	return slices.Compact(all)
}
