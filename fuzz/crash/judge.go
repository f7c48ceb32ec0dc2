package crash

import (
	"fmt"
	"math"
	"slices"
)

// String shows who pushed the packet and the how-manieth it was.
func (id ID) String() string { return fmt.Sprintf("%d:%d", id.part(), id.serial()) }

// queueOf is the queue that the packet was pushed to, -1 if nobody knows.
func (r *run) queueOf(payload []byte) int {
	id, whole := parsePayload(payload)
	if !whole || id.part() >= len(r.ledger.parts) {
		return -1
	}
	p := &r.ledger.parts[id.part()]
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := id.serial() - p.first; at < uint64(len(p.entries)) {
		return int(p.entries[at].queue)
	}
	return -1
}

// take checks a packet that came out of queue q by a request that was sent at asked, 0 if by a
// subscription, and enters it into the ledger. ok is false if it should not have come.
func (r *run) take(q int, key, payload []byte, asked int64) (t took, ok bool) {
	name := r.queues.all[q].name
	id, whole := parsePayload(payload)
	if !whole {
		r.add(Corrupt, "a packet of %s has a payload of %d bytes that nobody pushed (near %v)", name, len(payload), id)
		return took{}, false
	}
	e, wrong := r.ledger.take(id)
	switch {
	case wrong == Corrupt:
		r.add(Corrupt, "packet %v of %s was never pushed", id, name)
	case wrong == Returned:
		r.add(Returned, "packet %v of %s had been handed out, or had been found gone, before", id, name)
	case int(e.queue) != q:
		r.add(Corrupt, "packet %v of %s came out of %s", id, r.queues.all[e.queue].name, name)
	case string(key) != string(e.key.append(nil)):
		r.add(Corrupt, "packet %v of %s has key %x instead of %x", id, name, key, e.key.append(nil))
	case asked != 0 && e.mustExpire(asked):
		r.add(Expired, "packet %v of %s lives %d ms and was handed out %d ms after its push",
			id, name, e.ttl, (asked-e.by)/1e6)
	default:
		return took{id, e}, true
	}
	return took{}, false
}

// newer says that a was surely pushed after b.
func newer(a, b *took) bool {
	if a.id.part() == b.id.part() {
		return a.id > b.id
	}
	return a.e.sent > b.e.pushedBy()
}

// checkGroup checks the packets of one reply: the selected one first, then by priority, the newest
// first, priority 0 last, and all with one key.
func (r *run) checkGroup(q int, group []took) {
	for i := 1; i < len(group); i++ {
		a, b := &group[i-1], &group[i]
		switch {
		case b.e.key != a.e.key:
			r.add(Order, "a reply of %s holds %v and %v, which have different keys", r.queues.all[q].name, a.id, b.id)
		case rank(b.e.prio) < rank(a.e.prio):
			r.add(Order, "a reply of %s has %v of priority %d before %v of priority %d",
				r.queues.all[q].name, a.id, a.e.prio, b.id, b.e.prio)
		case a.e.prio == b.e.prio && newer(b, a):
			r.add(Order, "a reply of %s has %v before %v, which is newer", r.queues.all[q].name, a.id, b.id)
		}
	}
	if len(group) > 0 && group[0].e.prio == 0 {
		r.add(Order, "a reply of %s begins with %v, whose priority is 0", r.queues.all[q].name, group[0].id)
	}
}

// checkDrained checks the replies of a queue that one connection emptied while nobody else used
// it: each selected packet was the best of what was left, and took all of its key along.
func (r *run) checkDrained(q int, replies [][]took) {
	name := r.queues.all[q].name
	level := uint8(0)          // priority of the last selected packet
	by := int64(math.MaxInt64) // when the earliest of those selected at it was there
	last := map[int]ID{}       // by pusher: the last one selected at it
	closed := map[keyOf]ID{}   // keys that were popped
	for _, group := range replies {
		r.checkGroup(q, group)
		for i := range group {
			t := &group[i]
			if t.e.prio != 0 && t.e.prio < level {
				r.add(Order, "%s gave %v of priority %d after one of priority %d", name, t.id, t.e.prio, level)
			}
			newest := t.e.sent > by || last[t.id.part()] != 0 && t.id > last[t.id.part()]
			if t.e.prio == level && newest {
				r.add(Order, "%s gave %v after an older one of its priority %d", name, t.id, level)
			}
		}
		selected := &group[0]
		if selected.e.prio != level {
			level, by = selected.e.prio, math.MaxInt64
			clear(last)
		}
		by = min(by, selected.e.pushedBy())
		last[selected.id.part()] = selected.id
		if before, again := closed[selected.e.key]; again {
			r.add(Order, "%s gave %v after %v, which has the same key and was popped by itself", name, selected.id, before)
		}
		closed[selected.e.key] = selected.id
	}
}

// judgeWorker holds a worker's own queues, as they came out after the restart, against its models.
// They must be as after some beginning of the requests that had no answer.
func (r *run) judgeWorker(w *worker, unanswered []op, drained map[int][][]took) {
	got := make(map[int][][]ID, len(drained))
	for q, replies := range drained {
		for _, group := range replies {
			got[q] = append(got[q], idsTaken(group))
		}
	}
	models := make(map[int]model, len(w.models))
	for q, m := range w.models {
		models[q] = m.clone()
	}
	for n := 0; ; n++ {
		if r.agree(models, got) {
			return
		}
		if n == len(unanswered) {
			break
		}
		o := unanswered[n]
		m, mine := models[o.queue]
		if !mine {
			continue
		}
		if o.pop {
			m.pop()
		} else {
			m = append(m, o.at)
		}
		models[o.queue] = m
	}
	r.disagree(w, models, got, len(unanswered))
}

func (r *run) agree(models map[int]model, got map[int][][]ID) bool {
	for q, m := range models {
		if !slices.EqualFunc(m.clone().drain(groupKeys), got[q], slices.Equal) {
			return false
		}
	}
	return true
}

// disagree names what is wrong with a worker's queues. models is how they would be had all
// unanswered requests been carried out.
func (r *run) disagree(w *worker, models map[int]model, got map[int][][]ID, unanswered int) {
	for q, m := range w.models {
		name := r.queues.all[q].name
		there := map[ID]bool{}
		for _, id := range slices.Concat(got[q]...) {
			there[id] = true
		}
		kept := map[ID]bool{}
		for _, p := range models[q] {
			kept[p.id] = true
		}
		for _, p := range *m {
			if !there[p.id] && kept[p.id] { // no pop that was sent could have taken it
				r.add(Lost, "packet %v of %s, priority %d, was acknowledged", p.id, name, p.prio)
			}
		}
	}
	r.add(Order, "the queues of worker %d are not as they were at any moment: %d requests were unanswered",
		w.number, unanswered)
}

// judgeShared holds the ledger against queues that were all emptied: what was acknowledged, not
// handed out and not expired must not be missing, but for one group for each pop without a reply.
func (r *run) judgeShared(now int64) {
	type group struct {
		class int
		queue int16
		key   keyOf
	}
	missing := map[group]ID{}
	r.ledger.each(func(id ID, e *entry) {
		if e.state == acked && !e.mayExpire(now) && r.queues.all[e.queue].kind != private {
			missing[group{r.queues.slackClass(int(e.queue)), e.queue, e.key}] = id
		}
	})
	count := map[int]int{}
	for g := range missing {
		count[g.class]++
	}
	for g, id := range missing {
		if count[g.class] > r.slack[g.class] {
			r.add(Lost, "packet %v of %s was acknowledged; %d groups are missing and %d pops had no reply",
				id, r.queues.all[g.queue].name, count[g.class], r.slack[g.class])
		}
	}
}
