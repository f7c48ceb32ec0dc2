package crash

import (
	"cmp"
	"slices"
)

// tenants is a queue with fair turns by key, whose limits and weights change all the time. paced is
// one with rates, and what is taken from it is taken for good.
const (
	tenants     = "tenants"
	paced       = "paced"
	tenantCount = 3 // keys of both
	maxLent     = 8 // claims that a client may come back to

	// A packet of paced comes each pace, one of each key each tenantPace, and so many at once after a
	// rest. early is how much a take may be.
	pace, tenantPace = 100e6, 200e6
	pacedBurst       = 10
	early            = 10e6
	maxTaken         = 400 // takes that are remembered over restarts
)

// shares is what is known of both. A packet's payload is its place among all of them, and gives its
// key.
type shares struct {
	pushes  ID
	first   int64 // the number of the first of changes, which is in force since the last restart
	changes []span
	lent    []*lending // claims of tenants that may be open, or have ended since the last restart
	taken   []take
}

// span is when a request was sent, and when it was answered; 0: it was not.
type span struct{ asked, came int64 }

// lending is a claim of a packet of tenants.
type lending struct {
	span
	of    ID
	name  string
	token int64
	until int64 // it surely lasts until then: nobody has asked for its end, and the lease runs
}

// take is a packet of paced that was taken.
type take struct {
	span
	of ID
}

// tenant is the number of a packet's key.
func (id ID) tenant() int64 { return int64(id % tenantCount) }

// tenantRule is what a change sets: the limits of the queue, or what a tenant has of its own.
type tenantRule struct{ weight, claimed, each int64 }

// ruleOf is the change of a number. Each tenant has its turn, then the queue.
func ruleOf(n int64) tenantRule {
	round := n / (tenantCount + 1)
	switch {
	case n%(tenantCount+1) == tenantCount:
		return tenantRule{claimed: 2 + round%4, each: 1 + round%2}
	case round%3 == 0:
		return tenantRule{weight: 1}
	}
	return tenantRule{weight: 1 + n%1000, claimed: 1 + round%3}
}

// tenantRules are those of all tenants, then of the queue.
type tenantRules [tenantCount + 1]tenantRule

// rulesAt are those in force after the change of a number.
func rulesAt(n int64) (all tenantRules) {
	for of := range int64(len(all)) {
		all[of] = ruleOf(n - (n-of)%int64(len(all)))
	}
	return all
}

// limit is how many claims of a tenant, or of the queue, may be open.
func (all tenantRules) limit(of int64) int64 { return cmp.Or(all[of].claimed, all[tenantCount].each) }

// changeTenants are the arguments of a change.
func changeTenants(n int64) []string {
	of, rule := n%(tenantCount+1), ruleOf(n)
	switch {
	case of == tenantCount:
		return []string{"QSET", tenants, "max-claimed", decimal(rule.claimed), "share-max-claimed", decimal(rule.each)}
	case rule.claimed == 0:
		return []string{"QSHARE", tenants, decimal(of), "RESET"}
	}
	return []string{"QSHARE", tenants, decimal(of), "WEIGHT", decimal(rule.weight), "MAX-CLAIMED", decimal(rule.claimed)}
}

// makeShares are the requests that make both queues. The first change is that of the queue.
func (t *tasks) makeShares() [][]string {
	t.shares.first, t.shares.changes = tenantCount, []span{{}}
	settings := func(queue string, more ...string) []string {
		return append([]string{"QSET", queue, "max-attempts", "0", "share-by", "key", "bound", "300", "full", "drop"}, more...)
	}
	return [][]string{
		settings(tenants), changeTenants(tenantCount),
		settings(paced, "rate", "10/1s", "share-rate", "5/1s", "rate-burst", decimal(pacedBurst)),
	}
}

// share makes one request of both queues.
func (c *taskClient) share() {
	t := c.r.tasks
	t.mu.Lock()
	defer t.mu.Unlock()
	s, asked := &t.shares, c.r.ledger.now()
	switch n := c.rng.IntN(10); {
	case n == 9 && c.number == taskPart: // one client alone changes them
		c.changeRules(asked)
	case n < 3:
		s.pushes++
		queue := []string{tenants, tenants, paced}[n]
		c.ask([]string{"QPUSH", queue, string(appendPayload(nil, s.pushes, payloadHeader)), "KEY", decimal(s.pushes.tenant())}, func(any) {})
	case n < 5:
		args := [][]string{{"LPOP", paced}, {"QPOP", paced, "COUNT", "3"}, {"QPOP", paced, "BLOCK", "10"}}[c.rng.IntN(3)]
		c.ask(args, func(reply any) { c.tookPaced(reply, asked) })
		c.ops[len(c.ops)-1].waits = len(args) == 4 && args[2] == "BLOCK"
	case n < 8 && len(c.lent) > 0:
		l := c.lent[0]
		c.lent = c.lent[1:]
		l.until = min(l.until, asked)
		c.ask([]string{[]string{"QACK", "QNACK"}[n%2], tenants, l.name, decimal(l.token)}, func(any) {})
	default:
		lease := 30 + c.rng.Int64N(170)
		args := []string{"QCLAIM", tenants, "COUNT", decimal(1 + c.rng.Int64N(4)), "LEASE", decimal(lease)}
		waits := c.rng.IntN(4) == 0
		if waits {
			args = append(args, "BLOCK", decimal(1+c.rng.Int64N(10)))
		}
		c.ask(args, func(reply any) { c.lend(shownTasks(reply), asked, lease) })
		c.ops[len(c.ops)-1].waits = waits
	}
}

// lend enters a claim that was sent at asked.
func (c *taskClient) lend(shown []shownTask, asked, lease int64) {
	for _, s := range shown {
		l := &lending{span{asked, c.r.ledger.now()}, s.id, s.name, s.token, asked + lease*1e6}
		c.r.tasks.shares.lent = append(c.r.tasks.shares.lent, l)
		if c.rng.IntN(6) > 0 { // else its lease is to end it
			c.lent = append(c.lent[max(0, len(c.lent)-maxLent):], l)
		}
	}
}

// tookPaced enters what a take of paced gave, which was sent at asked.
func (c *taskClient) tookPaced(reply any, asked int64) {
	shown := shownTasks(reply)
	if text, ok := reply.(string); ok {
		id, whole := parsePayload([]byte(text))
		shown = []shownTask{{id: id, whole: whole}}
	}
	for _, s := range shown {
		if !s.whole || s.id > c.r.tasks.shares.pushes {
			c.r.report(Corrupt, "packet %v of %s was never pushed, or not so", s.id, paced)
		}
		c.r.tasks.shares.taken = append(c.r.tasks.shares.taken, take{span{asked, c.r.ledger.now()}, s.id})
	}
}

// changeRules makes the next change.
func (c *taskClient) changeRules(asked int64) {
	s := &c.r.tasks.shares
	at := len(s.changes)
	args := changeTenants(s.first + int64(at))
	s.changes = append(s.changes, span{asked: asked})
	c.ask(args, func(reply any) {
		if reply != "OK" {
			c.unexpected(args, reply)
		}
		s.changes[at].came = c.r.ledger.now()
	})
}

// most is the highest limit of a tenant, or of the queue, that may have been in force in a time.
func (s *shares) most(of int64, in span) (most int64) {
	for i, c := range s.changes {
		over := i+1 < len(s.changes) && s.changes[i+1].came != 0 && s.changes[i+1].came < in.asked
		if c.asked <= in.came && !over {
			most = max(most, rulesAt(s.first+int64(i)).limit(of))
		}
	}
	return most
}

// checkLent looks at each claim of tenants, in the order in which they were made, for how many
// others were surely open.
func (r *run) checkLent(s *shares) {
	slices.SortFunc(s.lent, func(a, b *lending) int { return cmp.Compare(a.token, b.token) })
	for i, l := range s.lent {
		all, own := int64(1), int64(1)
		for _, o := range s.lent[:i] {
			if o.until-int64(clockSlack) > l.came {
				all++
			}
			if o.until-int64(clockSlack) > l.came && o.of.tenant() == l.of.tenant() {
				own++
			}
		}
		if most := s.most(tenantCount, l.span); all > most {
			r.report(Excess, "%d packets of %s were claimed with token %d, and %d may be", all, tenants, l.token, most)
		}
		if most := s.most(l.of.tenant(), l.span); own > most {
			r.report(Excess, "%d packets of tenant %d were claimed with token %d, and %d may be", own, l.of.tenant(), l.token, most)
		}
	}
}

// checkPace looks for a time in which more was surely taken of some packets than a rate allows.
func (r *run) checkPace(s *shares, gap int64, of func(take) bool) {
	slices.SortFunc(s.taken, func(a, b take) int { return cmp.Compare(a.came, b.came) })
	for _, first := range s.taken {
		n := int64(0)
		for _, t := range s.taken {
			if t.asked < first.asked || !of(t) {
				continue
			}
			n++
			if most := pacedBurst + (t.came-first.asked+early)/gap; n > most {
				r.report(Excess, "%d packets of %s were taken in %d ms, and %d may be", n, paced, (t.came-first.asked)/1e6, most)
				return
			}
		}
	}
}

// checkShares compares both queues after a restart with what was changed, lent and taken. If all is
// true it then frees them.
func (r *run) checkShares(link *link, all bool) error {
	ask := [][]string{{"QLIST", tenants, "STATE", "claimed", "COUNT", decimal(atOnce)}, {"QGET", tenants}, {"QSHARES", tenants}}
	if all {
		ask = append(ask, []string{"QPURGE", tenants}, []string{"QPURGE", paced})
	}
	replies, err := link.ask(ask)
	if err != nil {
		return err
	}
	came, s := r.ledger.now(), &r.tasks.shares
	v, _ := parseReply(replies[0])
	list, _ := v.([]any)
	if len(list) != 2 {
		r.report(Corrupt, "the list of %s is %.300q", tenants, v)
		return nil
	}
	for _, shown := range shownTasks(list[1]) {
		at := slices.IndexFunc(s.lent, func(l *lending) bool { return l.token == shown.token })
		if at < 0 { // it had no reply
			at, s.lent = len(s.lent), append(s.lent, &lending{span: span{0, came}, of: shown.id, token: shown.token})
		}
		s.lent[at].until = r.nanos(shown.leaseEnd) // no end of it was carried out
	}
	r.checkLent(s)
	r.checkPace(s, pace, func(take) bool { return true })
	for of := range int64(tenantCount) {
		r.checkPace(s, tenantPace, func(t take) bool { return t.of.tenant() == of })
	}
	settings, _ := parseReply(replies[1])
	rows, _ := parseReply(replies[2])
	r.checkRules(s, pairs(settings), rows)
	s.lent = slices.DeleteFunc(s.lent, func(l *lending) bool { return all || l.until < came })
	s.taken = s.taken[max(0, len(s.taken)-maxTaken):]
	return nil
}

// checkRules compares limits and weights, and goes on from what was found.
func (r *run) checkRules(s *shares, settings map[string]any, reply any) {
	found := tenantRules{tenantCount: {}}
	for of := range tenantCount {
		found[of].weight = 1
	}
	found[tenantCount].claimed, _ = settings["max-claimed"].(int64)
	found[tenantCount].each, _ = settings["share-max-claimed"].(int64)
	list, _ := reply.([]any)
	rows, _ := list[min(1, len(list)-1)].([]any)
	for _, v := range rows {
		row := pairs(v)
		if of := slices.Index([]any{"0", "1", "2"}, row["name"]); of >= 0 {
			found[of].weight, _ = row["weight"].(int64)
			found[of].claimed, _ = row["max-claimed"].(int64)
		}
	}
	from := len(s.changes) - 1
	for s.changes[from].asked != 0 && s.changes[from].came == 0 {
		from--
	}
	n, last := s.first+int64(from), s.first+int64(len(s.changes))-1
	for n < last && found != rulesAt(n) {
		n++
	}
	if found != rulesAt(n) {
		r.report(Lost, "%s has %+v after %d to %d changes of its rules, which are then %+v", tenants, found, s.first+int64(from), last, rulesAt(n))
	}
	s.first, s.changes = n, []span{{}}
}
