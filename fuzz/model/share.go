package model

import (
	"cmp"
	"maps"
)

// none is the value of settings that say nothing.
const none = "no"

// share is what a share of a queue has of its own: it lasts.
type share struct {
	weight, maxClaimed int64
	rate               string
	rest               int64  // until when it rests, on the steady clock; 0: it does not
	by                 string // who said so; "": an operator
}

// turns are those of the shares of a queue. Its clock is the pass of the share that was served
// last.
type turns struct {
	begins      gate // of a share that comes, and has no rate of its own
	clock       int64
	served      int64
	live        map[string]turn // shares that have packets, rest, or wait for their rate
	from        int64           // when shares give again by a slow rate, after a start
	fromUnknown bool            // the next start says it
}

// ownOf is what a share has of its own.
func (q *queue) ownOf(name string) share {
	if o, has := q.shares[name]; has {
		return o
	}
	return share{weight: 1, rate: none}
}

// shareOf is the share of a packet.
func (q *queue) shareOf(p *packet) (name string) {
	switch {
	case q.shareBy == "key" && p.key != nil:
		name = *p.key
	case q.shareBy != "key" && q.shareBy != none:
		name, _ = p.tags[q.shareBy[len("tag:"):]].(string)
	}
	if len(name) > 255 {
		return ""
	}
	return name
}

// rules says that a queue has any, so that it had rates before it gets one.
func (q *queue) rules() bool {
	return q.maxClaimed+q.shareMax+q.rateBurst+q.retainDead > 0 || q.rate != none || q.shareRate != none || q.strict
}

// reshape has a queue follow settings that have changed.
func (q *queue) reshape(s *Server, name string, was settings) {
	now := s.steady * milli
	if q.gate.follow(q.rate, q.rateBurst, now); !q.rules() {
		q.gate = gate{}
	}
	if q.shareRate != was.shareRate || q.rateBurst != was.rateBurst {
		q.from, q.fromUnknown = 0, true
	}
	q.begins.follow(q.shareRate, q.rateBurst, now)
	switch {
	case q.shareBy == none && was.shareBy != none:
		q.turns = turns{fromUnknown: true}
		q.endRests()
	case q.shareBy != none && was.shareBy == none:
		own := q.shares
		q.shares, q.live, q.served = nil, map[string]turn{"": {gate: q.begins, pass: oneTurn, at: 1}}, 1
		q.settle(s, name)
		q.shares = own
	case q.shareBy != was.shareBy:
		q.settle(s, name)
	}
	for name, t := range q.live {
		rate := q.ownOf(name).rate
		if rate == none {
			rate = q.shareRate
		}
		t.follow(rate, q.rateBurst, now)
		q.live[name] = t
	}
}

// endRests ends those of a queue without shares.
func (q *queue) endRests() {
	for name, o := range q.shares {
		o.rest, o.by = 0, ""
		q.keep(name, o)
		if k, written := q.keeps.rests[name]; written {
			k.steady = 0 // Work writes that later: until then a start may find it
			q.keeps.rests[name] = k
		}
	}
}

// keep notes what a share has of its own. Copies of the queue have what was.
func (q *queue) keep(name string, o share) {
	if q.shares = maps.Clone(q.shares); q.shares == nil {
		q.shares = map[string]share{}
	}
	if q.shares[name] = o; o == (share{weight: 1, rate: none}) {
		delete(q.shares, name)
	}
}

func qshare(s *Server, c call) any {
	if len(c.options) == 0 {
		return Err("ERR")
	}
	rate, rated := c.options["RATE"]
	if rated {
		rate = cmp.Or(rate, none)
		gapOf(rate)
	}
	if no := s.stores(); no != nil {
		return no
	}
	within(int64(len(c.words[2])), 0, 255)
	name, was, there := c.words[2], share{weight: 1, rate: none}, false
	if q := s.queues[c.name]; q != nil && q.own {
		was = q.ownOf(name)
		_, there = q.shares[name]
	}
	o := was
	if c.has("RESET") {
		o = share{weight: 1, rate: none}
	}
	if o.weight, o.maxClaimed = c.number("WEIGHT", o.weight), c.number("MAX-CLAIMED", o.maxClaimed); rated {
		o.rate = rate
	}
	if c.has("HOLD") {
		o.rest, o.by = s.steady+c.number("HOLD", 0), ""
	}
	if o.rest <= s.steady {
		o.rest, o.by = 0, ""
	}
	if o == (share{weight: 1, rate: none}) && !there {
		return "OK"
	}
	s.own(c.name, s.settings(c.name))
	s.setShare(s.queues[c.name], name, o)
	return "OK"
}

// setShare gives a share something of its own.
func (s *Server) setShare(q *queue, name string, o share) {
	was, now := q.ownOf(name), s.steady*milli
	if q.shareBy == none { // nobody would tell its end
		o.rest, o.by = 0, ""
	}
	if was.rate != none && o.rate == none {
		q.from, q.fromUnknown = 0, true
	}
	t, there := q.live[name]
	if !there && q.shareBy != none && (o.rest > 0 || was.rate == none && q.begins.due > now) { // it is there to tell when that is over
		t, there = q.comes(name), true
		t.pass = q.clock + oneTurn/o.weight
		q.served++
	}
	if q.keep(name, o); !there {
		return
	}
	rate := o.rate
	if rate == none {
		rate = q.shareRate
	}
	t.follow(rate, q.rateBurst, now)
	q.live[name] = t
}

// rest has the share of a packet rest, or its queue if that has no shares, if it does not for
// longer.
func (s *Server) rest(p *packet, ms int64) {
	q := s.queues[p.queue]
	if o := q.ownOf(q.shareOf(p)); q.shareBy != none {
		if o.rest < s.steady+ms {
			o.rest, o.by = s.steady+ms, p.consumer
			s.setShare(q, q.shareOf(p), o)
		}
		return
	}
	of := s.settings(p.queue)
	if !of.pauseOut || of.pauseUntil != 0 && of.pauseUntil <= s.now+ms {
		of.pauseOut, of.pauseUntil = true, s.now+ms
		s.own(p.queue, of)
	}
}

// endWaits ends the rests that are over.
func (q *queue) endWaits(s *Server) {
	for name, o := range q.shares {
		if o.rest != 0 && o.rest <= s.steady {
			o.rest, o.by = 0, ""
			q.keep(name, o)
		}
	}
}

// cost counts what claims have cost, or says that it is too much.
func (s *Server) cost(claims []*packet, n int64, count bool) any {
	wait := int64(0)
	for _, p := range claims {
		q := s.queues[p.queue]
		if share := q.shareOf(p); count {
			q.gate.charge(n-1, s.steady*milli)
			if q.shareBy != none && n > 1 {
				q.charge(share, n-1, s.steady*milli)
			}
		} else if wait += (n - 1) * (max(q.gap, q.live[share].gap) / milli); wait > 365*86_400_000 {
			return Err("ERR")
		}
	}
	return nil
}
