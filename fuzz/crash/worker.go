package crash

import (
	"math/rand/v2"
	"slices"
	"strings"
)

// op is one request of a worker.
type op struct {
	pop   bool
	queue int
	at    stored // of a push
}

// worker is one connection that pushes and pops, a pipeline of random length at a time. While it
// runs all of it belongs to its goroutine, which ends with the connection or when the run's load
// is over; then it belongs to the harness.
type worker struct {
	r      *run
	number int
	rng    *rand.Rand
	link   *link
	models map[int]*model // its private queues, as of the last reply
	ops    []op           // what was sent; those before done are answered
	done   int
	asked  int64 // when they were sent
	group  []took
}

// took is a packet that was handed out, and what the ledger knew of it.
type took struct {
	id ID
	e  entry
}

const maxPipeline = 64

// work loads the server until it is gone or the load is over. It leaves in ops[done:] what was sent
// and not answered.
func (w *worker) work() {
	w.ops, w.done = w.ops[:0], 0
	for {
		if !w.r.gate.enter() {
			return
		}
		w.build()
		w.asked = w.r.ledger.now()
		err := w.link.send()
		w.r.gate.leave()
		for err == nil && w.done < len(w.ops) {
			err = w.answer()
		}
		if err != nil {
			w.r.broken("a worker", err)
			return
		}
	}
}

// build makes the next pipeline; its last request has a reply, which acknowledges the rest.
func (w *worker) build() {
	w.ops, w.done = w.ops[:0], 0
	n := 1 + w.rng.IntN(maxPipeline)
	if w.rng.IntN(4) == 0 {
		n = 1
	}
	now := w.r.ledger.now()
	for range n - 1 {
		if q, push := w.choose(); push {
			w.push(q, now)
		} else {
			w.pop(q)
		}
	}
	w.pop(pick(w.rng, w.r.queues.own[w.number]))
}

// choose picks what the next request does. Queues that are popped stay about as long as they are.
func (w *worker) choose() (q int, push bool) {
	set := w.r.queues
	n := w.rng.IntN(100)
	switch {
	case n < 40:
		q = pick(w.rng, set.own[w.number])
		return q, w.rng.IntN(100) < 65 && len(*w.models[q]) < 200
	case n < 70:
		return pick(w.rng, set.byKind[shared]), w.rng.IntN(100) < 60
	case n < 75:
		return pick(w.rng, set.byKind[standing]), true
	case n < 80:
		return pick(w.rng, set.byKind[expiring]), w.rng.IntN(100) < 90
	default:
		return pick(w.rng, set.byKind[fed]), true
	}
}

func (w *worker) push(q int, now int64) {
	e := entry{sent: now, queue: int16(q)}
	grouped := w.rng.IntN(10) < 3
	if grouped {
		e.key = keyOf(w.rng.IntN(groupKeys))
	}
	e.prio = randomPriority(w.rng, grouped)
	switch w.r.queues.all[q].kind {
	case expiring:
		e.ttl = int32(randomTTL(w.rng))
	case private, shared:
		e.ttl = int32(farTTL(w.rng))
	}
	id, key := w.r.ledger.add(w.number, e, !grouped)
	w.link.addPush(w.r.queues.all[q].name, id, key, e.prio, int(e.ttl), randomSize(w.rng))
	w.ops = append(w.ops, op{queue: q, at: stored{id: id, key: key, prio: e.prio}})
}

func (w *worker) pop(q int) {
	w.link.add('P', w.r.queues.all[q].name)
	w.ops = append(w.ops, op{pop: true, queue: q})
}

// answer reads the next reply. What was sent before its pop is now known to be on disk.
func (w *worker) answer() error {
	at := w.done + slices.IndexFunc(w.ops[w.done:], func(o op) bool { return o.pop })
	pop := w.ops[at]
	w.group = w.group[:0]
	if err := w.link.receive(func(key, payload []byte) {
		if t, ok := w.r.take(pop.queue, key, payload, w.asked); ok {
			w.group = append(w.group, t)
		}
	}); err != nil {
		return err
	}
	now := w.r.ledger.now()
	for _, o := range w.ops[w.done:at] {
		w.r.ledger.ack(o.at.id, now)
		w.apply(o)
	}
	w.r.pushed.Add(int64(at - w.done))
	w.done = at + 1
	if len(w.group) > 0 {
		w.r.popped.Add(1)
	}
	if m := w.models[pop.queue]; m != nil {
		want, got := ids(m.pop()), idsTaken(w.group)
		if !slices.Equal(want, got) {
			w.r.add(Order, "pop of %s gave %s instead of %s", w.r.queues.all[pop.queue].name, w.r.describe(got), w.r.describe(want))
		}
	} else {
		w.r.checkGroup(pop.queue, w.group)
	}
	return nil
}

// apply brings the models up to a push.
func (w *worker) apply(o op) {
	if m := w.models[o.queue]; m != nil {
		*m = append(*m, o.at)
	}
}

// unanswered returns what was sent without a reply, and counts its pops of queues that others use.
func (w *worker) unanswered() []op {
	rest := w.ops[w.done:]
	for _, o := range rest {
		if o.pop && w.models[o.queue] == nil {
			w.r.slack[w.r.queues.slackClass(o.queue)]++
		}
	}
	return rest
}

func idsTaken(group []took) []ID {
	all := make([]ID, len(group))
	for i, t := range group {
		all[i] = t.id
	}
	return all
}

// describe lists packets for people, not too many.
func (r *run) describe(all []ID) string {
	if len(all) == 0 {
		return "nothing"
	}
	var b strings.Builder
	for i, id := range all {
		if i == 8 {
			b.WriteString(" …")
			break
		}
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(id.String())
	}
	return b.String()
}
