package model

// Numbered has the next packet or claim get a number, if none has had it.
func (s *Server) Numbered(n int64) { s.next = max(s.next, n) }

// Learned gives a packet, found by its payload, the id and the token that a look shows, where no
// reply has told them. A token of 0 is none.
func (s *Server) Learned(queue, payload string, id, token int64) {
	for _, p := range s.packets {
		if p.queue != queue || p.payload != payload {
			continue
		}
		for i := range s.windows {
			if s.windows[i].id == p.id {
				s.windows[i].id = id
			}
		}
		if p.pos == p.id {
			p.pos = id
		}
		if p.id = id; token != 0 {
			p.token = token
		}
		s.next = max(s.next, id+1, token+1)
	}
}
