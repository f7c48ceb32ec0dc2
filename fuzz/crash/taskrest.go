package crash

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
)

// rested is a queue with fair turns by key. Clients let its shares rest, and end that. Meanwhile
// weights change, and limits that hold nothing back.
const (
	rested   = "rested"
	restKeys = 6
	maxRest  = 1500 // in milliseconds
)

// rests is what is known of rested. A packet's payload is its place among all of them, which gives
// its key.
type rests struct {
	pushes  ID
	changes [restKeys][]*restChange // of each share
	taken   []take
}

// restChange is a request by which a share may rest from then on.
type restChange struct {
	span           // it was carried out between these moments, if at all
	ms       int64 // for so long
	longer   bool  // only if it rests no longer anyhow: by QNACK
	answered bool  // it surely was carried out
}

// makeRested is the request that makes the queue. by is what its shares go by: both are the same.
func makeRested(by string) []string {
	return []string{"QSET", rested, "max-attempts", "0", "share-by", by, "bound", "300", "full", "drop"}
}

// restKey is the number of a packet's key.
func (id ID) restKey() int64 { return int64(id % restKeys) }

// rest makes one request of rested.
func (c *taskClient) rest() {
	t := c.r.tasks
	t.mu.Lock()
	defer t.mu.Unlock()
	s, asked := &t.rests, c.r.ledger.now()
	key := decimal(c.rng.Int64N(restKeys))
	switch n := c.rng.IntN(20); {
	case n < 6:
		s.pushes++
		key = decimal(s.pushes.restKey())
		c.ask([]string{"QPUSH", rested, string(appendPayload(nil, s.pushes, payloadHeader)), "KEY", key, "TAG", "key", key}, func(any) {})
	case n < 7:
		c.ask([]string{"QSHARE", rested, decimal(c.rng.Int64N(restKeys / 2)), "WEIGHT", decimal(1 + c.rng.Int64N(1000))}, func(any) {})
	case n < 8:
		c.ask([]string{"QSET", rested, "share-max-claimed", decimal(1000 + c.rng.Int64N(1000))}, func(any) {})
	case n < 10:
		ms := c.rng.Int64N(2) * (1 + c.rng.Int64N(maxRest))
		args := []string{"QSHARE", rested, key, "HOLD", decimal(ms)}
		if ms == 0 && c.rng.IntN(2) == 0 {
			args = []string{"QSHARE", rested, key, "RESET"}
		}
		c.changeRest(args, key, &restChange{span: span{asked: asked}, ms: ms}, "OK")
	case n < 14 && len(c.lentRested) > 0:
		l := c.lentRested[0]
		c.lentRested = c.lentRested[1:]
		if n < 12 {
			c.ask([]string{"QACK", rested, l.name, decimal(l.token)}, func(any) {})
			break
		}
		ms := 1 + c.rng.Int64N(maxRest)
		c.changeRest([]string{"QNACK", rested, l.name, decimal(l.token), "HOLD", decimal(ms)}, decimal(l.of.restKey()),
			&restChange{span: span{asked: asked}, ms: ms, longer: true}, "ready")
	default:
		args := []string{"QCLAIM", rested, "COUNT", decimal(1 + c.rng.Int64N(4)), "LEASE", decimal(100 + c.rng.Int64N(maxLease-100))}
		if n == 19 {
			args = append(args, "BLOCK", decimal(1+c.rng.Int64N(10)))
		}
		c.ask(args, func(reply any) { c.tookRested(shownTasks(reply), asked) })
		c.ops[len(c.ops)-1].waits = n == 19
	}
}

// changeRest makes a request that changes a rest, and is answered so. If its token is refused,
// nothing has changed.
func (c *taskClient) changeRest(args []string, key string, change *restChange, want string) {
	of, _ := strconv.Atoi(key)
	c.r.tasks.rests.changes[of] = append(c.r.tasks.rests.changes[of], change)
	c.ask(args, func(reply any) {
		change.came, change.answered = c.r.ledger.now(), true
		if _, stale := reply.(replyError); stale && change.longer {
			change.ms = 0
		} else if reply != want {
			c.unexpected(args, reply)
		}
	})
}

// tookRested enters a claim that was sent at asked.
func (c *taskClient) tookRested(shown []shownTask, asked int64) {
	s, came := &c.r.tasks.rests, c.r.ledger.now()
	for i := range shown {
		of := &shown[i]
		if !of.whole || of.id > s.pushes {
			c.r.report(Corrupt, "packet %v of %s was never pushed, or not so", of.id, rested)
			continue
		}
		s.taken = append(s.taken, take{span{asked, came}, of.id})
		c.lentRested = append(c.lentRested[max(0, len(c.lentRested)-maxLent):], &lending{of: of.id, name: of.name, token: of.token})
	}
}

// settle notes that nothing is carried out any more.
func (s *rests) settle(now int64) {
	for _, changes := range s.changes {
		for _, c := range changes {
			c.came = cmp.Or(c.came, now)
		}
	}
}

// until is how long a share surely rests, at a time: at least until then. 0: it may give.
func (s *rests) until(key int64, in span) (until int64) {
	for _, c := range s.changes[key] {
		ended := slices.ContainsFunc(s.changes[key], func(o *restChange) bool {
			return o != c && !o.longer && o.asked <= in.came && (o.came == 0 || o.came >= c.asked)
		})
		if c.answered && c.came < in.asked && !ended {
			until = max(until, c.asked+c.ms*1e6)
		}
	}
	return until
}

// atMost is how long a share can rest, if no more is carried out.
func (s *rests) atMost(key int64) (until int64) {
	for _, c := range s.changes[key] {
		ended := slices.ContainsFunc(s.changes[key], func(o *restChange) bool { return !o.longer && o.answered && o.asked > c.came })
		if c.ms > 0 && !ended {
			until = max(until, c.came+c.ms*1e6)
		}
	}
	return until
}

// checkGiven looks for packets of shares that rested.
func (r *run) checkGiven(s *rests) {
	for _, t := range s.taken {
		if until := s.until(t.of.restKey(), t.span); until-int64(clockSlack) > t.came {
			r.report(Early, "packet %v of %s was claimed %d ms before the rest of share %d ends", t.of, rested, (until-t.came)/1e6, t.of.restKey())
		}
	}
}

// checkRests compares rested after a restart with what was asked for. If all is true it then waits
// for the end of each rest, and frees the queue.
func (r *run) checkRests(link *link, all bool) error {
	s := &r.tasks.rests
	r.checkGiven(s)
	now, floor := span{asked: r.ledger.now()}, r.tasks.top.Load()
	replies, err := link.ask([][]string{{"QSHARES", rested}, {"QCLAIM", rested, "COUNT", decimal(atOnce), "LEASE", "1"}})
	if err != nil {
		return err
	}
	now.came = r.ledger.now()
	claimed, _ := parseReply(replies[1])
	r.tokens(shownTasks(claimed), floor)
	waits, rows, got := map[int64]bool{}, shareRows(replies[0]), keysOf(replies[1])
	for key := range int64(restKeys) {
		row := rows[decimal(key)]
		r.checkRest(s, key, row, got[key], now)
		if ready, _ := row["ready"].(int64); ready > 0 {
			waits[key] = true
		}
	}
	s.taken = nil
	if !all {
		return nil
	}
	return r.waitForRests(link, waits)
}

// waitForRests waits until each of some shares has given a packet.
func (r *run) waitForRests(link *link, waits map[int64]bool) error {
	ask := [][]string{makeRested([]string{"key", "tag:key"}[r.rng.IntN(2)])} // the rests stay
	for {
		ask = append(ask, []string{"QCLAIM", rested, "COUNT", decimal(atOnce), "BLOCK", decimal(2 * maxRest)})
		if len(waits) == 0 {
			ask = one("QPURGE", rested)
		}
		replies, err := link.ask(ask)
		if err != nil || len(waits) == 0 {
			return err
		}
		got := keysOf(replies[len(replies)-1])
		if len(got) == 0 {
			r.report(Stuck, "the shares %v of %s had packets ready, and gave none in %d ms", waits, rested, 2*maxRest)
			clear(waits)
		}
		maps.DeleteFunc(waits, func(key int64, _ bool) bool { return got[key] })
		ask = nil
	}
}

// keysOf are the keys of the packets in the reply to a claim.
func keysOf(reply string) map[int64]bool {
	keys := map[int64]bool{}
	v, _ := parseReply(reply)
	for _, s := range shownTasks(v) {
		keys[s.id.restKey()] = true
	}
	return keys
}

// checkRest compares a share with what was asked for, and goes on from what was found. got says
// that one of its packets was claimed.
func (r *run) checkRest(s *rests, key int64, row map[string]any, got bool, now span) {
	const slack = int64(clockSlack)
	rests, _ := row["rests"].(int64)
	ready, _ := row["ready"].(int64)
	least, most := s.until(key, now), s.atMost(key)
	switch {
	case now.came+rests*1e6 < least-slack:
		r.report(Lost, "share %d of %s rests for %d ms, and was to do so for %d", key, rested, rests, (least-now.came)/1e6)
	case rests > 0 && now.asked+rests*1e6 > most+slack:
		r.report(Stuck, "share %d of %s rests for %d ms, and was to do so for %d", key, rested, rests, (most-now.asked)/1e6)
	case got && now.asked+rests*1e6 > now.came+slack:
		r.report(Early, "share %d of %s rests for %d ms, and gave a packet", key, rested, rests)
	case !got && ready > 0 && rests == 0:
		r.report(Stuck, "share %d of %s does not rest, has %d packets ready, and gave none", key, rested, ready)
	}
	s.changes[key] = nil
	if rests > 0 {
		s.changes[key] = []*restChange{{span: now, ms: rests, answered: true}}
	}
}

// shareRows reads the reply to QSHARES: the shares by name.
func shareRows(reply string) map[string]map[string]any {
	rows := map[string]map[string]any{}
	v, _ := parseReply(reply)
	list, _ := v.([]any)
	all, _ := list[min(1, len(list)-1)].([]any)
	for _, v := range all {
		row := pairs(v)
		name, _ := row["name"].(string)
		rows[name] = row
	}
	return rows
}
