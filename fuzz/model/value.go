package model

func set(s *Server, c call) any {
	if no := s.stores(); no != nil {
		return no
	}
	s.changes++
	s.values[c.name] = c.words[2]
	return "OK"
}

func get(s *Server, c call) any {
	if v, ok := s.values[c.name]; ok {
		return v
	}
	return nil
}

func del(s *Server, c call) any {
	if _, ok := s.values[c.name]; !ok {
		return int64(0)
	}
	s.changes++
	delete(s.values, c.name)
	return int64(1)
}
