package model

import (
	"fmt"
	"slices"
)

// The rules of pinpriq are those of netproto/pinpriq/PROTOCOL.md. Its queues are of database 0.

// subscriber is what a server knows of a connection of pinpriq.
type subscriber struct {
	readies int64
	since   int64    // when it became ready, or had its last delivery
	queues  []string // that it subscribes to
}

// waitsFor stands in the line of Redis clients that wait: one without words is a subscriber.
func (o *conn) waitsFor() {
	if o.wait = nil; o.readies > 0 && len(o.queues) > 0 {
		o.wait = &waiting{names: o.queues, since: o.since}
	}
}

// ready has a subscriber wait behind all others, for one delivery more or less.
func (s *Server) ready(o *conn, by int64) {
	if o.readies += by; by < 0 || o.readies == 1 {
		s.waits++
		o.since = s.waits
	}
	o.waitsFor()
}

// connOf is what is known of a connection of a small protocol.
func (s *Server) connOf(client string) *conn {
	if s.conns[client] == nil {
		s.conns[client] = &conn{db: '0'}
	}
	return s.conns[client]
}

// Pinpriq carries out a request: its name, a queue, and of a push a priority, a time to live, a key
// and a payload. The reply is nil, packets as Shown, or an Err, which ends the connection.
func (s *Server) Pinpriq(client string, words []string) any {
	o, name, queue := s.connOf(client), words[0], "0"
	if len(words) > 1 {
		queue += words[1]
	}
	wrong := (name == "push" || name == "pop" || name == "subscribe") && s.kind(queue) != isNone && s.kind(queue) != isList
	switch at := slices.Index(o.queues, queue); {
	case name == "bad", wrong, s.room == Stuck:
		return Err("closed")
	case name == "push":
		return s.bringOne(client, &packet{queue: queue, prio: number(words[2]), key: new(words[4]), payload: words[5]}, number(words[3]))
	case name == "pop" && s.takes() != nil:
		return s.takes()
	case name == "pop":
		return s.takeAll(s.selected(queue))
	case name == "ready":
		s.ready(o, 1)
	case name == "subscribe" && at < 0:
		o.queues = append(slices.Clone(o.queues), queue)
	case name == "unsubscribe" && at >= 0:
		o.queues = slices.Delete(slices.Clone(o.queues), at, at+1)
	}
	o.waitsFor()
	return nil
}

// bringOne adds a packet that lives for so many milliseconds, 0 for ever, or says what refuses it.
func (s *Server) bringOne(client string, p *packet, ttl int64) any {
	if p.enqueued, p.state = s.now, ready; ttl > 0 {
		p.expiry = s.now + ttl
	}
	no := s.stores()
	if no == nil {
		no = s.makeRoom(call{conn: client, name: p.queue}, nil, p)
	}
	if no == nil {
		s.insert(p, true)
	}
	return no
}

// wide says that the lengths of a frame, of 16 bits, cannot say how long a packet is.
func wide(p *packet) bool { return len(p.payload) > 0xffff || p.key != nil && len(*p.key) > 0xffff }

// selected is what a pop takes: the newest of the best priority, and what has its key. What is wide
// stays.
func (s *Server) selected(queue string) []*packet {
	if s.settings(queue).pauseOut {
		return nil
	}
	list := s.selects(queue, choice{most: 1, newest: true, accepts: func(p *packet) bool { return !wide(p) }})
	if len(list) == 0 {
		return nil
	}
	return slices.DeleteFunc(s.group(list[0]), wide)
}

// takeAll takes packets for good, and shows them.
func (s *Server) takeAll(list []*packet) any {
	for _, p := range list {
		s.pop(p)
	}
	s.emptied()
	return shownAll(list)
}

func shownAll(list []*packet) any {
	all := []any{}
	for _, p := range list {
		all = append(all, shownAs(p))
	}
	return all
}

func shownAs(p *packet) string {
	if p.key == nil {
		return Shown("", p.payload)
	}
	return Shown(*p.key, p.payload)
}

// Shown is a packet in a reply or a delivery.
func Shown(key, payload string) string { return fmt.Sprintf("%q: %s", key, payload) }

// Delivered says what is wrong with a delivery to a subscriber, which takes its packets: the best
// of all its queues, if nobody has waited longer who takes it.
func (s *Server) Delivered(client string, got any) error {
	o := s.connOf(client)
	var best [][]*packet
	for _, queue := range o.queues {
		if list := s.selected(queue); len(list) > 0 {
			best = append(best, list)
		}
	}
	if o.wait == nil || len(best) == 0 || s.takes() != nil {
		return fmt.Errorf("it delivers %v, want nothing", got)
	}
	slices.SortFunc(best, func(a, b []*packet) int { return newestFirst(a[0], b[0]) })
	for name, k := range s.conns {
		if w := k.wait; w != nil && !w.push && w.since < o.since && slices.Contains(w.names, best[0][0].queue) && s.served(name, best[0][0].queue) {
			return fmt.Errorf("it delivers %v, and %s has waited longer", got, name)
		}
	}
	s.ready(o, -1)
	return Same(got, s.takeAll(best[0]))
}
