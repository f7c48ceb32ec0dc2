package model

import (
	"fmt"
	"slices"
	"time"
)

// held says in words what keeps a share from claims, and for how long if that is known; nil if
// nothing does.
func (s *Server) held(name, share, called string) (why any, wait int64) {
	q, claims, now := s.queues[name], s.claimsOf(name), s.steady*milli
	rate := q.ownOf(share).rate
	if rate == none {
		rate = q.shareRate
	}
	waits := func(who, rate string, g gate) (any, int64) {
		return fmt.Sprintf("%swaits for the rate %s: the next is due in %v", who, rate, span(g.wait(now))), g.wait(now)
	}
	if t, there := q.live[share]; there {
		o, most := q.ownOf(share), q.maxOf(share)
		switch by := ""; {
		case o.rest > s.steady:
			if o.by != "" {
				by = fmt.Sprintf(", said by %q", o.by)
			}
			return fmt.Sprintf("%srests for %v%s", called, span(o.rest-s.steady), by), o.rest - s.steady
		case !t.lets(now):
			return waits(called, rate, t.gate)
		case most > 0 && claims[share] >= most:
			return fmt.Sprintf("%shas %d of %d claimed", called, claims[share], most), 0
		}
	}
	switch {
	case q.maxClaimed > 0 && claims[ofQueue] >= q.maxClaimed:
		return fmt.Sprintf("queue has %d of %d claimed", claims[ofQueue], q.maxClaimed), 0
	case !q.gate.lets(now):
		return waits("queue ", q.rate, q.gate)
	}
	return nil, 0
}

// span is a time for people.
func span(ms int64) time.Duration {
	d := time.Duration(ms) * time.Millisecond
	if d > time.Second {
		return d.Round(time.Second)
	}
	return d
}

// limitsClaims says that a queue has a limit of claims, so that a group may be too large.
func (q *queue) limitsClaims() bool {
	limited := q.shareMax > 0
	for _, o := range q.shares {
		limited = limited || o.maxClaimed > 0
	}
	return q.maxClaimed > 0 || q.shareBy != none && limited
}

// limits are the figures of a queue of what is held back.
func (s *Server) limits(name string, f Some) {
	q := s.queues[name]
	if q == nil {
		return
	}
	now, claims := s.steady*milli, s.claimsOf(name)
	firsts, full, waits := s.firsts(name, s.line(name, false)), int64(0), int64(0)
	seen := map[string]bool{"": q.shareBy == none}
	for _, p := range firsts {
		share := q.shareOf(p)
		if seen[share] {
			continue
		}
		seen[share] = true
		switch o := q.ownOf(share); {
		case o.rest > s.steady || !q.live[share].lets(now):
			waits++
		case q.maxOf(share) > 0 && claims[share] >= q.maxOf(share):
			full++
		}
	}
	f["at-limit"], f["shares-at-limit"], f["shares-not-due"] = flag(q.maxClaimed > 0 && claims[ofQueue] >= q.maxClaimed), full, waits
	f["packets-behind"] = int64(len(s.line(name, false)) - len(firsts))
}

func qshares(s *Server, c call) any {
	if !s.exists(c.name) {
		return Err("NOQUEUE")
	}
	q, rows := s.queues[c.name], Set{}
	names := map[string]bool{}
	for _, p := range s.all(c.name) {
		if share := q.shareOf(p); q.shareBy != none && (share != "" || p.state == claimed || p.state == ready && p.prio > 0) {
			names[share] = true
		}
	}
	for name := range q.shares {
		names[name] = true
	}
	for name := range names {
		o, n := q.ownOf(name), int64(0)
		for _, p := range s.line(c.name, false) {
			n += flag(q.shareBy != none && q.shareOf(p) == name)
		}
		f := Map{"name": name, "ready": n, "claimed": int64(0), "weight": o.weight}
		if q.shareBy != none {
			f["claimed"] = s.claimsOf(c.name)[name]
		}
		if n > 0 {
			f["age"] = Any{}
		}
		if o.maxClaimed > 0 {
			f["max-claimed"] = o.maxClaimed
		}
		if o.rate != none {
			f["rate"] = o.rate
		}
		if o.rest > s.steady {
			f["rests"] = o.rest - s.steady
		}
		s.holds(c.name, name, n, f)
		rows = append(rows, f)
	}
	if len(rows) >= int(c.number("COUNT", 100)) {
		return []any{Any{}, Any{}}
	}
	return []any{"0", rows}
}

// holds says what keeps a share from giving packets, and until when.
func (s *Server) holds(queue, name string, n int64, f Map) {
	q := s.queues[queue]
	_, there := q.live[name]
	switch why, wait := s.held(queue, name, ""); {
	case q.pauseOut:
		if f["why"] = "queue is paused"; q.pauseUntil != 0 {
			f["until"] = q.pauseUntil
		}
	case !there:
	case why != nil:
		if f["why"] = why; wait > 0 {
			f["until"] = s.now + wait
		}
	case n > 0 && !slices.ContainsFunc(s.firsts(queue, s.line(queue, false)), func(p *packet) bool { return q.shareOf(p) == name }):
		f["why"] = "waits for other packets of its keys"
	}
}
