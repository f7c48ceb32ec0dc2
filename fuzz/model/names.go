package model

import (
	"maps"
	"slices"
	"strings"
)

// What a name stands for.
const (
	isNone   = "none"
	isString = "string"
	isHash   = "hash"
	isList   = "list"
)

// value is a string or a hash. Nobody changes its fields.
type value struct {
	text   string
	fields map[string]string // nil: it is a string
	expiry int64             // 0: never
}

// kind is what a name stands for.
func (s *Server) kind(name string) string {
	switch v, there := s.values[name]; {
	case there && v.fields != nil:
		return isHash
	case there:
		return isString
	case s.exists(name):
		return isList
	}
	return isNone
}

// expiryOf is when a name expires, 0 for never.
func (s *Server) expiryOf(name string) int64 {
	if q := s.queues[name]; q != nil && s.kind(name) == isList && !q.stale {
		return q.expiry
	}
	return s.values[name].expiry
}

// touch counts a change of what has a name.
func (s *Server) touch(name string) {
	s.changes++
	s.stir(name)
}

// stir tells those who watch a name that something happens to it.
func (s *Server) stir(name string) {
	for _, o := range s.conns {
		o.broken = o.broken || slices.Contains(o.watches, name)
	}
}

// put gives a name a value, in place of what has it.
func (s *Server) put(name string, v value) {
	if s.room >= NoPush {
		panic(Err("OOM"))
	}
	if s.kind(name) == isList || s.hasWindow(name) {
		s.dropQueue(name)
	}
	s.touch(name)
	s.values[name] = v
}

// vacate takes from a name what it stands for. existed is false if that is nothing.
func (s *Server) vacate(name string) (existed bool) {
	existed = s.kind(name) != isNone
	if _, there := s.values[name]; there {
		s.touch(name)
		delete(s.values, name)
	} else if existed || s.hasWindow(name) {
		s.dropQueue(name)
	}
	return existed
}

// endNames ends what expires by now.
func (s *Server) endNames() {
	for name, v := range s.values {
		if v.expiry != 0 && v.expiry <= s.now {
			s.vacate(name)
		}
	}
	for name, q := range s.queues {
		if q.expiry != 0 && q.expiry <= s.now && !q.stale && s.kind(name) == isList {
			s.vacate(name)
		}
	}
}

func flag(is bool) int64 {
	if is {
		return 1
	}
	return 0
}

// each counts the names of a command of which something is true.
func (s *Server) each(c call, is func(name string) bool) any {
	n := int64(0)
	for _, name := range c.words[1:] {
		n += flag(is(c.name[:1] + name))
	}
	return n
}

// del is not refused where a full disk stops what changes anything.
func del(s *Server, c call) any { return s.each(c, s.vacate) }

func exists(s *Server, c call) any {
	return s.each(c, func(name string) bool { return s.kind(name) != isNone })
}

func typeOf(s *Server, c call) any { return s.kind(c.name) }

func rename(s *Server, c call) any {
	to, kind := c.name[:1]+c.words[2], s.kind(c.name)
	nx := c.words[0] == "RENAMENX"
	switch {
	case kind == isNone:
		return Err("ERR")
	case nx && s.kind(to) != isNone:
		return int64(0)
	case to != c.name:
		s.rename(c.name, to)
	}
	if nx {
		return int64(1)
	}
	return "OK"
}

func (s *Server) rename(from, to string) {
	v, isValue := s.values[from]
	s.vacate(to)
	s.touch(from)
	s.touch(to)
	if isValue {
		delete(s.values, from)
		s.values[to] = v
		return
	}
	for _, p := range s.packets {
		if p.queue == from && !p.over {
			p.queue = to
		}
	}
	for i := range s.windows {
		if s.windows[i].queue == from {
			s.windows[i].queue = to
		}
	}
	q := *s.make(from)
	if q.deadLetter == to[1:] {
		q.deadLetter = ""
	}
	delete(s.queues, from)
	s.queues[to] = &q
}

// moment reads a number of a command, in its unit and from now if it is not absolute.
func (s *Server) moment(text string, seconds, absolute bool) int64 {
	n, unit, from := number(text), int64(1), s.now
	if seconds {
		unit = 1000
	}
	if absolute {
		from = 0
	}
	if n > (1<<63-1)/unit || n < -(1<<63-1)/unit || n*unit > 1<<63-1-from {
		panic(Err("ERR"))
	}
	return from + n*unit
}

func expire(s *Server, c call) any {
	has := map[string]bool{}
	for _, o := range c.words[3:] {
		if !slices.Contains([]string{"NX", "XX", "GT", "LT"}, o) {
			return Err("ERR")
		}
		has[o] = true
	}
	if has["NX"] && len(has) > 1 || has["GT"] && has["LT"] {
		return Err("ERR")
	}
	at := s.moment(c.words[2], !strings.HasPrefix(c.words[0], "P"), strings.HasSuffix(c.words[0], "AT"))
	old := s.expiryOf(c.name)
	if s.kind(c.name) == isNone || has["NX"] && old != 0 || has["XX"] && old == 0 || has["GT"] && (old == 0 || at <= old) || has["LT"] && old != 0 && at >= old {
		return int64(0)
	}
	s.setExpiry(c.name, max(at, 1))
	return int64(1)
}

// setExpiry lets a name expire, 0 for never. A moment that is past drops it.
func (s *Server) setExpiry(name string, at int64) {
	if at != 0 && at <= s.now {
		s.vacate(name)
		return
	}
	if at != 0 || s.expiryOf(name) != 0 {
		s.touch(name)
	}
	if v, isValue := s.values[name]; isValue {
		v.expiry = at
		s.values[name] = v
	} else {
		s.define(name).expiry = at
	}
}

func persist(s *Server, c call) any {
	if s.expiryOf(c.name) == 0 {
		return int64(0)
	}
	s.setExpiry(c.name, 0)
	return int64(1)
}

func ttl(s *Server, c call) any {
	at := s.expiryOf(c.name)
	switch {
	case s.kind(c.name) == isNone:
		return int64(-2)
	case at == 0:
		return int64(-1)
	}
	if !strings.HasSuffix(c.words[0], "TIME") {
		at -= s.now
	}
	if !strings.HasPrefix(c.words[0], "P") {
		at = (at + 500) / 1000
	}
	return at
}

// names are those of a database that stand for something, of one kind or any.
func (s *Server) names(db byte, kind string) (all []string) {
	for name := range s.values {
		all = append(all, name)
	}
	for name := range s.queues {
		all = append(all, name)
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(name string) bool {
		is := s.kind(name)
		return name[0] != db || is == isNone || kind != "" && is != kind
	})
}

func dbsize(s *Server, c call) any { return int64(len(s.names(s.conns[c.conn].db, ""))) }

func keys(s *Server, c call) any {
	kind, pattern := "", c.words[len(c.words)-1]
	if c.words[0] == "QUEUES" {
		kind = isList
		pattern = "*"
		if c.has("MATCH") {
			pattern = c.options["MATCH"]
		}
	}
	all := Bag{}
	for _, name := range s.names(s.conns[c.conn].db, kind) {
		if like(pattern, name[1:]) {
			all = append(all, name[1:])
		}
	}
	return all
}

func flush(s *Server, c call) any {
	if len(c.words) > 2 || len(c.words) == 2 && c.words[1] != "ASYNC" && c.words[1] != "SYNC" {
		return Err("ERR")
	}
	for db := byte('0'); db < '0'+16; db++ {
		if c.words[0] == "FLUSHALL" || db == s.conns[c.conn].db {
			for _, name := range s.names(db, "") {
				s.vacate(name)
			}
			s.windows = slices.DeleteFunc(s.windows, func(w window) bool { return w.queue[0] == db })
			maps.DeleteFunc(s.queues, func(name string, _ *queue) bool { return name[0] == db }) // with totals of those that are empty
		}
	}
	return "OK"
}
