package model

import "maps"

// share is what a share of a queue has of its own.
type share struct{ weight, maxClaimed int64 }

func qshare(s *Server, c call) any {
	if no := s.stores(); no != nil {
		return no
	}
	c.parse(3, "RESET")
	name, has := c.words[2], share{weight: 1}
	shares := map[string]share{} // copies of the queue have the old ones
	if q := s.queues[c.name]; q != nil {
		maps.Copy(shares, q.shares)
	}
	was, there := shares[name]
	if c.has("RESET") {
		delete(shares, name)
	} else if there {
		has = was
	}
	set := c.has("WEIGHT") || c.has("MAX-CLAIMED")
	if !set && !there { // there is nothing to forget
		return "OK"
	}
	if set {
		shares[name] = share{c.number("WEIGHT", has.weight), c.number("MAX-CLAIMED", has.maxClaimed)}
	}
	s.own(c.name, s.settings(c.name))
	s.queues[c.name].shares = shares
	return "OK"
}

func qshares(s *Server, c call) any {
	all := Set{}
	if q := s.queues[c.name]; q != nil {
		for name, o := range q.shares {
			f := Map{"name": name, "ready": int64(0), "claimed": int64(0), "weight": o.weight}
			if o.maxClaimed > 0 {
				f["max-claimed"] = o.maxClaimed
			}
			if q.pauseOut {
				f["why"] = "queue is paused"
			}
			if q.pauseUntil != 0 {
				f["until"] = q.pauseUntil
			}
			all = append(all, f)
		}
	}
	if !s.exists(c.name) {
		return Err("NOQUEUE")
	}
	return []any{"0", all}
}
