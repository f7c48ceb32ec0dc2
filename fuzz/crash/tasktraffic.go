package crash

import (
	"fmt"
	"slices"
	"strings"
)

// choose adds the next request.
func (c *taskClient) choose() {
	n, queue := c.rng.IntN(1000), c.queue()
	switch rare := c.rng.IntN(10_000); {
	case rare < 4:
		c.harvest()
	case rare < 20:
		c.redrive([]string{jobs, chores}[rare%2], 1+c.rng.Int64N(50))
	case rare < 40 && c.number == taskPart:
		c.set()
	case rare < 49 && c.number == taskPart:
		c.close()
	case rare >= 9700:
		c.takeSlot()
	case rare >= 9300:
		c.recall()
	case rare >= 8800:
		c.useLatest()
	case rare >= 7700:
		c.share()
	case rare >= 7100:
		c.rest()
	case rare >= 6500:
		c.order()
	case n%25 == 0 && c.again():
	case n < 230 && (bounded(queue) || c.r.tasks.len() < maxTasks):
		c.add(c.push(queue, max(1, c.rng.IntN(6)-1)))
	case n < 250 && c.r.tasks.len() < maxTasks:
		claim := c.claim(workQueues(), 1, maxLease, 0, filter{})
		push := c.push(c.endless(), 1)
		claim.next = &push
		c.add(claim)
	case n < 500:
		c.add(c.claim(slices.Compact([]string{queue, c.queue()}), 1+c.rng.Int64N(4),
			30+c.rng.Int64N(maxLease-30), c.rng.Int64N(20), randomFilter(c.rng)))
	case len(c.forgotten) > 0 && n%8 == 0:
		at := c.rng.IntN(len(c.forgotten))
		c.finish(c.forgotten[at])
	case len(c.held) > 0:
		at := c.rng.IntN(len(c.held))
		h := c.held[at]
		switch {
		case n < 600:
			c.extend(h)
		case n < 700:
			c.note(h)
		default:
			c.held = slices.Delete(c.held, at, at+1)
			c.leave(h)
			c.finish(h)
		}
	default:
		c.add(c.claim(workQueues(), 1, maxLease, 0, filter{}))
	}
}

// queue is any work queue; endless is one without a bound.
func (c *taskClient) queue() string   { return workQueues()[c.rng.IntN(len(workQueues()))] }
func (c *taskClient) endless() string { return workQueues()[c.rng.IntN(2)] }

// finish ends a claim in one of the ways.
func (c *taskClient) finish(h *heldTask) {
	if !c.r.tasks.leave(h.of) {
		c.extend(h)
		return
	}
	switch n := c.rng.IntN(100); {
	case n < 40:
		c.add(c.ack(h))
	case n < 50 && c.r.tasks.len() < maxTasks:
		ack, push := c.ack(h), c.push(c.endless(), 1)
		if h.of.queue != shelf { // which may drop it instead
			push.of.after = h
		}
		ack.next = &push
		c.add(ack)
	case n < 60 && len(c.held) > 0:
		at := c.rng.IntN(len(c.held))
		other := c.held[at]
		if other.of.queue != h.of.queue || !c.r.tasks.leave(other.of) {
			c.add(c.ack(h))
			break
		}
		c.held = slices.Delete(c.held, at, at+1)
		c.leave(other)
		c.add(c.ack(h, other))
	default:
		c.nack(h, n > 95)
	}
}

// push makes the push of so many new tasks at once. One may be unique. Those to the belt wait.
func (c *taskClient) push(queue string, count int) taskOp {
	made := task{queue: queue, priority: 1 + c.rng.Int64N(5), tags: randomTags(c.rng)}
	delay := int64(0)
	if c.rng.IntN(5) == 0 {
		delay = 1 + c.rng.Int64N(maxDelay)
	}
	if c.rng.IntN(3) == 0 {
		made.key = fmt.Sprintf("key-%d", c.rng.IntN(groupKeys))
	}
	p := pushed{queue: queue, args: []string{"QPUSH", queue}, waits: queue == belt}
	if count > 1 {
		p.args = []string{"QMPUSH", queue, decimal(int64(count))}
	}
	asked := c.r.ledger.now()
	for range count {
		id, of := c.r.tasks.add(c.number, made, asked, delay)
		payload := string(appendPayload(nil, id, min(randomSize(c.rng), maxElement)))
		p.ids, p.all, p.args = append(p.ids, id), append(p.all, of), append(p.args, payload)
		p.bytes += len(made.key) + len(payload)
	}
	p.args = append(p.args, "PRIO", decimal(made.priority))
	p.args = append(p.args, made.tags.args()...)
	if made.key != "" {
		p.args = append(p.args, "KEY", made.key)
	}
	if delay != 0 {
		p.args = append(p.args, "DELAY", decimal(delay))
	}
	switch first := p.all[0]; {
	case count > 1:
		for _, of := range p.all {
			of.with = p.all
		}
	case delay == 0 && queue == belt:
		p.args = append(p.args, "UNIQUE", decimal(int64(p.ids[0])))
		first.unique = slices.Clone(p.args)
	case delay == 0 && queue == chores:
		p.args = append(p.args, "UNIQUE", decimal(int64(p.ids[0])), "WINDOW", decimal(window))
		first.unique = slices.Clone(p.args)
	}
	if p.waits && (c.number != taskPart || c.rng.IntN(16) != 0) { // the first client waits for ever at times
		p.args = append(p.args, "BLOCK", decimal(1+c.rng.Int64N(4)))
	}
	pushes, since := counterName{queue, "pushed"}, c.r.tasks.gates()
	return taskOp{args: p.args, of: p.all[0], waits: p.waits, counter: pushes, counts: int64(count), answer: func(reply any) {
		names := namesOf(reply)
		surely, maybe := c.r.tasks.shut(queue, since)
		switch {
		case len(names) != count:
			c.refused(p, reply, maybe)
			c.r.tasks.counts(pushes, -int64(count))
			return
		case surely:
			c.r.report(Open, "task %v was pushed to %s, which was closed or paused", p.ids[0], queue)
		}
		c.r.tasks.counted(pushes, int64(count), int64(count), c.r.ledger.now())
		for i, of := range p.all {
			if sure := c.r.tasks.acknowledge(of, names[i], c.r.ledger.now(), delay); sure > bound {
				c.r.report(Overfull, "%d tasks are on the belt, whose bound is %d", sure, bound)
			}
		}
	}}
}

// pushed is a push of one task or more.
type pushed struct {
	queue string
	args  []string
	ids   []ID
	all   []*task
	bytes int // of keys and payloads
	waits bool
}

// namesOf returns the ids in the reply to a push, none if nothing was added.
func namesOf(reply any) (names []string) {
	list, many := reply.([]any)
	if !many {
		list = []any{reply}
	}
	for _, v := range list {
		if name, ok := v.(string); ok {
			names = append(names, name)
		}
	}
	return names
}

// refused enters the reply to a push that added nothing. shut says that the queue may have been
// closed or paused.
func (c *taskClient) refused(p pushed, reply any, shut bool) {
	text, _ := reply.(replyError)
	prefix, _, _ := strings.Cut(string(text), " ")
	nulls, _ := reply.([]any)
	good := false
	switch {
	case p.queue == shelf && len(p.all) == 1 && reply == nil:
		c.r.tasks.missed(p.ids[0], p.all[0])
		good = true
	case p.queue == shelf && len(nulls) == len(p.all): // some of the tasks alone might have had room
		good = len(namesOf(reply)) == 0
	case reply == nil:
		good = p.waits
	case prefix == "FULL":
		good = p.queue == crate
	case prefix == "ERR":
		good = p.queue == crate && p.bytes > boundBytes
	case prefix == "CLOSED" || prefix == "PAUSED":
		good = shut
	}
	for i, of := range p.all {
		if !c.r.tasks.refuse(p.ids[i], of) {
			good = false
		}
	}
	if !good {
		c.unexpected(p.args, reply)
	}
}

// claim makes the claim of tasks that match, of the first queue that has any, for a lease in
// milliseconds. It waits for them so long, if that is not 0.
func (c *taskClient) claim(queues []string, count, lease, block int64, of filter) taskOp {
	args := append(strings.Fields("QCLAIM "+strings.Join(queues, " OR ")), "COUNT", decimal(count), "LEASE", decimal(lease),
		"CONSUMER", fmt.Sprint("worker-", c.number))
	args = append(args, of.args()...)
	if block != 0 {
		args = append(args, "BLOCK", decimal(block))
	}
	asked, floor := c.r.ledger.now(), c.r.tasks.top.Load()
	return taskOp{args: args, claims: count, waits: block != 0, answer: func(reply any) {
		if !c.drained(queues, reply) {
			c.took(args, reply, asked, floor, lease, of)
		}
	}}
}

// ack makes the ack of tasks of one queue.
func (c *taskClient) ack(all ...*heldTask) taskOp {
	args := []string{"QACK", all[0].of.queue}
	for _, h := range all {
		args = append(args, h.name, decimal(h.turn.token))
		h.turn.acking++
		c.r.tasks.leave(h.of)
	}
	asked := c.r.ledger.now()
	acks := counterName{all[0].of.queue, "acked"}
	return taskOp{args: args, counter: acks, counts: int64(len(all)), answer: func(reply any) {
		n, answered := reply.(int64)
		now := c.r.ledger.now()
		c.r.tasks.counted(acks, int64(len(all)), n, now)
		switch {
		case len(all) == 1 && c.refusedBy(args, reply, all[0]):
			all[0].turn.acking--
		case !answered || n < 0 || n > int64(len(all)):
			c.unexpected(args, reply)
		case n == int64(len(all)):
			for _, h := range all {
				c.good("an ack", h, asked)
				h.turn.acked = true
				h.turn.acking--
				if h.of.queue == chores {
					h.turn.goneAt, h.turn.goneBy = asked+retain*1e6, now+retain*1e6
				}
				c.r.tasks.finish(h.of)
			}
		case n == 0:
			for _, h := range all {
				h.turn.refuse(now)
				h.turn.acking--
			}
		}
	}}
}

const nackReason = "it failed"

// nack returns a task, at times with a delay of its own or as if it had not been tried, or lets it
// die.
func (c *taskClient) nack(h *heldTask, dead bool) {
	mortal := !bounded(h.of.queue)
	dead = dead && mortal
	args := []string{"QNACK", h.of.queue, h.name, decimal(h.turn.token), "REASON", nackReason}
	snooze := !dead && c.rng.IntN(4) == 0
	attempts := h.turn.attempt
	if snooze {
		attempts--
		args = append(args, "UNCOUNTED")
	}
	backoff := int64(backoffMin) << max(0, attempts-1)
	least, most := backoff*9/10-1, backoff*11/10+1
	switch {
	case dead:
		args = append(args, "DEAD")
	case !mortal || c.rng.IntN(2) == 0:
		least = 1 + c.rng.Int64N(maxDelay)
		most = least
		args = append(args, "DELAY", decimal(least))
	}
	asked, t := c.r.ledger.now(), h.turn
	before := t.notAfter
	t.returning++
	if snooze {
		t.snoozing++
	}
	t.notAfter = never
	t.dead = t.dead || dead
	nacks := counterName{h.of.queue, "nacked"}
	c.add(taskOp{args: args, counter: nacks, counts: 1, answer: func(reply any) {
		t.returning--
		if snooze {
			t.snoozing--
		}
		if c.refusedBy(args, reply, h) {
			c.r.tasks.counts(nacks, -1)
			t.notAfter = before
			t.dead = t.dead && t.died != 0
			return
		}
		c.r.tasks.counted(nacks, 1, 1, c.r.ledger.now())
		c.good("a nack", h, asked)
		t.returned, t.reasoned, t.snoozed = true, true, snooze
		dies := dead || !snooze && mortal && t.attempt >= maxAttempts
		switch state := fmt.Sprint(reply); {
		case dies && (state == "dead" || state == "ready" && h.of.queue == jobs):
			t.died, t.notAfter, t.dead = asked, 0, true
		case !dies && state == "delayed":
			t.notBefore, t.notAfter = asked+least*1e6, c.r.ledger.now()+most*1e6
		default:
			c.unexpected(args, reply)
		}
	}})
}

func (c *taskClient) extend(h *heldTask) {
	lease := 30 + c.rng.Int64N(maxLease-30)
	args := []string{"QEXTEND", h.of.queue, h.name, decimal(h.turn.token), decimal(lease)}
	asked, t := c.r.ledger.now(), h.turn
	t.extending++
	ends, endsBy := t.ends, t.endsBy
	t.ends, t.endsBy = min(ends, asked+lease*1e6), never
	c.add(taskOp{args: args, answer: func(reply any) {
		t.extending--
		if c.refusedBy(args, reply, h) {
			t.ends, t.endsBy = ends, endsBy
			return
		}
		end, ok := reply.(int64)
		if !ok {
			c.unexpected(args, reply)
			return
		}
		c.good("an extension", h, asked)
		if t.told = end; t.extending == 0 {
			t.ends, t.endsBy = asked+lease*1e6, c.r.ledger.now()+lease*1e6
		}
	}})
}

// note notes how far the client has come.
func (c *taskClient) note(h *heldTask) {
	percent := 1 + c.rng.Int64N(100)
	args := []string{"QPROGRESS", h.of.queue, h.name, decimal(h.turn.token), decimal(percent), "so far"}
	asked, t := c.r.ledger.now(), h.turn
	t.noting++
	c.add(taskOp{args: args, answer: func(reply any) {
		t.noting--
		if c.refusedBy(args, reply, h) {
			return
		}
		c.good("progress", h, asked)
		t.progress = percent
	}})
}

// harvest returns all claims of a queue.
func (c *taskClient) harvest() {
	queue := c.queue()
	c.change([]string{"QHARVEST", queue}, c.r.tasks.harvests, queue)
}

// redrive returns dead tasks that were pushed to a queue.
func (c *taskClient) redrive(queue string, count int64) {
	from := queue
	if queue == jobs {
		from = deadJobs
	}
	c.change([]string{"QREDRIVE", from, "COUNT", decimal(count)}, c.r.tasks.redrives, queue)
}

func (c *taskClient) change(args []string, of waves, queue string) {
	w := c.r.tasks.wave(of, queue, c.r.ledger.now())
	c.add(taskOp{args: args, answer: func(reply any) {
		if _, ok := reply.(int64); !ok {
			c.unexpected(args, reply)
		}
		c.r.tasks.end(w, c.r.ledger.now())
	}})
}

// set gives the shelf other values of the settings that change.
func (c *taskClient) set() {
	t := c.r.tasks
	t.mu.Lock()
	value := t.settings[len(t.settings)-1] + 1
	t.settings = append(t.settings, value)
	t.mu.Unlock()
	args := append([]string{"QSET", shelf}, settingsOf(shelf, value)...)
	c.add(taskOp{args: args, answer: func(reply any) {
		if reply != "OK" {
			c.unexpected(args, reply)
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		t.settings = t.settings[slices.Index(t.settings, value):]
	}})
}
