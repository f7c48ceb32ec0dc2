package model

import (
	"cmp"
	"maps"
	"slices"
)

// oneTurn is what a take adds to the pass of a share of weight 1.
const oneTurn = 1 << 32

// turn is where a share stands: next is that with the lowest pass, and of these the one that came
// or was served first. What came together comes in any order.
type turn struct {
	gate
	pass, at int64
}

// comes is a share that is new: as if just served.
func (q *queue) comes(name string) turn {
	o := q.ownOf(name)
	t := turn{q.begins, q.clock + oneTurn/o.weight, q.served + 1}
	if o.rate != none {
		t.gate = gate{}
		t.gate.follow(o.rate, q.rateBurst, 0)
	}
	return t
}

// settle has the shares be those of the packets, and others as long as they wait.
func (q *queue) settle(s *Server, name string) {
	has := map[string]bool{"": true}
	for _, p := range s.packets {
		if p.queue == name && !p.over {
			has[q.shareOf(p)] = true
		}
	}
	came := q.served
	for share := range has {
		if _, there := q.live[share]; !there {
			q.live[share] = q.comes(share)
			came = q.served + 1
		}
	}
	q.served = came
	for share, t := range q.live {
		if !has[share] && q.ownOf(share).rest <= s.steady && (t.gap == 0 || t.due <= s.steady*milli) {
			delete(q.live, share)
		}
	}
}

// take notes a take from a share.
func (q *queue) take(name string, now int64) {
	if q.gate.charge(1, now); q.shareBy == none {
		return
	}
	t := q.live[name]
	q.clock = max(q.clock, t.pass)
	q.served++
	t.pass, t.at = q.clock+oneTurn/q.ownOf(name).weight, q.served
	q.live[name] = t
	q.charge(name, 1, now)
}

// charge counts takes of a share.
func (q *queue) charge(name string, n, now int64) {
	t := q.live[name]
	t.gate.charge(n, now)
	if q.live[name] = t; t.gap >= slow && q.ownOf(name).rate == none && q.from*milli <= now {
		q.from, q.fromUnknown = 0, true
	}
}

// choice says which packets a take wants.
type choice struct {
	most                  int
	newest, claims, plain bool // plain: whatever limits hold back
	accepts               func(p *packet) bool
}

// selects are the packets that takes get, in their order.
func (s *Server) selects(name string, c choice) (list []*packet) {
	line := slices.DeleteFunc(s.firsts(name, s.line(name, c.newest)), func(p *packet) bool { return !c.accepts(p) })
	if len(line) == 0 {
		return nil
	}
	q := *s.queues[name] // as it will be
	q.live = maps.Clone(q.live)
	claims, now, shown := s.claimsOf(name), s.steady*milli, shown(s.reply)
	for len(list) < c.most {
		var best *packet
		seen := map[string]bool{}
		for _, p := range line {
			share := q.shareOf(p)
			if seen[share] || slices.Contains(list, p) {
				continue
			}
			seen[share] = true
			if held := q.stops(share, claims, now); !c.plain && (held == "rate" || held == "full" && c.claims) {
				continue
			}
			if best == nil || q.shareBy != none && q.before(p, best, claims, shown) {
				best = p
			}
		}
		if best == nil {
			break
		}
		share := q.shareOf(best)
		if q.take(share, now); c.claims {
			claims[share]++
			claims[ofQueue]++
		}
		list = append(list, best)
	}
	return list
}

// ofQueue is where claimsOf counts those of a whole queue. No share has this name.
var ofQueue = string(make([]byte, 256))

// claimsOf counts the claims of shares.
func (s *Server) claimsOf(name string) map[string]int64 {
	n := map[string]int64{}
	for _, p := range s.in(name, claimed) {
		n[s.queues[name].shareOf(p)]++
		n[ofQueue]++
	}
	return n
}

// maxOf is how many packets of a share may be claimed, 0 for any number.
func (q *queue) maxOf(share string) int64 {
	if q.shareBy == none {
		return 0
	}
	return cmp.Or(q.ownOf(share).maxClaimed, q.shareMax)
}

// stops says whether a rate or a rest keeps packets of a share from all takes, or a limit from
// claims.
func (q *queue) stops(share string, claims map[string]int64, now int64) string {
	of := func(n, most int64) bool { return most > 0 && n >= most }
	switch shared := q.shareBy != none; {
	case !q.gate.lets(now), shared && (q.ownOf(share).rest*milli > now || !q.live[share].lets(now)):
		return "rate"
	case of(claims[ofQueue], q.maxClaimed), of(claims[share], q.maxOf(share)):
		return "full"
	}
	return ""
}

// before says that the turn of a packet's share comes before that of another one. Of those that
// came together the one whose packet the server shows first does.
func (q *queue) before(p, o *packet, claims map[string]int64, shown []string) bool {
	a, b := q.shareOf(p), q.shareOf(o)
	x, y := q.live[a], q.live[b]
	held := cmp.Compare(claims[a]/q.ownOf(a).weight, claims[b]/q.ownOf(b).weight)
	return cmp.Or(held, cmp.Compare(x.pass, y.pass), cmp.Compare(x.at, y.at), cmp.Compare(place(shown, p), place(shown, o))) < 0
}

// Shown says what the server replies to the next command. The model goes by it where several orders
// are allowed.
func (s *Server) Shown(reply any) { s.reply = reply }

// shown are the ids of packets that a reply shows, or else the texts.
func shown(reply any) (all []string) {
	switch v := reply.(type) {
	case string:
		return []string{v}
	case []any:
		if id, is := Pairs(v)["id"].(string); is {
			return []string{id}
		}
		for _, part := range v {
			all = append(all, shown(part)...)
		}
	}
	return all
}

// place is where a packet is shown.
func place(shown []string, p *packet) int {
	if at := slices.IndexFunc(shown, func(v string) bool { return v == text(p.id) || v == p.payload || v == shownAs(p) }); at >= 0 {
		return at
	}
	return len(shown)
}

// byShares brings packets that are listed share by share into the order that is shown.
func (s *Server) byShares(name string, list []*packet) []*packet {
	q := s.queues[name]
	if q == nil || q.shareBy == none {
		return list
	}
	first, all := map[string]int{}, shown(s.reply)
	for _, p := range list {
		if p.state != ready || p.prio == 0 {
			continue
		}
		at, known := first[q.shareOf(p)]
		if at = min(at, place(all, p)); !known {
			at = place(all, p)
		}
		first[q.shareOf(p)] = at
	}
	slices.SortStableFunc(list, func(a, b *packet) int {
		if a.state != ready || b.state != ready || a.prio == 0 || b.prio == 0 {
			return cmp.Or(cmp.Compare(a.state, b.state), cmp.Compare(min(a.prio, 1), min(b.prio, 1))*int(flag(a.state == ready)))
		}
		return cmp.Or(cmp.Compare(first[q.shareOf(a)], first[q.shareOf(b)]), cmp.Compare(q.shareOf(a), q.shareOf(b)))
	})
	return list
}
