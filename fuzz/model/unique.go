package model

import "slices"

// window is the time for which an id is that of a unique push, whatever becomes of its packet.
type window struct {
	queue, unique string
	id, until     int64
	over          bool // it has ended, and is still on the disk: a start may find it again
}

// holder returns the number of the packet that has an id of unique pushes, 0 if none has it.
func (s *Server) holder(queue, unique string) (id int64) {
	for _, w := range s.windows {
		if w.queue == queue && w.unique == unique && !w.over {
			id = w.id
		}
	}
	var have []*packet
	for _, p := range s.in(queue, ready, delayed, claimed) {
		if p.unique == unique {
			have = append(have, p)
		}
	}
	slices.SortFunc(have, func(a, b *packet) int { return int(b.id - a.id) })
	for _, p := range have {
		if s.current(p) != nil {
			return max(id, p.id)
		}
	}
	return id
}

// met is the reply to a push with an id that a packet has.
func (s *Server) met(c call) (reply any, met bool) {
	id := s.holder(c.name, c.options["UNIQUE"])
	if id == 0 {
		return nil, false
	}
	told := "gone"
	if p := s.find(c.name, text(id)); p != nil {
		if told = p.state.String(); c.has("REPLACE") && p.state <= delayed {
			if no := s.replace(p, c); no != nil {
				if no == notWorth && !c.has("BLOCK") {
					return nil, true
				}
				return s.orWait(c, no), true
			}
			told = "replaced"
		}
	}
	return c.told(id, told), true
}

// told is the reply to a push.
func (c call) told(id int64, what string) any {
	if c.has("TELL") {
		return []any{text(id), what}
	}
	return text(id)
}

// endWindows ends those that are over.
func (s *Server) endWindows() {
	for i := range s.windows {
		s.windows[i].over = s.windows[i].over || s.windows[i].until <= s.now
	}
}

// Undefined says that the disk has no queue with a name any more.
func (s *Server) Undefined(queue string) {
	s.windows = slices.DeleteFunc(s.windows, func(w window) bool { return w.queue == queue && w.over })
}

// Forgotten says that the disk has no window of a packet any more.
func (s *Server) Forgotten(id int64) {
	s.windows = slices.DeleteFunc(s.windows, func(w window) bool { return w.id == id && w.over })
}
