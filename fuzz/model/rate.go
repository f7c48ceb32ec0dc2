package model

import (
	"maps"
	"strconv"
	"strings"
)

// A rate is a moment at which the next take is due (GCRA). Each take moves that on, from now at the
// earliest. So takes come evenly, with a burst on top. Moments are nanoseconds of the steady clock.

const (
	milli = 1_000_000
	early = 10 * milli // a take may be
	slow  = 10_000 * milli
)

// gate is what a rate lets pass.
type gate struct{ due, gap, burst int64 }

// gapOf is how far apart takes are by a rate.
func gapOf(rate string) int64 {
	n, period, _ := strings.Cut(rate, "/")
	if rate == none {
		return 0
	}
	takes, _ := strconv.ParseInt(n, 10, 64)
	unit := strings.TrimLeft(period, "0123456789")
	units, _ := strconv.ParseInt(strings.TrimSuffix(period, unit), 10, 64)
	units *= map[string]int64{"ms": milli, "s": 1000 * milli, "m": 60_000 * milli, "h": 3_600_000 * milli, "d": 86_400_000 * milli}[unit]
	if takes <= 0 || (units+takes-1)/takes < 1000 || (units+takes-1)/takes > 31*86_400_000*milli {
		panic(Err("ERR"))
	}
	return (units + takes - 1) / takes
}

func (g gate) opens() int64 { return g.due - (g.burst-1)*g.gap - early }

func (g gate) lets(now int64) bool { return g.gap == 0 || g.opens() <= now }

// wait is for how many milliseconds it lets nothing pass.
func (g gate) wait(now int64) int64 { return up(g.opens()) - now/milli }

func up(moment int64) int64 { return (moment + milli - 1) / milli }

func (g *gate) charge(n, now int64) {
	if g.gap > 0 {
		g.due = max(g.due, now) + n*g.gap
	}
}

// follow has it go by another rate: as many takes are ahead as were, and not more than come at
// once.
func (g *gate) follow(rate string, burst, now int64) {
	was := *g
	g.gap, g.burst = gapOf(rate), max(1, burst)
	if *g == was || g.due <= now {
		return
	}
	ahead := float64(g.due - now)
	if was.gap > 0 {
		ahead = ahead / float64(was.gap) * float64(g.gap)
	}
	g.due = now + int64(min(ahead, float64(g.burst*g.gap)))
}

// spend has it let one pass at a moment, and none before.
func (g *gate) spend(at int64) { g.due = at + (g.burst-1)*g.gap + early }

// begin is a start: slow ones go on, and others have their burst spent at the end of the server.
func (g *gate) begin(kept, ended int64) {
	due := kept * milli
	if g.gap < slow {
		g.spend(ended*milli + g.gap)
		due = max(due, g.due)
	}
	g.due = due
}

// kept is a moment as the disk has it.
type kept struct{ wall, steady int64 }

// keeps is what the disk has of the moments of a queue: a start goes on with them.
type keeps struct {
	due, from kept
	dues      map[string]kept // of shares
	rests     map[string]kept
}

func (s *Server) written(wall int64) kept {
	if wall == 0 {
		return kept{}
	}
	return kept{wall, wall - s.now + s.steady}
}

// Kept says with what moments a queue is written: when its next take is due, and from when on its
// shares give again.
func (s *Server) Kept(queue string, due, from int64) {
	if q := s.queues[queue]; q != nil {
		q.keeps.due, q.keeps.from = s.written(due), s.written(from)
	}
}

// KeptShare says with what moments a share is written.
func (s *Server) KeptShare(queue, name string, due, rest int64) {
	q := s.queues[queue]
	if q == nil {
		return
	}
	if q.keeps.dues == nil {
		q.keeps.dues, q.keeps.rests = map[string]kept{}, map[string]kept{}
	}
	q.keeps.dues[name], q.keeps.rests[name] = s.written(due), s.written(rest)
}

// Unkept says what is written wrongly of what a start has to know, "" if nothing is.
func (s *Server) Unkept() string {
	now := s.steady * milli
	lacks := func(g gate, k kept) bool { return g.gap >= slow && g.due > now+early && k.steady != up(g.due) }
	for name, q := range s.queues {
		switch {
		case !q.own:
			continue
		case lacks(q.gate, q.keeps.due):
			return "the due of " + name
		case q.fromUnknown && q.keeps.from.wall != 0:
			return "from when on shares give of " + name
		}
		for share, o := range q.shares {
			if o.rest != q.keeps.rests[share].steady && q.shareBy != none || o.rate != none && q.shareBy != none && lacks(q.live[share].gate, q.keeps.dues[share]) {
				return "the due or rest of share " + share + " of " + name
			}
		}
	}
	return ""
}

// Spent is a start of rates and rests, of which the last batch is of a moment. If the clock is
// behind that, nothing waits longer than it did.
func (s *Server) Spent(time int64) {
	waits := func(k *kept) int64 {
		if k.steady = k.wall; time > s.now && k.wall > s.now {
			k.steady = max(s.now, k.wall-time+s.now)
		}
		return k.steady
	}
	ended := min(time, s.now)
	s.steady = s.now
	for name, q := range s.queues {
		q.turns, q.gate = turns{}, gate{}
		due, from := waits(&q.keeps.due), waits(&q.keeps.from)
		if q.gate.follow(q.rate, q.rateBurst, 0); q.rules() {
			q.gate.begin(due, ended)
		}
		q.shares, q.keeps.dues, q.keeps.rests = maps.Clone(q.shares), maps.Clone(q.keeps.dues), maps.Clone(q.keeps.rests)
		if q.keeps.dues == nil {
			q.keeps.dues, q.keeps.rests = map[string]kept{}, map[string]kept{}
		}
		for share, o := range q.shares {
			due, rest := q.keeps.dues[share], q.keeps.rests[share]
			_, o.rest = waits(&due), waits(&rest)
			q.shares[share], q.keeps.dues[share], q.keeps.rests[share] = o, due, rest
		}
		if q.shareBy == none {
			q.endRests()
			continue
		}
		if q.begins.follow(q.shareRate, q.rateBurst, 0); q.rules() || len(q.shares) > 0 {
			q.spendShares(from, ended)
		}
		q.live = map[string]turn{"": {gate: q.begins, pass: oneTurn, at: 1}}
		q.settle(s, name)
		for share, o := range q.shares {
			t, there := q.live[share]
			if !there && (o.rate != none || o.rest > 0) {
				t, there = q.comes(share), true
				t.at = 1 // as all that a start finds
			}
			if o.rate != none {
				t.gate = gate{}
				t.gate.follow(o.rate, q.rateBurst, 0)
				t.gate.begin(q.keeps.dues[share].steady, ended)
			}
			if there {
				q.live[share] = t
			}
		}
	}
}

// spendShares is a start of the rate of shares. That of a slow one has one moment.
func (q *queue) spendShares(from, ended int64) {
	latest := ended + up(q.begins.gap)
	if q.from = from; from == 0 || from > latest {
		q.from = latest
	}
	if q.begins.spend(q.from * milli); q.begins.gap < slow {
		q.from = 0
		q.begins.begin(up(q.begins.due), ended)
	}
}
