// Package model is a queue server in plain lines, for tests that hold a real one against it. It has
// one clock that its caller moves, keeps everything in slices and maps, and is as slow as it likes.
// Its rules are those of netproto/resp/COMMANDS.md. Commands for which it has none are a panic.
//
//	model.go   Server: its clock, its starts, its copies
//	learn.go   numbers that only a server of its own tells
//	packet.go  packets and their states
//	queue.go   settings and counters of queues
//	reply.go   replies, and whether two are the same
//	do.go      commands: which there are, and transactions
//	push.go    those that bring packets and take them
//	unique.go  unique pushes
//	names.go   what a name stands for, and until when
//	strings.go strings
//	hash.go    hashes
//	float.go   numbers with decimals
//	scan.go    scans, and patterns
//	list.go    lists
//	wait.go    who waits, and whose turn it is
//	share.go   shares of queues, and what they have of their own
//	turns.go   which share is next
//	held.go    what keeps packets from being taken, in words and figures
//	due.go     what happens by itself, and when
//	rate.go    rates, and what a start knows of them
//	strict.go  packets of a key one after the other
//	bound.go   queues that are full or closed
//	filter.go  tags, and who takes only some
//	fill.go    who waits for a whole batch
//	answer.go  those about claims, and about packets by their ids
//	bulk.go    those about many packets, and about one by its id
//	manage.go  those about queues
//	look.go    those that look
//	dump.go    dumps, and what a load and a compaction change
//	pinpriq.go pinpriq, with its subscribers
//	barbershop.go barbershop
package model

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Server is what a server should be.
type Server struct {
	now, steady int64 // the clock on the wall, and one that never jumps, in milliseconds
	next        int64 // the number of the next packet or claim
	room        Room
	packets     []*packet
	windows     []window
	values      map[string]value
	numbers     int64 // of queues
	low         int64 // the number of the next packet at the oldest end
	queues      map[string]*queue
	conns       map[string]*conn
	changes     int
	waits       int64 // how many commands have waited
	updates     int64 // that barbershop has accepted since the start
	reply       any   // of the server to the next command
}

// Stored is what a start at a moment would show, but for totals: some of them wait for a batch that
// something else needs.
func (s *Server) Stored(now int64) string {
	c := s.Clone()
	c.Restart(now, 0, 0, false)
	c.steady, c.room = 0, All
	c.packets = slices.DeleteFunc(c.packets, func(p *packet) bool { return p.over || p.goes != 0 && p.goes <= now })
	c.windows = slices.DeleteFunc(c.windows, func(w window) bool { return w.over })
	maps.DeleteFunc(c.values, func(_ string, v value) bool { return v.expiry != 0 && v.expiry <= now })
	for name, q := range c.queues {
		q.endPauses(now)
		q.endRests()
		q.gate, q.turns, q.keeps = gate{}, turns{}, keeps{}
		if q.counters, q.atMost = [counters]int64{}, false; !q.own {
			delete(c.queues, name)
		}
	}
	return c.Dump()
}

// Room says what a disk that is nearly full has a server refuse.
type Room int

// The rooms.
const (
	All    Room = iota // nothing
	NoPush             // what brings packets
	Stop               // what changes anything
	Stuck              // everything, and nothing that is due happens: a batch waits for room
)

// New makes a server without queues.
func New() *Server {
	return &Server{next: 1, low: -1, queues: map[string]*queue{}, values: map[string]value{}, conns: map[string]*conn{}}
}

// Clone copies a server.
func (s *Server) Clone() *Server {
	c := *s
	c.packets, c.queues, c.conns = slices.Clone(s.packets), maps.Clone(s.queues), maps.Clone(s.conns)
	c.windows, c.values = slices.Clone(s.windows), maps.Clone(s.values)
	for i, p := range c.packets {
		c.packets[i] = new(*p)
	}
	for name, q := range c.queues {
		f := new(*q)
		f.live, f.keeps.dues, f.keeps.rests = maps.Clone(q.live), maps.Clone(q.keeps.dues), maps.Clone(q.keeps.rests)
		c.queues[name] = f
	}
	for name, o := range c.conns {
		c.conns[name] = new(*o)
	}
	return &c
}

// Changes counts what commands changed.
func (s *Server) Changes() int { return s.changes }

// Next is the number of the next packet or claim.
func (s *Server) Next() int64 { return s.next }

// Low is that at the oldest end.
func (s *Server) Low() int64 { return s.low }

// At begins a turn at a moment of both clocks: what is due by then happens.
func (s *Server) At(now, steady int64, room Room) {
	s.now, s.steady, s.room = now, steady, room
	if room == Stuck {
		return
	}
	s.endWindows()
	s.endNames()
	for name, q := range s.queues {
		q.endWaits(s)
		if q.endPauses(now) {
			s.stir(name)
		}
		q.atMost = q.atMost || !s.exists(name) // it may be forgotten, with what was counted
	}
	for _, p := range slices.Clone(s.packets) {
		if !p.over {
			s.advance(p)
		}
	}
	for name, q := range s.queues { // dead packets follow a retain-dead that has changed, a turn later
		if q.redated {
			for _, p := range s.in(name, dead) {
				p.goes = s.kept(p)
			}
		}
		q.redated = false
	}
	s.emptied()
}

// advance does what is due for a packet.
func (s *Server) advance(p *packet) {
	due := p.state == claimed || p.expiry != 0 && p.expiry <= s.now || p.state == dead && p.goes != 0 && p.goes <= s.now || p.state == delayed && p.until <= s.now
	if p.state == claimed && p.leaseEnd > s.steady || !due {
		return
	}
	s.stir(p.queue)
	switch {
	case p.expiry != 0 && p.expiry <= s.now, p.state == dead && p.goes != 0 && p.goes <= s.now:
		if p.state != done {
			s.count(p.queue, expired)
		}
		s.remove(p)
	case p.state == delayed && p.until <= s.now:
		p.state = ready // until stays: it is what the disk has
	case p.cancelled:
		s.count(p.queue, cancelled)
		s.remove(p)
	default:
		reason := "lease ended"
		if p.consumer != "" {
			reason += ": " + p.consumer
		}
		if s.tooOften(p) {
			s.die(p, reason)
		} else {
			p.back(0, reason)
		}
	}
}

// Restart is a start at a moment, of what the disk has, with the next numbers of both ends.
// After a crash totals lack some of what was counted.
func (s *Server) Restart(now, next, low int64, crash bool) {
	s.now, s.next, s.low, s.conns, s.updates = now, next, low, map[string]*conn{}, 0
	for _, q := range s.queues {
		q.atMost, q.redated, q.stale = q.atMost || crash, false, false
	}
	for i := range s.windows {
		s.windows[i].over = s.windows[i].until <= now
	}
	for _, p := range s.packets {
		leased := p.state == claimed && p.until > now
		p.over = p.expiry != 0 && p.expiry <= now && !leased
		p.leaseEnd, p.goes = p.until, s.kept(p)
		if whole := p.until - p.last; p.state == claimed && whole > 0 && p.until-now > 2*whole {
			p.leaseEnd = now + whole // the clock is far behind
		}
		if p.state == ready || p.state == delayed {
			p.state = ready
			if p.until > now { // also where it was ready before the clock was put back
				p.state = delayed
			}
		}
	}
}

// Swept says that a packet is deleted of which a start has found that its time was over.
func (s *Server) Swept(id int64) {
	s.packets = slices.DeleteFunc(s.packets, func(p *packet) bool { return p.over && p.id == id })
}

// Over counts packets that are to be swept.
func (s *Server) Over() (n int) {
	for _, p := range s.packets {
		if p.over {
			n++
		}
	}
	return n
}

// Dump is all that there is, a line each.
func (s *Server) Dump() string {
	var b strings.Builder
	fmt.Fprintf(&b, "now %d, steady %d, next %d, room %d\n", s.now, s.steady, s.next, s.room)
	for _, name := range slices.Sorted(maps.Keys(s.queues)) {
		fmt.Fprintf(&b, "%s: %+v\n", name, *s.queues[name])
	}
	for _, p := range s.packets {
		f := s.fields(p)
		f["payload"] = p.payload[:min(len(p.payload), 20)]
		fmt.Fprintf(&b, "%v until %d, on the steady clock %d", f, p.until, p.leaseEnd)
		if p.over {
			fmt.Fprint(&b, ", over")
		}
		fmt.Fprintln(&b)
	}
	fmt.Fprintf(&b, "unique ids %v, values %v\n", s.windows, s.values)
	return b.String()
}
