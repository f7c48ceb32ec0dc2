package model

import "maps"

// hset is HSET, HMSET and HSETNX.
func hset(s *Server, c call) any {
	if len(c.words)%2 == 1 {
		return Err("ERR")
	}
	v, added := s.values[c.name], int64(0)
	if _, there := v.fields[c.words[2]]; there && c.words[0] == "HSETNX" {
		return int64(0)
	}
	if v.fields = maps.Clone(v.fields); v.fields == nil {
		v.fields = map[string]string{}
	}
	for at := 2; at < len(c.words); at += 2 {
		if _, there := v.fields[c.words[at]]; !there {
			added++
		}
		v.fields[c.words[at]] = c.words[at+1]
	}
	s.put(c.name, v)
	if c.words[0] == "HMSET" {
		return "OK"
	}
	return added
}

func hincrby(s *Server, c call) any {
	by := number(c.words[3])
	old, there := s.values[c.name].fields[c.words[2]]
	now := sum(old, there, by)
	hset(s, call{conn: c.conn, name: c.name, words: []string{"HSET", c.words[1], c.words[2], now}})
	return number(now)
}

// hget is HGET, HMGET, HEXISTS and HSTRLEN.
func hget(s *Server, c call) any {
	all := []any{}
	for _, field := range c.words[2:] {
		if v, there := s.values[c.name].fields[field]; there {
			all = append(all, v)
		} else {
			all = append(all, nil)
		}
	}
	switch first, there := all[0].(string); c.words[0] {
	case "HGET":
		return all[0]
	case "HEXISTS":
		return flag(there)
	case "HSTRLEN":
		return int64(len(first))
	}
	return all
}

// hall is HGETALL, HKEYS, HVALS and HLEN.
func hall(s *Server, c call) any {
	fields, bag, pairs := s.values[c.name].fields, Bag{}, Map{}
	for name, v := range fields {
		pairs[name] = v
		if c.words[0] == "HKEYS" {
			v = name
		}
		bag = append(bag, v)
	}
	switch c.words[0] {
	case "HGETALL":
		return pairs
	case "HLEN":
		return int64(len(fields))
	}
	return bag
}

func hdel(s *Server, c call) any {
	v, n := s.values[c.name], int64(0)
	v.fields = maps.Clone(v.fields)
	for _, field := range c.words[2:] {
		if _, there := v.fields[field]; there {
			n++
			delete(v.fields, field)
		}
	}
	switch {
	case n > 0 && len(v.fields) == 0:
		s.vacate(c.name)
	case n > 0:
		s.touch(c.name)
		s.values[c.name] = v
	}
	return n
}
