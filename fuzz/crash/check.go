package crash

import (
	"fmt"
	"math"
	"slices"
)

// check empties queues and compares them: the workers' own always, the shared ones if all is true.
func (r *run) check(all bool) error {
	link, err := r.server.dialToCheck(pinpriqListener)
	if err != nil {
		return err
	}
	defer link.conn.Close()
	d := &drainer{r: r, part: len(r.workers), link: link}
	for _, w := range r.workers {
		got := make(map[int][][]packet)
		for _, q := range r.queues.own[w.number] {
			if got[q], err = d.empty(q); err != nil {
				return err
			}
		}
		r.checkWorker(w, got)
	}
	if !all {
		r.ledger.each(func(p *packet) {
			if r.queues.all[p.queue].kind == private && p.state != popped {
				p.state = gone
			}
		})
		return nil
	}
	for q, queue := range r.queues.all {
		if queue.kind != private {
			if _, err := d.empty(q); err != nil {
				return err
			}
		}
	}
	r.checkShared(r.ledger.now())
	r.ledger.forget()
	clear(r.slack)
	return nil
}

// String shows who pushed the packet, and the number of the push.
func (id ID) String() string { return fmt.Sprintf("%d:%d", id.part(), id.serial()) }

// queueOf is the queue that the packet of a delivery was pushed to. It is any that has subscribers
// if the packet is not known, which take reports.
func (r *run) queueOf(payload []byte) int {
	unknown := r.queues.byKind[subscribed][0]
	id, whole := parsePayload(payload)
	if !whole || id.part() >= len(r.ledger.parts) {
		return unknown
	}
	p := &r.ledger.parts[id.part()]
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := id.serial() - p.first; at < uint64(len(p.packets)) {
		return int(p.packets[at].queue)
	}
	return unknown
}

// take checks a packet that came out of queue q by a request that was sent at asked (0 for a
// delivery), and enters it into the ledger. ok is false if it should not have come.
func (r *run) take(q int, key, payload []byte, asked int64) (p packet, ok bool) {
	name := r.queues.all[q].name
	id, whole := parsePayload(payload)
	if !whole {
		r.report(Corrupt, "a packet of %s has a payload of %d bytes that nobody pushed (near %v)", name, len(payload), id)
		return packet{}, false
	}
	p, broken := r.ledger.take(id)
	switch {
	case broken == Corrupt:
		r.report(Corrupt, "packet %v of %s was never pushed", id, name)
	case broken == Returned:
		r.report(Returned, "packet %v of %s had been handed out, or had been found gone, before", id, name)
	case int(p.queue) != q:
		r.report(Corrupt, "packet %v of %s came out of %s", id, r.queues.all[p.queue].name, name)
	case string(key) != string(p.key.append(nil)):
		r.report(Corrupt, "packet %v of %s has key %x instead of %x", id, name, key, p.key.append(nil))
	case asked != 0 && p.mustExpire(asked):
		r.report(Expired, "packet %v of %s lives %d ms and was handed out %d ms after its push",
			id, name, p.ttl, (asked-p.by)/1e6)
	default:
		return p, true
	}
	return packet{}, false
}

// newer says whether a was surely pushed after b.
func newer(a, b *packet) bool {
	if a.id.part() == b.id.part() {
		return a.id > b.id
	}
	return a.sent > b.pushedBy()
}

// checkGroup checks the packets of one reply. All have one key. The selected packet is first; the
// others follow by priority, the newest first, those of priority 0 last.
func (r *run) checkGroup(q int, group []packet) {
	for i := 1; i < len(group); i++ {
		a, b := &group[i-1], &group[i]
		switch {
		case b.key != a.key:
			r.report(Order, "a reply of %s holds %v and %v, which have different keys", r.queues.all[q].name, a.id, b.id)
		case rank(b.prio) < rank(a.prio):
			r.report(Order, "a reply of %s has %v of priority %d before %v of priority %d",
				r.queues.all[q].name, a.id, a.prio, b.id, b.prio)
		case a.prio == b.prio && newer(b, a):
			r.report(Order, "a reply of %s has %v before %v, which is newer", r.queues.all[q].name, a.id, b.id)
		}
	}
	if len(group) > 0 && group[0].prio == 0 {
		r.report(Order, "a reply of %s begins with %v, whose priority is 0", r.queues.all[q].name, group[0].id)
	}
}

// checkDrained checks the replies of a queue that one client emptied while nobody else used it.
// Each selected packet was the best of what was left, and took all of its key along.
func (r *run) checkDrained(q int, replies [][]packet) {
	name := r.queues.all[q].name
	level := uint8(0)          // priority of the last selected packet
	by := int64(math.MaxInt64) // when the earliest of those selected at that priority was there
	last := map[int]ID{}       // by client: the last one selected at that priority
	closed := map[keyOf]ID{}   // keys that were popped
	for _, group := range replies {
		r.checkGroup(q, group)
		for i := range group {
			t := &group[i]
			if t.prio != 0 && t.prio < level {
				r.report(Order, "%s gave %v of priority %d after one of priority %d", name, t.id, t.prio, level)
			}
			newest := t.sent > by || last[t.id.part()] != 0 && t.id > last[t.id.part()]
			if t.prio == level && newest {
				r.report(Order, "%s gave %v after an older one of its priority %d", name, t.id, level)
			}
		}
		selected := &group[0]
		if selected.prio != level {
			level, by = selected.prio, math.MaxInt64
			clear(last)
		}
		by = min(by, selected.pushedBy())
		last[selected.id.part()] = selected.id
		if before, again := closed[selected.key]; again {
			r.report(Order, "%s gave %v after %v, which has the same key and was popped by itself", name, selected.id, before)
		}
		closed[selected.key] = selected.id
	}
}

// checkWorker compares a worker's own queues, as they came out after the restart, with its models.
// They must be as after a first part of the requests without a reply. It leaves the models empty.
func (r *run) checkWorker(w *worker, drained map[int][][]packet) {
	got := make(map[int][][]ID, len(drained))
	for q, replies := range drained {
		for _, group := range replies {
			got[q] = append(got[q], ids(group))
		}
	}
	models := make(map[int]model, len(w.models))
	for q, m := range w.models {
		models[q] = slices.Clone(*m)
	}
	agreed := r.agree(models, got)
	for _, o := range w.unanswered() {
		m, own := models[o.queue]
		switch {
		case agreed || !own:
			continue
		case o.pop:
			m.pop()
		default:
			m = append(m, o.sent)
		}
		models[o.queue] = m
		agreed = r.agree(models, got)
	}
	if !agreed {
		r.disagree(w, models, got)
	}
	for _, m := range w.models {
		*m = nil
	}
	w.forget()
}

func (r *run) agree(models map[int]model, got map[int][][]ID) bool {
	for q, m := range models {
		if !slices.EqualFunc(slices.Clone(m).drain(groupKeys), got[q], slices.Equal) {
			return false
		}
	}
	return true
}

// disagree reports what is wrong with a worker's queues. models is how they are after all requests.
func (r *run) disagree(w *worker, models map[int]model, got map[int][][]ID) {
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
				r.report(Lost, "packet %v of %s, priority %d, was acknowledged", p.id, name, p.prio)
			}
		}
	}
	r.report(Order, "the queues of worker %d are not as they were at any moment: %d requests were unanswered",
		w.number, len(w.unanswered()))
}

// checkShared compares the ledger with queues that were all emptied. No packet may be missing that
// was acknowledged, not handed out and not expired, except one group for each pop without a reply.
func (r *run) checkShared(now int64) {
	type group struct {
		class int
		queue int16
		key   keyOf
	}
	missing := map[group]ID{}
	r.ledger.each(func(p *packet) {
		if p.state == acked && !p.mayExpire(now) && r.queues.all[p.queue].kind != private {
			missing[group{r.queues.slackClass(int(p.queue)), p.queue, p.key}] = p.id
		}
	})
	count := map[int]int{}
	for g := range missing {
		count[g.class]++
	}
	for g, id := range missing {
		if count[g.class] > r.slack[g.class] {
			r.report(Lost, "packet %v of %s was acknowledged; %d groups are missing and %d pops had no reply",
				id, r.queues.all[g.queue].name, count[g.class], r.slack[g.class])
		}
	}
}
