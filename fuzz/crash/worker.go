package crash

import (
	"fmt"
	"slices"

	"github.com/holdfast-queue/holdfast/netproto/pinpriq"
)

// op is one request of a worker.
type op struct {
	pop   bool
	queue int
	sent  packet // of a push
}

// worker is a client that pushes and pops.
type worker struct {
	pipeline[op]
	models map[int]*model // its private queues, as of the last reply
	group  []packet
}

func (w *worker) connect() (err error) {
	w.link, err = w.r.server.dial(pinpriqListener)
	return err
}

func (w *worker) work() { w.follow("a worker", w.build, w.answer) }

// build makes the next pipeline. Its last request has a reply, which acknowledges the rest.
func (w *worker) build(requests int) {
	for range requests - 1 {
		if q, push := w.choose(); push {
			w.push(q)
		} else {
			w.pop(q)
		}
	}
	w.pop(pick(w.rng, w.r.queues.own[w.number]))
	w.asked = w.r.ledger.now() // as late as possible: what had expired by then must not come
}

// choose picks what the next request does. Queues that are popped keep about their length.
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
		return pick(w.rng, set.byKind[subscribed]), true
	}
}

func (w *worker) push(q int) {
	p := packet{sent: w.asked, queue: int16(q)}
	grouped := w.rng.IntN(10) < 3
	if grouped {
		p.key = keyOf(w.rng.IntN(groupKeys))
	}
	p.prio = randomPriority(w.rng, grouped)
	switch w.r.queues.all[q].kind {
	case expiring:
		p.ttl = int32(randomTTL(w.rng))
	case private, shared:
		p.ttl = int32(farTTL(w.rng))
	}
	p = w.r.ledger.add(w.number, p, !grouped)
	w.link.addPush(w.r.queues.all[q].name, &p, randomSize(w.rng))
	w.ops = append(w.ops, op{queue: q, sent: p})
}

func (w *worker) pop(q int) {
	w.link.add(pinpriq.OpPop, w.r.queues.all[q].name)
	w.ops = append(w.ops, op{pop: true, queue: q})
}

// answer reads the next reply. It proves that everything sent before its pop is on disk.
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
		w.r.ledger.ack(o.sent.id, now)
		if m := w.models[o.queue]; m != nil {
			*m = append(*m, o.sent)
		}
	}
	w.r.pushed.Add(int64(at - w.done))
	w.r.ops[ofPinpriq].Add(int64(at - w.done))
	w.done = at + 1
	if len(w.group) > 0 {
		w.r.ops[ofPinpriq].Add(1)
	}
	if m := w.models[pop.queue]; m != nil {
		want, got := ids(m.pop()), ids(w.group)
		if !slices.Equal(want, got) {
			w.r.report(Order, "pop of %s gave %s instead of %s", w.r.queues.all[pop.queue].name, describe(got), describe(want))
		}
	} else {
		w.r.checkGroup(pop.queue, w.group)
	}
	return nil
}

// hangUp counts the pops without a reply of queues that others use, too.
func (w *worker) hangUp(endKind) int {
	w.link.conn.Close()
	for _, o := range w.unanswered() {
		if o.pop && w.models[o.queue] == nil {
			w.r.slack[w.r.queues.slackClass(o.queue)]++
		}
	}
	return len(w.unanswered())
}

// describe lists the first packets for a report.
func describe(all []ID) string {
	if len(all) == 0 {
		return "nothing"
	}
	return fmt.Sprint(all[:min(len(all), 8)])
}
