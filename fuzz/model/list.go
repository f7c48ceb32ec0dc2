package model

import (
	"slices"
	"strings"
)

// A list is a queue whose ready packets are seen in order: the best priority first, and of that the
// newest at the left.

// popped takes elements from an end of a list. There are none where the queue is paused.
func (s *Server) popFrom(name, end string, n int) (list []*packet, no any) {
	if s.settings(name).pauseOut {
		return nil, nil
	}
	if list = s.selects(name, choice{most: n, newest: end == "LEFT", accepts: func(*packet) bool { return true }}); len(list) == 0 {
		return nil, nil
	}
	if no := s.takes(); no != nil {
		return nil, no
	}
	return list, nil
}

func payloads(list []*packet) []any {
	all := []any{}
	for _, p := range list {
		all = append(all, p.payload)
	}
	return all
}

// endOf is the end that the name of a command says.
func endOf(word string) string {
	if strings.HasPrefix(strings.TrimPrefix(word, "B"), "L") {
		return "LEFT"
	}
	return "RIGHT"
}

// lpush is LPUSH, RPUSH, LPUSHX and RPUSHX.
func lpush(s *Server, c call) any {
	if strings.HasSuffix(c.words[0], "X") && len(s.line(c.name, false)) == 0 {
		return int64(0)
	}
	if no := s.stores(); no != nil {
		return no
	}
	var come []*packet
	for _, v := range c.words[2:] {
		come = append(come, &packet{queue: c.name, payload: v, prio: 128, enqueued: s.now, state: ready})
	}
	if no := s.makeRoom(c, nil, come...); no == notWorth {
		return Err("FULL")
	} else if no != nil {
		return no
	}
	for _, p := range come {
		s.insert(p, endOf(c.words[0]) == "LEFT")
	}
	return int64(len(s.line(c.name, false)))
}

// lpop is LPOP and RPOP.
func lpop(s *Server, c call) any {
	n := 1
	if len(c.words) > 3 {
		return Err("ERR")
	} else if len(c.words) == 3 {
		within(number(c.words[2]), 0, 1<<63-1)
		if n = int(number(c.words[2])); n == 0 && len(s.line(c.name, false)) > 0 {
			return []any{}
		}
	}
	list, no := s.popFrom(c.name, endOf(c.words[0]), n)
	if len(list) == 0 && s.room >= Stop {
		return OneOf{nil, Err("OOM")} // the one is found first, or the other
	}
	for _, p := range list {
		s.pop(p)
	}
	switch {
	case no != nil:
		return no
	case len(list) == 0:
		return nil
	case len(c.words) == 2:
		return list[0].payload
	}
	return payloads(list)
}

// lmpop takes from the first of some lists that has elements.
func lmpop(s *Server, c call) any {
	n := number(c.words[1])
	within(n, 1, int64(len(c.words)-3))
	names, end, rest := c.words[2:2+n], c.words[2+n], c.words[3+n:]
	count := int64(1)
	if end != "LEFT" && end != "RIGHT" || len(rest) != 0 && (len(rest) != 2 || rest[0] != "COUNT") {
		return Err("ERR")
	} else if len(rest) > 0 {
		count = number(rest[1])
		within(count, 1, 1<<63-1)
	}
	for _, name := range names {
		key := c.name[:1] + name
		if is := s.kind(key); is != isNone && is != isList {
			return Err("WRONGTYPE")
		}
		list, no := s.popFrom(key, end, int(min(count, 1<<20)))
		if no != nil {
			return no
		}
		if len(list) > 0 {
			for _, p := range list {
				s.pop(p)
			}
			return []any{name, payloads(list)}
		}
	}
	return nil
}

// lmove is LMOVE and RPOPLPUSH.
func lmove(s *Server, c call) any {
	from, end := "RIGHT", "LEFT"
	if strings.HasSuffix(c.words[0], "LMOVE") {
		from, end = c.words[3], c.words[4]
		if !isEnd(from) || !isEnd(end) {
			return Err("ERR")
		}
	}
	to := c.name[:1] + c.words[2]
	list, no := s.popFrom(c.name, from, 1)
	if len(list) == 0 && s.room >= Stop {
		return OneOf{nil, Err("OOM")}
	}
	if no != nil || len(list) == 0 {
		return no
	}
	p := list[0]
	if is := s.kind(to); is != isNone && is != isList {
		return Err("WRONGTYPE")
	}
	if no := s.stores(); no != nil {
		return no
	}
	if to != c.name {
		if no := s.admits(to, p); no != nil {
			return no
		}
	}
	s.queues[c.name].take(s.queues[c.name].shareOf(p), s.steady*milli)
	if to != c.name {
		s.moveTo(p, to)
	}
	s.touch(c.name)
	p.prio, p.pos = 128, s.place(end == "LEFT")
	return p.payload
}

func isEnd(word string) bool { return word == "LEFT" || word == "RIGHT" }

func llen(s *Server, c call) any { return int64(len(s.line(c.name, true))) }

func lrange(s *Server, c call) any {
	first, last := number(c.words[2]), number(c.words[3])
	list := s.line(c.name, true)
	from, n := extent(first, last, int64(len(list)))
	return payloads(list[from : from+n])
}

// at is the element at a position, nil if there is none.
func (s *Server) at(c call) *packet {
	list := s.line(c.name, true)
	if len(list) == 0 {
		return nil
	}
	i := number(c.words[2])
	if i < 0 {
		i += int64(len(list))
	}
	if i < 0 || i >= int64(len(list)) {
		return nil
	}
	return list[i]
}

func lindex(s *Server, c call) any {
	if p := s.at(c); p != nil {
		return p.payload
	}
	return nil
}

func lset(s *Server, c call) any {
	p := s.at(c)
	if p == nil {
		return Err("ERR")
	}
	if no := s.stores(); no != nil {
		return no
	}
	fresh := &packet{
		id: p.pos, pos: p.pos, queue: p.queue, payload: c.words[3], prio: p.prio, enqueued: s.now, expiry: p.expiry, state: ready,
	}
	_, bytes := s.fill(c.name, p, []*packet{fresh})
	switch more := fresh.size() - p.size(); {
	case more > 0 && s.settings(c.name).over(0, more):
		return Err("ERR")
	case more > 0 && (s.settings(c.name).over(0, bytes) || s.firstToPush(c.name) != nil):
		return Err("FULL")
	}
	s.touch(c.name)
	*p = *fresh
	return "OK"
}

// equal are the positions of elements that are a value.
func equal(list []*packet, v string) (at []int) {
	for i, p := range list {
		if p.payload == v && p.key == nil {
			at = append(at, i)
		}
	}
	return at
}

// linsert moves the elements of the shorter side that have the priority of the new one.
func linsert(s *Server, c call) any {
	if c.words[2] != "BEFORE" && c.words[2] != "AFTER" {
		return Err("ERR")
	}
	list := s.line(c.name, true)
	found := equal(list, c.words[3])
	switch {
	case len(list) == 0:
		return int64(0)
	case len(found) == 0:
		return int64(-1)
	}
	if no := s.stores(); no != nil {
		return no
	}
	at := found[0]
	if c.words[2] == "AFTER" {
		at++
	}
	p := &packet{queue: c.name, payload: c.words[4], prio: list[min(at, len(list)-1)].prio, enqueued: s.now, state: ready}
	if no := s.admits(c.name, p); no != nil {
		return no
	}
	left := len(list)-at >= at
	moved := slices.Clone(list[at:])
	if left {
		moved = slices.Clone(list[:at])
		slices.Reverse(moved)
	}
	s.insert(p, left)
	for _, o := range moved {
		if o.prio != p.prio {
			break
		}
		o.pos = s.place(left)
	}
	return int64(len(list) + 1)
}

func lrem(s *Server, c call) any {
	most, list := number(c.words[2]), s.line(c.name, true)
	if most < 0 {
		slices.Reverse(list)
		most = -max(most, -1<<62)
	}
	found := equal(list, c.words[3])
	if most > 0 {
		found = found[:min(most, int64(len(found)))]
	}
	if no := s.takes(); no != nil && len(found) > 0 {
		return no
	}
	for _, i := range found {
		s.touch(c.name)
		s.remove(list[i])
	}
	return int64(len(found))
}

func ltrim(s *Server, c call) any {
	first, last := number(c.words[2]), number(c.words[3])
	list := s.line(c.name, true)
	if no := s.takes(); no != nil && len(list) > 0 {
		return no
	}
	from, n := extent(first, last, int64(len(list)))
	for _, p := range slices.Delete(list, int(from), int(from+n)) {
		s.touch(c.name)
		s.remove(p)
	}
	return "OK"
}

func lpos(s *Server, c call) any {
	rank, count, most := int64(1), int64(-1), int64(0)
	for at := 3; at < len(c.words); at += 2 {
		if at+1 == len(c.words) {
			return Err("ERR")
		}
		n := number(c.words[at+1])
		switch c.words[at] {
		case "RANK":
			rank = n
		case "COUNT":
			count = max(n, -2)
		case "MAXLEN":
			most = n
		default:
			return Err("ERR")
		}
	}
	if rank == 0 || count == -2 || count == -1 && slices.Contains(c.words[3:], "COUNT") || most < 0 {
		return Err("ERR")
	}
	list := s.line(c.name, true)
	right := rank < 0
	if right {
		slices.Reverse(list)
		rank = -max(rank, -1<<62)
	}
	all := []any{}
	for i, at := range equal(list, c.words[2]) {
		if int64(i+1) < rank || most > 0 && int64(at) >= most || count > 0 && int64(len(all)) == count {
			continue
		}
		if right {
			at = len(list) - 1 - at
		}
		all = append(all, int64(at))
	}
	switch {
	case count >= 0:
		return all
	case len(all) > 0:
		return all[0]
	}
	return nil
}
