package crash

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ordered is a queue with strict order, in which dead packets mostly hold their keys. What its
// shares go by changes all the time, and how many of each may be claimed.
const (
	ordered      = "ordered"
	orderKeys    = 5
	mostOrdered  = 150
	orderedLease = 200 // the longest, in milliseconds
	orderedDelay = 200
)

// orders is what is known of ordered. A packet's payload is its place in packets.
type orders struct {
	packets  []*orderedPacket
	out      []*outing
	redrives []*span
	first    int64 // the number of the first of changes
	changes  []span
}

// orderedPacket is a packet that was pushed in a time; came is 0 if it may not be there.
type orderedPacket struct {
	span
	key, priority int64
	number        int64 // its id
	leaving       int   // requests by which it leaves its place, which may be carried out
	leaves        int64 // when the first of them was sent; never: there is none
	deleted       int64 // when its deletion was asked for; never: it was not
	acked         bool
}

// outing is a claim of a packet.
type outing struct {
	span
	of    *orderedPacket
	token int64
	until int64 // it is surely claimed, or delayed, until then: nobody has asked for its end
	died  int64 // it surely was dead since then, if that is not 0: until its deletion, or a redrive
}

// orderRule is a change of a number: whether dead packets hold their keys then.
func orderRule(n int64) (settings []string, holds bool) {
	holds = n%6 != 5
	onDead := "go-on"
	if holds {
		onDead = "hold"
	}
	by, each := []string{"key", "tag:part", "no"}[n%3], n%4
	if by == "no" {
		each = 0
	}
	return []string{"share-by", by, "on-dead", onDead, "share-max-claimed", decimal(each)}, holds
}

// makeOrdered is the request that makes the queue.
func (t *tasks) makeOrdered() []string {
	t.orders.changes = []span{{}}
	settings, _ := orderRule(0)
	return append([]string{"QSET", ordered, "max-attempts", "0", "strict", "yes", "bound", decimal(mostOrdered), "full", "reject"}, settings...)
}

// order makes one request of ordered.
func (c *taskClient) order() {
	t := c.r.tasks
	t.mu.Lock()
	defer t.mu.Unlock()
	s, asked := &t.orders, c.r.ledger.now()
	switch n := c.rng.IntN(20); {
	case n == 19 && c.number == taskPart: // one client alone changes them
		c.changeOrder(asked)
	case n < 6:
		c.pushOrdered(asked)
	case n < 7:
		at := &span{asked: asked}
		s.redrives = append(s.redrives, at)
		c.ask([]string{"QREDRIVE", ordered, "COUNT", "100"}, func(any) { at.came = c.r.ledger.now() })
	case n < 8:
		at := slices.IndexFunc(s.out, func(o *outing) bool { return o.died != 0 && o.of.deleted == never })
		if at >= 0 {
			p := s.out[at].of
			p.leave(asked)
			p.deleted = asked
			c.ask([]string{"QDEL", ordered, decimal(p.number)}, func(any) {})
		}
	case n < 14 && len(c.outings) > 0:
		o := c.outings[0]
		c.outings = c.outings[1:]
		c.endOuting(o, asked)
	default:
		lease := 30 + c.rng.Int64N(orderedLease-30)
		args := []string{"QCLAIM", ordered, "COUNT", decimal(1 + c.rng.Int64N(4)), "LEASE", decimal(lease)}
		if n == 18 {
			args = append(args, "BLOCK", decimal(1+c.rng.Int64N(10)))
		}
		c.ask(args, func(reply any) {
			for _, o := range c.r.tookOrdered(shownTasks(reply), span{asked, c.r.ledger.now()}, lease) {
				if c.rng.IntN(6) > 0 { // else its lease is to end it
					c.outings = append(c.outings[max(0, len(c.outings)-maxLent):], o)
				}
			}
		})
		c.ops[len(c.ops)-1].waits = n == 18
	}
}

func (c *taskClient) pushOrdered(asked int64) {
	s := &c.r.tasks.orders
	p := &orderedPacket{span: span{asked: asked}, key: c.rng.Int64N(orderKeys), priority: 1 + c.rng.Int64N(3), leaves: never, deleted: never}
	args := []string{"QPUSH", ordered, string(appendPayload(nil, ID(len(s.packets)), payloadHeader)), "KEY", decimal(p.key),
		"TAG", "part", decimal(p.key % 2), "PRIO", decimal(p.priority)}
	s.packets = append(s.packets, p)
	c.ask(args, func(reply any) {
		name, ok := reply.(string)
		if text, _ := reply.(replyError); !ok && !strings.HasPrefix(string(text), "FULL ") {
			c.unexpected(args, reply)
		}
		if ok {
			p.came = c.r.ledger.now()
			p.number, _ = strconv.ParseInt(name, 10, 64)
		}
	})
}

// leave notes a request by which a packet may leave its place.
func (p *orderedPacket) leave(asked int64) { p.leaving, p.leaves = p.leaving+1, min(p.leaves, asked) }

// stay notes that such a request was refused.
func (p *orderedPacket) stay() {
	if p.leaving--; p.leaving == 0 {
		p.leaves = never
	}
}

// endOuting ends a claim in one of the ways.
func (c *taskClient) endOuting(o *outing, asked int64) {
	until, p := o.until, o.of
	o.until = min(until, asked)
	ask := func(answer func(reply any), verb string, more ...string) {
		c.ask(append([]string{verb, ordered, decimal(p.number), decimal(o.token)}, more...), answer)
	}
	switch n := c.rng.IntN(10); {
	case n < 4:
		p.leave(asked)
		ask(func(reply any) {
			if p.acked = p.acked || reply == int64(1); reply != int64(1) {
				p.stay()
			}
		}, "QACK")
	case n < 6:
		p.leave(asked)
		ask(func(reply any) {
			if reply == "dead" {
				o.died = c.r.ledger.now()
			} else {
				p.stay()
			}
		}, "QNACK", "DEAD")
	case n < 9:
		delay := 1 + c.rng.Int64N(orderedDelay)
		ask(func(reply any) {
			if reply == "delayed" {
				o.until = asked + delay*1e6
			}
		}, "QNACK", "DELAY", decimal(delay))
	default:
		ask(func(any) {}, "QNACK", "DELAY", "0")
	}
}

// changeOrder makes the next change. It is in force when its answer comes.
func (c *taskClient) changeOrder(asked int64) {
	s := &c.r.tasks.orders
	at := len(s.changes) - 1
	settings, _ := orderRule(s.first + int64(at+1))
	args := append([]string{"QSET", ordered}, settings...)
	s.changes = append(s.changes, span{asked: asked})
	c.ask(args, func(reply any) {
		if reply != "OK" {
			c.unexpected(args, reply)
		}
		s.changes[at+1].came = c.r.ledger.now()
	})
}

// tookOrdered enters what a claim gave.
func (r *run) tookOrdered(shown []shownTask, in span, lease int64) (taken []*outing) {
	s := &r.tasks.orders
	for i := range shown {
		of := &shown[i]
		if p := r.orderedOf(of); p != nil {
			p.came = cmp.Or(p.came, in.came)
			taken = append(taken, &outing{span: in, of: p, token: of.token, until: in.asked + lease*1e6})
		}
	}
	s.out = append(s.out, taken...)
	return taken
}

// orderedOf returns the packet that a reply shows; nil, and a report, if there can be none.
func (r *run) orderedOf(shown *shownTask) *orderedPacket {
	s := &r.tasks.orders
	if !shown.whole || int(shown.id) >= len(s.packets) || s.packets[shown.id].key != keyNumber(shown.key) {
		r.report(Corrupt, "packet %v of %s was never pushed, or not so", shown.id, ordered)
		return nil
	}
	p := s.packets[shown.id]
	p.number, _ = strconv.ParseInt(shown.name, 10, 64)
	return p
}

func keyNumber(key string) int64 {
	n, _ := strconv.ParseInt(key, 10, 64)
	return n
}

// holds says that dead packets held their keys all of a time.
func (s *orders) holds(in span) bool {
	for i, c := range s.changes {
		over := i+1 < len(s.changes) && s.changes[i+1].came != 0 && s.changes[i+1].came < in.asked
		_, holds := orderRule(s.first + int64(i))
		if c.asked <= in.came && !over && !(holds && (i == 0 || c.came != 0 && c.came < in.asked)) {
			return false
		}
	}
	return true
}

// before says that a packet has a lower place than another one of its key.
func (p *orderedPacket) before(o *orderedPacket) bool {
	return cmp.Or(cmp.Compare(p.priority, o.priority), cmp.Compare(p.number, o.number)) < 0
}

// isDead says that a packet surely was dead all of a time.
func (s *orders) isDead(o *outing, in span) bool {
	return o.died != 0 && o.died < in.asked && o.of.deleted > in.came && !slices.ContainsFunc(s.redrives, func(at *span) bool {
		return at.asked <= in.came && (at.came == 0 || at.came >= o.asked)
	})
}

// checkOutings looks at each claim, in the order in which they were made.
func (r *run) checkOutings(s *orders) {
	const slack = int64(clockSlack)
	slices.SortStableFunc(s.out, func(a, b *outing) int { return cmp.Compare(a.token, b.token) })
	for i, l := range s.out {
		if l.came == 0 { // nobody knows when it was made
			continue
		}
		holds := s.holds(l.span)
		for _, o := range s.out[:i] {
			switch {
			case o.of.key != l.of.key:
			case min(o.until, o.of.deleted)-slack > l.came:
				r.report(Excess, "packet %d of %s was claimed with token %d, while %d of its key was out with %d", l.of.number, ordered, l.token, o.of.number, o.token)
			case holds && o.of != l.of && s.isDead(o, l.span):
				r.report(Order, "packet %d of %s was claimed with token %d, while %d held its key, which is dead", l.of.number, ordered, l.token, o.of.number)
			}
		}
		for _, p := range s.packets {
			if p.key == l.of.key && p.before(l.of) && p.came != 0 && p.came < l.asked && p.leaves > l.came {
				r.report(Order, "packet %d of %s was claimed with token %d, before %d of its key", l.of.number, ordered, l.token, p.number)
			}
		}
	}
}

// checkOrder compares ordered after a restart with what was done. If all is true it then works it
// off.
func (r *run) checkOrder(link *link, all bool) error {
	asked := r.ledger.now()
	replies, err := link.ask([][]string{{"QLIST", ordered, "COUNT", decimal(atOnce)}, {"QGET", ordered}})
	if err != nil {
		return err
	}
	s := &r.tasks.orders
	r.checkOutings(s)
	v, _ := parseReply(replies[0])
	list, _ := v.([]any)
	if len(list) != 2 || list[0] != "0" {
		r.report(Corrupt, "the list of %s is %.300q", ordered, v)
		return nil
	}
	r.compareOrdered(shownTasks(list[1]), span{asked, r.ledger.now()})
	settings, _ := parseReply(replies[1])
	r.checkOrderRule(s, pairs(settings))
	if !all {
		return nil
	}
	return r.workOffOrdered(link)
}

// compareOrdered compares the packets of ordered, and goes on from there.
func (r *run) compareOrdered(shown []shownTask, in span) {
	s, out := &r.tasks.orders, map[string]string{}
	there, open := map[*orderedPacket]bool{}, []*outing(nil)
	for i := range shown {
		of := &shown[i]
		p := r.orderedOf(of)
		switch {
		case p == nil:
			continue
		case p.acked:
			r.report(Returned, "packet %s of %s is %s after its ack", of.name, ordered, of.state)
		}
		there[p], p.came, p.leaving, p.leaves, p.deleted = true, cmp.Or(p.came, in.came), 0, never, never
		o := &outing{of: p, token: of.token}
		if at := slices.IndexFunc(s.out, func(o *outing) bool { return o.of == p && o.token == of.token && o.came != 0 }); at >= 0 {
			o = s.out[at]
			o.died = 0
		}
		switch o.until = 0; {
		case of.state == "claimed":
			o.until = r.nanos(of.leaseEnd)
		case of.state == "delayed" && of.token != 0:
			o.until = r.nanos(of.notBefore)
		case of.state == "dead":
			o.died = in.asked
			p.leave(in.asked)
		}
		if o.until > in.came && out[of.key] != "" {
			r.report(Excess, "packet %s of %s is out, and %s of its key", of.name, ordered, out[of.key])
		} else if o.until > in.came {
			out[of.key] = of.name
		}
		open = append(open, o)
	}
	for _, p := range s.packets {
		if !there[p] && p.came != 0 && p.leaves == never {
			r.report(Lost, "packet %d of %s is gone", p.number, ordered)
		}
		if !there[p] {
			p.leave(in.asked)
		}
	}
	s.out, s.redrives = open, nil
}

// checkOrderRule compares the settings, and goes on from what was found.
func (r *run) checkOrderRule(s *orders, found map[string]any) {
	n, last := s.first, s.first+int64(len(s.changes))-1
	for i, c := range s.changes {
		if c.came != 0 {
			n = s.first + int64(i)
		}
	}
	fits := func(n int64) bool {
		settings, _ := orderRule(n)
		return shows(found, settings) && found["strict"] == "yes"
	}
	for n < last && !fits(n) {
		n++
	}
	if !fits(n) {
		r.report(Lost, "the settings of %s are %v after %d to %d changes", ordered, found, s.first, last)
	}
	s.first, s.changes = n, []span{{}}
}

// workOffOrdered redrives, claims and acknowledges all packets. No key may be held for long.
func (r *run) workOffOrdered(link *link) error {
	const lease = 10_000
	s := &r.tasks.orders
	until := time.Now().Add((orderedLease+orderedDelay)*time.Millisecond + time.Second)
	for {
		asked := r.ledger.now()
		s.redrives = append(s.redrives, &span{asked: asked})
		replies, err := link.ask([][]string{
			{"QREDRIVE", ordered, "COUNT", decimal(atOnce)},
			{"QCLAIM", ordered, "COUNT", "100", "LEASE", decimal(lease), "BLOCK", "20"}, {"QLEN", ordered},
		})
		if err != nil {
			return err
		}
		v, _ := parseReply(replies[1])
		left, _ := parseReply(replies[2])
		taken := r.tookOrdered(shownTasks(v), span{asked, r.ledger.now()}, lease)
		args := []string{"QACK", ordered}
		for _, o := range taken {
			o.until = r.ledger.now()
			o.of.leave(o.until)
			args = append(args, decimal(o.of.number), decimal(o.token))
		}
		if len(taken) > 0 {
			if _, err = link.ask(one(args...)); err != nil {
				return err
			}
		}
		if left == int64(0) || time.Now().After(until) {
			if left != int64(0) {
				r.report(Stuck, "%v packets of %s did not come in %v", left, ordered, (orderedLease+orderedDelay)*time.Millisecond+time.Second)
			}
			break
		}
	}
	r.checkOutings(s)
	_, err := link.ask(one("QPURGE", ordered))
	s.packets, s.out, s.redrives = nil, nil, nil
	return err
}
