package crash

import (
	"fmt"
	"slices"
)

// latest is a queue that one client has alone. Its pushes have one unique id until a claim, and
// replace what waits. After a crash it must be as after some of the requests: all that were
// answered, and a first part of the others. So a replaced packet has a whole payload, the old or
// the new one; and one that was claimed has no id.
type latest struct {
	queue string
	there []latestPacket // after all requests that were answered, in the order of delivery
	sent  []latestOp     // without a reply
	ended bool           // its client has another one
	lost  bool           // requests may be carried out in any order, or not
}

type latestPacket struct {
	payload ID
	name    string // empty: not known yet
	token   int64
	claimed bool
	hasID   bool
}

// latestOp is a push of a payload; or by the name of a packet its ack or its return; or a claim.
type latestOp struct {
	payload ID
	name    string
	ack     bool
}

// after returns the packets after a request, and which of them that was about: -1 for none.
func (op latestOp) after(there []latestPacket) (then []latestPacket, about int) {
	then = slices.Clone(there)
	about = slices.IndexFunc(then, func(p latestPacket) bool {
		if op.payload != 0 {
			return p.hasID
		}
		return p.name == op.name && op.name != "" || op.name == "" && !p.claimed
	})
	switch {
	case op.payload != 0 && about < 0:
		return append(then, latestPacket{payload: op.payload, hasID: true}), about
	case op.payload != 0:
		then[about].payload = op.payload
	case about < 0:
	case op.ack:
		return slices.Delete(then, about, about+1), about
	default:
		then[about].claimed, then[about].hasID = op.name == "", false
	}
	return then, about
}

const (
	latestLease = 3_600_000 // longer than any run
	mostLatest  = 4         // packets of such a queue
)

// useLatest adds a request for the client's own queue.
func (c *taskClient) useLatest() {
	t := c.r.tasks
	t.mu.Lock()
	if c.latest == nil || c.latest.ended {
		c.latest = &latest{queue: fmt.Sprintf("latest-%d-%d", c.number, len(t.latest))}
		t.latest = append(t.latest, c.latest)
	}
	t.mu.Unlock()
	l, op, args := c.latest, latestOp{}, []string(nil)
	held := slices.IndexFunc(l.there, func(p latestPacket) bool {
		return p.claimed && !slices.ContainsFunc(l.sent, func(op latestOp) bool { return op.name == p.name })
	})
	switch n := c.rng.IntN(10); {
	case n < 3 && held >= 0:
		p := l.there[held]
		if op.name, op.ack = p.name, n > 0; op.ack {
			args = []string{"QACK", l.queue, p.name, decimal(p.token)}
		} else {
			args = []string{"QNACK", l.queue, p.name, decimal(p.token), "UNCOUNTED", "DELAY", "0"}
		}
	case n < 8 && len(l.there)+len(l.sent) < mostLatest:
		c.pushes++
		op.payload = ID(c.pushes)
		payload := string(appendPayload(nil, op.payload, payloadHeader+c.rng.IntN(2500)))
		args = []string{"QPUSH", l.queue, payload, "UNIQUE", "one", "UNTIL", "claim", "REPLACE", "TELL"}
	default:
		args = []string{"QCLAIM", l.queue, "LEASE", decimal(latestLease)}
	}
	l.sent = append(l.sent, op)
	c.add(taskOp{args: args, answer: func(reply any) {
		l.sent = l.sent[1:]
		before := l.there
		then, about := op.after(before)
		if l.there = then; !op.fits(then, before, about, reply) {
			c.r.report(Order, "%s has %+v, and the reply to %s is %.300q", l.queue, before, briefCommands(one(args...)), reply)
		}
	}})
}

// fits says that a reply is what a request gets. It enters the names and tokens that it tells.
func (op latestOp) fits(then, before []latestPacket, about int, reply any) bool {
	list, _ := reply.([]any)
	switch {
	case op.ack:
		return reply == int64(1)
	case op.name != "":
		return reply == "ready"
	case op.payload == 0 && about < 0:
		return len(list) == 0
	case op.payload == 0:
		shown, p := shownTasks(reply), &then[about]
		if len(shown) != 1 {
			return false
		}
		p.token = shown[0].token
		return p.isShown(&shown[0])
	case len(list) != 2:
		return false
	case about < 0:
		then[len(then)-1].name, _ = list[0].(string)
		return list[1] == "new"
	}
	return list[0] == before[about].name && list[1] == "replaced"
}

// isShown says that a packet is what a reply shows.
func (p *latestPacket) isShown(s *shownTask) bool {
	return s.whole && s.id == p.payload && (p.name == "" || s.name == p.name) && (s.unique != "") == p.hasID && (s.state == "claimed") == p.claimed
}

// checkLatest compares the clients' own queues after a restart. If all is true it then drops them.
func (r *run) checkLatest(link *link, all bool) error {
	for _, l := range r.tasks.latest {
		ask := one("QLIST", l.queue, "COUNT", decimal(atOnce))
		if l.ended = l.ended || all; all {
			ask = append(ask, []string{"DEL", l.queue})
		}
		replies, err := link.ask(ask)
		if err != nil {
			return err
		}
		v, _ := parseReply(replies[0])
		list, _ := v.([]any)
		if len(list) == 2 && !l.lost {
			r.compareLatest(l, shownTasks(list[1]))
		}
	}
	if all {
		r.tasks.latest = nil
	}
	return nil
}

// compareLatest goes on from what was found, if the requests explain it.
func (r *run) compareLatest(l *latest, shown []shownTask) {
	for there, n := l.there, 0; ; n++ {
		if found := named(there, shown); found != nil {
			l.there, l.sent = found, nil
			return
		}
		if n == len(l.sent) {
			break
		}
		there, _ = l.sent[n].after(there)
	}
	r.report(Lost, "%s has %+v after %+v and a part of %+v", l.queue, shown, l.there, l.sent)
}

// named returns packets with the names and tokens that a list shows, nil if it shows others.
func named(there []latestPacket, shown []shownTask) []latestPacket {
	found := append([]latestPacket{}, there...)
	for i := range found {
		at := slices.IndexFunc(shown, func(s shownTask) bool { return found[i].isShown(&s) })
		if at < 0 {
			return nil
		}
		found[i].name, found[i].token = shown[at].name, shown[at].token
	}
	if len(found) != len(shown) {
		return nil
	}
	return found
}
