package model

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// middle is the sequence of the packet 0.
const middle = math.MaxInt64 + 1

// Loaded is what a folder has into which a dump of a moment was loaded. Nothing is left of what was
// over by then, and a load counts as a start of all rates.
func (s *Server) Loaded(now int64) *Server {
	c := s.Clone()
	c.Restart(now, s.next, s.low, false)
	for name, q := range c.queues {
		if q.expiry != 0 && q.expiry <= now {
			delete(c.queues, name)
			c.packets = slices.DeleteFunc(c.packets, func(p *packet) bool { return p.queue == name })
			c.windows = slices.DeleteFunc(c.windows, func(w window) bool { return w.queue == name })
			continue
		}
		if q.keeps.due, q.keeps.from = (kept{}), (kept{}); q.keeps.dues != nil {
			q.keeps.dues = map[string]kept{}
		}
		if !q.own {
			q.shares = nil
		}
	}
	c.packets = slices.DeleteFunc(c.packets, func(p *packet) bool { return p.over })
	for _, p := range c.packets {
		if c.nameOf(p.origin) == "" { // a dump has the name
			p.origin = 0
		}
	}
	c.windows = slices.DeleteFunc(c.windows, func(w window) bool { return w.over })
	maps.DeleteFunc(c.values, func(_ string, v value) bool { return v.expiry != 0 && v.expiry <= now })
	return c
}

// Compacted has what is no longer there be gone. It says which packet may not be gone: one that had
// not expired five minutes before a moment, or any as long as one is claimed that has expired.
func (s *Server) Compacted(now int64, there map[int64]bool) string {
	c := s.Clone()
	c.Restart(now, s.next, s.low, false)
	held := slices.ContainsFunc(c.packets, func(p *packet) bool { return !p.over && p.expiry != 0 && p.expiry <= now })
	for _, p := range c.packets {
		switch {
		case there[p.id]:
		case held || !p.over || (p.expiry+999)/1000+300 > now/1000:
			return fmt.Sprint("packet ", p.id)
		default:
			s.packets = slices.DeleteFunc(s.packets, func(o *packet) bool { return o.id == p.id })
		}
	}
	return ""
}

// Outlived is a moment when a packet is claimed that has expired long before; 0: there is none.
func (s *Server) Outlived() (at int64) {
	for _, p := range s.packets {
		if last := p.until - 1; p.state == claimed && p.expiry != 0 && last > p.expiry+6*60_000 {
			at = max(at, last)
		}
	}
	return at
}

// Dumped is what a dump of the moment of the last start has: a line for each record, sorted.
func (s *Server) Dumped() (lines []string) {
	add := func(kind string, f Map) { f["type"] = kind; lines = append(lines, Line(f)) }
	for queue, q := range s.queues {
		if s.exists(queue) {
			add("queue", Map{"queue": queue, "expires": q.expiry, "settings": q.dumped()})
		}
		for name, o := range q.shares {
			if o.rest = q.keeps.rests[name].wall; o.rest <= s.now {
				o.rest, o.by = 0, ""
			}
			if q.own && o != (share{weight: 1, rate: none}) {
				add("share", Map{"queue": queue, "name": name, "weight": o.weight - flag(o.weight == 1), "max_claimed": o.maxClaimed, "rate": rateOf(o.rate), "until": o.rest, "consumer": o.by})
			}
		}
	}
	for _, w := range s.windows {
		add("window", Map{"queue": w.queue, "name": w.unique, "identity": sequence(w.id), "expires": w.until})
	}
	for _, p := range s.packets {
		add("packet", s.dumped(p))
	}
	for name, v := range s.values {
		if v.fields == nil {
			add("string", Map{"name": name, "value": v.text, "expires": v.expiry})
			continue
		}
		add("hash", Map{"name": name, "expires": v.expiry})
		for field, text := range v.fields {
			add("field", Map{"hash": name, "name": field, "value": text})
		}
	}
	slices.Sort(lines)
	return lines
}

func sequence(n int64) string { return fmt.Sprint(uint64(n) + middle) }

func rateOf(rate string) string { return strings.TrimSuffix(rate, none) }

// dumped is the record of a packet.
func (s *Server) dumped(p *packet) Map {
	f := Map{
		"queue": p.queue, "priority": fmt.Sprint("p", p.prio), "sequence": sequence(p.pos), "identity": sequence(p.id), "payload": p.payload,
		"expires": p.expiry, "state": p.state.String(), "attempts": p.attempts, "enqueued_at": p.enqueued, "producer": p.producer, "lease": p.lease,
		"meta": p.meta, "unique": p.unique, "first_claim": p.first, "last_claim": p.last, "consumer": p.consumer, "reason": p.reason, "cancelled": p.cancelled,
	}
	if name := s.nameOf(p.origin); name != "" {
		f["origin"] = name[1:]
	}
	if p.key != nil {
		f["key"] = "=" + *p.key
	}
	if len(p.tags) > 0 {
		f["tags"] = p.tags
	}
	if p.progress > 0 {
		f["progress"], f["progress_text"] = fmt.Sprint(p.progress-1, "%"), p.progressText
	}
	if p.unique != "" && p.untilClaim {
		f["unique_until"] = "claim"
	}
	switch {
	case p.state == claimed:
		f["token"], f["until"] = sequence(p.token), p.until
	case p.state == dead:
		f["until"] = p.until
	case p.state <= delayed && p.prio == 0:
		f["state"] = "unselectable"
	}
	return f
}

// dumped are the settings in a record, "" where there are none.
func (q *queue) dumped() any {
	if !q.own {
		return ""
	}
	f := Map{
		"lease": q.lease, "max_attempts": q.maxAttempts, "backoff_min": q.backoffMin, "backoff_max": q.backoffMax, "dead_letter": q.deadLetter,
		"retain": q.retain, "retain_dead": q.retainDead, "pause_in": q.pauseIn, "pause_out": q.pauseOut, "pause_in_until": q.pauseInUntil,
		"pause_out_until": q.pauseUntil, "bound": q.bound, "bound_bytes": q.boundBytes, "full": strings.TrimSuffix(q.full, "reject"), "closed": q.closed,
		"share_by": rateOf(q.shareBy), "rate": rateOf(q.rate), "share_rate": rateOf(q.shareRate), "max_claimed": q.maxClaimed,
		"share_max_claimed": q.shareMax, "bound_share": q.boundShare, "rate_burst": q.rateBurst, "strict": q.strict, "on_dead": strings.TrimSuffix(q.onDead, "go-on"),
	}
	orders := []any{}
	for _, tag := range slices.Sorted(maps.Keys(q.orders)) {
		order := []any{tag}
		for _, v := range q.orders[tag] {
			order = append(order, v)
		}
		orders = append(orders, order)
	}
	if len(orders) > 0 {
		f["enum"] = orders
	}
	return Line(f)
}

// Line is a record as a text, without what is 0, false or empty.
func Line(f Map) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(f)) {
		if text := fmt.Sprint(f[name]); text != "0" && text != "false" && text != "" {
			fmt.Fprintf(&b, "%s=%q ", name, text)
		}
	}
	return b.String()
}

// Has says that there is a queue.
func (s *Server) Has(queue string) bool { return s.exists(queue) }

// HasShares says that a queue has them.
func (s *Server) HasShares(queue string) bool { return s.settings(queue).shareBy != none }
