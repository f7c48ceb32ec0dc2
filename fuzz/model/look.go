package model

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// fields are those of a packet in a reply.
func (s *Server) fields(p *packet) Map {
	f := Map{
		"id": fmt.Sprint(p.id), "queue": p.queue[1:], "payload": p.payload, "priority": p.prio,
		"enqueued": p.enqueued, "state": p.state.String(),
	}
	number := func(name string, n int64) {
		if n != 0 {
			f[name] = n
		}
	}
	text := func(name, s string) {
		if s != "" {
			f[name] = s
		}
	}
	number("attempt", p.attempts)
	number("lease", p.lease)
	number("expires", p.expiry)
	text("consumer", p.consumer)
	text("reason", p.reason)
	if name := s.nameOf(p.origin); name != "" {
		text("origin", name[1:])
	}
	text("unique", p.unique)
	text("producer", p.producer)
	text("meta", p.meta)
	if p.progress > 0 {
		f["progress"] = p.progress - 1
		text("progress-text", p.progressText)
	}
	if p.key != nil {
		f["key"] = *p.key
	}
	if len(p.tags) > 0 {
		f["tags"] = p.tags
	}
	switch p.state {
	case delayed:
		number("not-before", p.until)
	case dead:
		number("died", p.until)
	case claimed:
		number("token", p.token)
		number("lease-end", s.leaseEnd(p))
		if p.cancelled {
			f["cancelled"] = int64(1)
		}
		return f
	}
	text("last-error-class", errorClass(p.reason))
	return f
}

// leaseEnd is when a lease ends, on the wall clock.
func (s *Server) leaseEnd(p *packet) int64 { return p.leaseEnd - s.steady + s.now }

// errorClass is the kind of error that a reason tells of.
func errorClass(reason string) string {
	if strings.HasPrefix(reason, "dead at attempt ") {
		_, reason, _ = strings.Cut(reason, ": ")
	}
	reason, _, _ = strings.Cut(reason, ":")
	reason = strings.TrimSpace(reason)
	return strings.TrimSpace(reason[:min(len(reason), 64)])
}

func qlist(s *Server, c call) any {
	s.checkFilter(c, c.name)
	states := []state{ready, delayed, claimed, dead, done}
	if of := c.options["STATE"]; of != "" {
		states = slices.DeleteFunc(states, func(t state) bool { return t.String() != of })
	}
	all, most, next := []any{}, int(c.number("COUNT", 10)), any("0")
	for _, p := range s.byShares(c.name, s.in(c.name, states...)) {
		if s.accepts(c, p) {
			all = append(all, s.fields(p))
		}
	}
	if len(all) >= most || len(c.filters) > 0 {
		all, next = all[:min(most, len(all))], Any{}
	}
	return []any{next, all}
}

func qpeek(s *Server, c call) any {
	all := []any{}
	for _, p := range s.selects(c.name, choice{most: int(c.number("COUNT", 10)), claims: true, plain: true, accepts: func(*packet) bool { return true }}) {
		all = append(all, s.fields(p))
	}
	return all
}

func qshow(s *Server, c call) any {
	number(c.words[2])
	if !s.exists(c.name) {
		return Err("NOQUEUE")
	}
	p := s.find(c.name, c.words[2])
	if p == nil {
		return nil
	}
	f := s.fields(p)
	if p.first != 0 {
		f["first-claim"], f["last-claim"] = p.first, p.last
	}
	if p.state == ready && p.prio > 0 {
		f["behind"] = s.behind(p)
	}
	f["why"] = s.why(p)
	return f
}

// why says why a packet is not delivered now.
func (s *Server) why(p *packet) any {
	switch p.state {
	case delayed:
		return "delayed until " + moment(p.until)
	case claimed:
		text, end := fmt.Sprintf("claimed by %q until ", p.consumer), s.leaseEnd(p)
		if text += moment(end); p.cancelled {
			text += "; it was cancelled, and is gone when the claim ends"
		} else if p.expiry != 0 && p.expiry <= end {
			text += "; then it is gone, because it expires before: " + moment(p.expiry)
		}
		return text
	case dead:
		text := "dead after " + counted(int(p.attempts), "attempt")
		if p.reason != "" {
			text += ", because: " + p.reason
		}
		if keep := s.settings(p.queue).retainDead; keep > 0 {
			text += "; it stays until " + moment(p.until+keep)
		}
		return text
	case done:
		return fmt.Sprintf("done: %q acknowledged it; it stays until %s", p.consumer, moment(p.expiry))
	}
	q := s.queues[p.queue]
	share, behind := q.shareOf(p), s.behind(p)
	called := "share " + share + " "
	if share == "" {
		called = "the empty share "
	}
	ahead := OneOf{}
	for _, o := range s.aheadOf(p) {
		ahead = append(ahead, fmt.Sprintf("waits for packet %d of its key", o.id))
	}
	switch held, _ := s.held(p.queue, share, called); {
	case p.prio == 0:
		return "of priority 0: it is delivered only together with another packet of its key"
	case s.settings(p.queue).pauseOut:
		return "the queue is paused: it gives nothing until pause-out is off"
	case len(ahead) > 0:
		return ahead
	case held != nil:
		return held
	case behind > 0:
		return "behind " + counted(int(behind), "other packet")
	}
	return "next in line"
}

// behind is how many packets of its share are before one.
func (s *Server) behind(p *packet) int64 {
	q := s.queues[p.queue]
	others := slices.DeleteFunc(s.line(p.queue, false), func(o *packet) bool { return q.shareOf(o) != q.shareOf(p) })
	return int64(slices.Index(others, p))
}

func moment(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }

func counted(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

func qlen(s *Server, c call) any { return int64(len(s.in(c.name, ready, delayed, claimed))) }

func qstat(s *Server, c call) any {
	if !s.exists(c.name) {
		return Err("NOQUEUE")
	}
	flag := map[bool]int64{true: 1}
	f, bytes, strays := Some{}, int64(0), int64(0)
	for t := ready; t <= done; t++ {
		f[t.String()] = int64(len(s.in(c.name, t)))
	}
	for _, p := range s.all(c.name) {
		bytes += p.size()
		if p.origin != 0 && p.state != done {
			strays++
		}
	}
	q := s.settings(c.name)
	f["ready"] = int64(len(s.line(c.name, false)))
	f["hidden"] = int64(len(s.in(c.name, ready))) - f["ready"].(int64)
	f["bytes"], f["died-elsewhere"], f["damaged"] = bytes, strays, int64(0)
	f["paused-in"], f["paused-out"] = flag[q.pauseIn], flag[q.pauseOut]
	f["closed"] = flag[q.closed]
	s.limits(c.name, f)
	for n, name := range totals {
		switch q := s.queues[c.name]; {
		case q == nil || !q.own: // what was counted goes with the queue
		case q.atMost:
			f[name] = AtMost(q.counters[n])
		default:
			f[name] = q.counters[n]
		}
	}
	return f
}

func qget(s *Server, c call) any {
	if !s.exists(c.name) {
		return Err("NOQUEUE")
	}
	q, own := s.settings(c.name), map[bool]string{true: "yes", false: "no"}
	return Some{
		"lease": q.lease, "max-attempts": q.maxAttempts, "backoff-min": q.backoffMin, "backoff-max": q.backoffMax,
		"dead-letter": q.deadLetter, "retain": q.retain, "retain-dead": q.retainDead,
		"pause-in": own[q.pauseIn], "pause-out": own[q.pauseOut], "pause-in-until": q.pauseInUntil, "pause-out-until": q.pauseUntil,
		"bound": q.bound, "bound-bytes": q.boundBytes, "full": q.full, "closed": own[q.closed],
		"share-by": q.shareBy, "rate": q.rate, "share-rate": q.shareRate, "rate-burst": q.rateBurst, "max-claimed": q.maxClaimed, "share-max-claimed": q.shareMax,
		"bound-share": q.boundShare, "strict": own[q.strict], "on-dead": q.onDead,
		"own": own[s.queues[c.name] != nil && s.queues[c.name].own],
	}
}

// Claim names a claim.
type Claim struct{ Queue, ID, Token string }

// Claims are those that last.
func (s *Server) Claims() (all []Claim) {
	for _, p := range s.packets {
		if p.state == claimed && !p.over {
			all = append(all, Claim{p.queue, fmt.Sprint(p.id), fmt.Sprint(p.token)})
		}
	}
	return all
}

// IDs are those of the packets of a queue.
func (s *Server) IDs(queue string) (all []string) {
	for _, p := range s.all(queue) {
		all = append(all, fmt.Sprint(p.id))
	}
	return all
}

// Holds are the packets of a queue. With false are those that are done.
func (s *Server) Holds(queue string) map[int64]bool {
	all := map[int64]bool{}
	for _, p := range s.all(queue) {
		all[p.id] = p.state != done
	}
	return all
}
