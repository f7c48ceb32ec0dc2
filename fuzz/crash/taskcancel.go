package crash

import (
	"cmp"
	"slices"
)

// recalls is a queue whose packets end by QCANCEL alone. Clients push to it, claim from it, return
// what they have, and cancel whatever may be there.
const (
	recalls    = "recalls"
	mostRecall = 300 // packets that are not cancelled are enough
)

// recall is a packet of recalls. Its payload is its place among all of them.
type recall struct {
	name      string // the server's id; empty: not known
	asked     int    // cancels that were sent
	gone      int64  // when a reply came that said so; 0: none has
	cancelled int64  // when the first reply to one came
}

// recalled is a claim of a recall.
type recalled struct {
	of          *recall
	name, token string
}

// recall makes one request of recalls.
func (c *taskClient) recall() {
	t := c.r.tasks
	t.mu.Lock()
	defer t.mu.Unlock()
	asked := c.r.ledger.now()
	switch n := c.rng.IntN(4); {
	case n == 0 && len(t.recalls)-t.cancelled < mostRecall:
		p := &recall{}
		args := []string{"QPUSH", recalls, string(appendPayload(nil, ID(len(t.recalls)), payloadHeader))}
		t.recalls = append(t.recalls, p)
		c.ask(args, func(reply any) {
			name, ok := reply.(string)
			if p.name = name; !ok {
				c.unexpected(args, reply)
			}
		})
	case n == 1:
		args := []string{"QCLAIM", recalls, "COUNT", "4", "LEASE", decimal(30 + c.rng.Int64N(maxLease-30))}
		c.ask(args, func(reply any) { c.tookRecalls(shownTasks(reply), asked) })
	case n == 2 && len(c.recalled) > 0:
		h := c.recalled[len(c.recalled)-1]
		c.recalled = c.recalled[:len(c.recalled)-1]
		args := []string{"QNACK", recalls, h.name, h.token, "DELAY", "1"}
		c.ask(args, func(reply any) {
			if _, stale := reply.(replyError); reply != "cancelled" && !stale && h.of.cancelled != 0 && h.of.cancelled < asked {
				c.r.report(Returned, "packet %s of %s was cancelled, and comes back as %v", h.name, recalls, reply)
			}
		})
	case len(t.recalls) > 0:
		if p := t.recalls[c.rng.IntN(len(t.recalls))]; p.name != "" {
			c.cancel(p, asked)
		}
	}
}

// ask adds a request whose reply is read under the lock of the tasks.
func (c *taskClient) ask(args []string, answer func(reply any)) {
	floor := c.r.tasks.top.Load()
	c.link.addCommand(args...)
	c.ops = append(c.ops, taskOp{args: args, answer: func(reply any) {
		c.r.tasks.mu.Lock()
		defer c.r.tasks.mu.Unlock()
		if args[0] == "QCLAIM" {
			c.r.tokens(shownTasks(reply), floor)
		}
		answer(reply)
	}})
}

// cancel cancels a packet, which may have been cancelled before. The caller holds the lock.
func (c *taskClient) cancel(p *recall, asked int64) {
	p.asked++
	args := []string{"QCANCEL", recalls, p.name}
	c.ask(args, func(reply any) {
		list, _ := reply.([]any)
		now := c.r.ledger.now()
		switch {
		case len(list) != 1 || list[0] != "gone" && list[0] != "told" && list[0] != nil:
			c.unexpected(args, reply)
		case list[0] == nil && p.asked == 1:
			c.r.report(Lost, "packet %s of %s was not there to be cancelled", p.name, recalls)
		case list[0] != nil && p.gone != 0 && p.gone < asked:
			c.r.report(Returned, "packet %s of %s was gone, and is cancelled again", p.name, recalls)
		}
		if p.cancelled == 0 {
			p.cancelled = now
			c.r.tasks.cancelled++
		}
		if len(list) == 1 && list[0] != "told" {
			p.gone = cmp.Or(p.gone, now)
		}
	})
}

// tookRecalls enters a claim that was sent at asked.
func (c *taskClient) tookRecalls(shown []shownTask, asked int64) {
	for i := range shown {
		s := &shown[i]
		if !s.whole || int(s.id) >= len(c.r.tasks.recalls) {
			c.r.report(Corrupt, "packet %s of %s was never pushed, or not so", s.name, recalls)
			continue
		}
		p := c.r.tasks.recalls[s.id]
		if p.cancelled != 0 && p.cancelled < asked {
			c.r.report(Returned, "packet %s of %s was claimed after its cancel", s.name, recalls)
		}
		c.recalled = append(c.recalled[max(0, len(c.recalled)-maxForgotten):], recalled{p, s.name, decimal(s.token)})
	}
}

// checkRecalls compares recalls after a restart with what was cancelled. If all is true it then
// frees it.
func (r *run) checkRecalls(link *link, all bool) error {
	asked := r.ledger.now()
	ask := one("QLIST", recalls, "COUNT", decimal(atOnce))
	if all {
		ask = append(ask, []string{"QPURGE", recalls})
	}
	replies, err := link.ask(ask)
	if err != nil {
		return err
	}
	v, _ := parseReply(replies[0])
	if list, _ := v.([]any); len(list) == 2 && list[0] == "0" {
		r.compareRecalls(shownTasks(list[1]), asked)
	} else {
		r.report(Corrupt, "the list of %s is %.300q", recalls, v)
	}
	if all {
		r.tasks.recalls, r.tasks.cancelled = nil, 0
	}
	return nil
}

// compareRecalls compares the packets of recalls, and goes on from there.
func (r *run) compareRecalls(shown []shownTask, asked int64) {
	for i := range shown {
		s := &shown[i]
		if !s.whole || int(s.id) >= len(r.tasks.recalls) {
			r.report(Corrupt, "packet %s of %s was never pushed, or not so", s.name, recalls)
			continue
		}
		p := r.tasks.recalls[s.id]
		switch p.name = s.name; {
		case p.cancelled != 0 && (p.gone != 0 || !s.cancelled):
			r.report(Returned, "packet %s of %s is %s after its cancel", s.name, recalls, s.state)
		case s.cancelled && p.asked == 0:
			r.report(Lost, "packet %s of %s is cancelled, and nobody did that", s.name, recalls)
		case s.cancelled && s.leaseEnd < r.millis(asked-int64(clockSlack)):
			r.report(Stuck, "packet %s of %s is cancelled, and its lease has ended", s.name, recalls)
		case !s.cancelled:
			p.asked = 0 // none was carried out
		case p.cancelled == 0:
			p.cancelled = asked
		}
	}
	for i, p := range r.tasks.recalls {
		there := slices.ContainsFunc(shown, func(s shownTask) bool { return int(s.id) == i })
		if !there && p.name != "" && p.asked == 0 {
			r.report(Lost, "packet %s of %s is gone, and nobody cancelled it", p.name, recalls)
		}
		if !there {
			p.asked, p.gone, p.cancelled = p.asked+1, cmp.Or(p.gone, asked), cmp.Or(p.cancelled, asked)
		}
	}
}
