package crash

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// nanos is a moment of the run, of Unix milliseconds; millis the other way round.
func (r *run) nanos(ms int64) int64   { return (ms - r.ledger.start.UnixMilli()) * 1e6 }
func (r *run) millis(now int64) int64 { return r.ledger.start.UnixMilli() + now/1e6 }

// of returns a task that is known.
func (t *tasks) of(id ID) *task {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.all[id]
}

// makeQueues gives the work queues their settings.
func (r *run) makeQueues(link *link) error {
	var sets [][]string
	for _, queue := range append(workQueues(), deadJobs) {
		sets = append(sets, append([]string{"QSET", queue}, settingsOf(queue, firstValue)...))
	}
	sets = append(sets, []string{"QSET", recalls, "max-attempts", "0"}, makeRested("key"), r.tasks.makeOrdered())
	replies, err := link.ask(append(sets, r.tasks.makeShares()...))
	for _, reply := range replies {
		if reply != replyOK {
			r.report(Corrupt, "the reply to the settings of a work queue is %q", reply)
		}
	}
	r.tasks.settings = []int64{firstValue}
	return err
}

// checkTasks compares the work queues after a restart with what their clients know. If all is true
// it then works them off.
func (r *run) checkTasks(all bool) error {
	link, err := r.server.dialToCheck(redisListener)
	if err != nil {
		return err
	}
	defer link.conn.Close()
	if r.tasks.settings == nil {
		return r.makeQueues(link)
	}
	ask := [][]string{{"MULTI"}}
	queues := append(workQueues(), deadJobs)
	for _, queue := range queues {
		ask = append(ask, []string{"QLIST", queue, "COUNT", decimal(atOnce)}, []string{"QGET", queue}, []string{"QSTAT", queue}, []string{"QLEN", queue})
	}
	asked := r.ledger.now()
	replies, err := link.ask(append(ask, []string{"EXEC"}))
	if err != nil {
		return err
	}
	v, _ := parseReply(replies[len(replies)-1])
	answers, _ := v.([]any)
	if len(answers) != 4*len(queues) {
		r.report(Corrupt, "the reply to a look at the work queues is %.300q", replies[len(replies)-1])
		return nil
	}
	var shown []shownTask
	for i, queue := range queues {
		r.checkSettings(queue, pairs(answers[4*i+1]))
		r.checkCounters(queue, pairs(answers[4*i+2]))
		before := len(shown)
		list, _ := answers[4*i].([]any)
		for len(list) == 2 { // more pages have only tasks that are done
			shown = append(shown, shownTasks(list[1])...)
			cursor, _ := list[0].(string)
			if cursor == "0" {
				break
			}
			replies, err := link.ask(one("QLIST", queue, "CURSOR", cursor, "COUNT", decimal(atOnce)))
			if err != nil {
				return err
			}
			v, _ := parseReply(replies[0])
			list, _ = v.([]any)
		}
		if len(list) != 2 {
			r.report(Corrupt, "the list of %s is %.300q", queue, list)
		}
		r.checkBound(queue, shown[before:], pairs(answers[4*i+2]), answers[4*i+3])
	}
	r.compareTasks(shown, asked, r.ledger.now())
	r.tasks.pruneUniques()
	if err := r.checkBeside(link, all); err != nil || !all {
		return err
	}
	return r.workOff(link)
}

// checkBeside does what checkTasks does for the queues that have rules of their own.
func (r *run) checkBeside(l *link, all bool) error {
	for _, check := range []func(*link, bool) error{r.checkSlots, r.checkRecalls, r.checkShares, r.checkRests, r.checkOrder, r.checkLatest} {
		if err := check(l, all); err != nil {
			return err
		}
	}
	return nil
}

// checkSettings compares the settings of a queue, and goes on from what was found.
func (r *run) checkSettings(queue string, found map[string]any) {
	t := r.tasks
	at := slices.IndexFunc(t.settings, func(value int64) bool { return shows(found, settingsOf(queue, value)) })
	if at < 0 {
		r.report(Lost, "the settings of %s are %v, with one of %v", queue, found, t.settings)
	} else if queue == shelf {
		t.settings = t.settings[at : at+1]
	}
	closed := found["closed"] == "yes"
	if closed && (queue != belt || !t.closing) || !closed && queue == belt && t.closed {
		r.report(Open, "%s has %q for closed, and clients closed the belt: %v", queue, found["closed"], t.closed)
	}
	if queue == belt {
		t.closing, t.closed = closed, closed
	}
}

// compareTasks compares what lists show with what the clients know, and goes on from there.
func (r *run) compareTasks(shown []shownTask, asked, came int64) {
	t := r.tasks
	t.mu.Lock()
	defer t.mu.Unlock()
	r.checkChainsLocked(shown)
	r.checkBatchesLocked(shown)
	there, alive := map[ID]*task{}, 0
	var rested []stayed
	t.sure = 0
	for i := range shown {
		s := &shown[i]
		of, broken := t.knownLocked(s)
		switch {
		case broken != "":
			r.report(broken, "task %v (%s) is %s in %s, and had ended, was never pushed, or not so", s.id, s.name, s.state, s.queue)
			continue
		case there[s.id] != nil:
			r.report(Doubled, "task %v is there twice, once %s in %s", s.id, s.state, s.queue)
			continue
		}
		there[s.id] = of
		t.repeatLocked(of)
		last := of.turns[len(of.turns)-1]
		if s.state == "done" {
			r.checkDone(of, last, s, asked)
			of.turns, of.pushed = []*turn{last}, true
			continue
		}
		of.leaving, of.repeats = false, 0
		if !bounded(of.queue) {
			alive++
		}
		if of.queue == belt {
			t.sure++
		}
		if of.queue == shelf && of.rested(s) {
			rested = append(rested, stayed{s.id, s.priority, last.came})
		}
		if surely, _ := of.ended(); surely {
			r.report(Returned, "task %v is %s again after its ack", s.id, s.state)
		}
		t.unseen += r.checkShown(of, last, s, asked, came)
		first := r.firstTurn(last, s, came)
		if s.token == last.token && s.token != 0 {
			*last = *first // a client may hold it; what had no reply was not carried out, or shows
		} else {
			last.refuse(came)
			last = first
		}
		of.turns, of.pushed = []*turn{last}, true
	}
	for id, of := range t.all {
		last := of.turns[len(of.turns)-1]
		switch _, ended := of.ended(); {
		case there[id] != nil:
		case of.pushed && !ended && of.queue == shelf && (!last.live(came) || t.harvests.between(shelf, last.asked, came)):
			t.misses = append(t.misses, miss{id, of.priority, last.asked})
		case of.pushed && !ended:
			r.report(Lost, "task %v (%s) of %s is gone", id, of.name, of.queue)
		case last.acked && came < last.goneAt-int64(clockSlack):
			r.report(Lost, "task %v (%s) of %s is gone %d ms before its time after the ack", id, of.name, of.queue, (last.goneAt-came)/1e6)
		}
	}
	r.checkMissesLocked(rested)
	r.checkUnseenLocked()
	t.all, t.alive, t.lost, t.unseen = there, alive, 0, 0
	clear(t.harvests)
	clear(t.redrives)
}

// checkDone compares a task that is done in a list with its last turn, and enters that it is.
func (r *run) checkDone(of *task, last *turn, s *shownTask, asked int64) {
	const slack = int64(clockSlack)
	surely, maybe := of.ended()
	end := r.nanos(s.expires)
	switch {
	case s.queue != chores || !maybe:
		r.report(Lost, "task %v is done in %s, and nobody acknowledged it", s.id, s.queue)
	case s.attempt != last.attempt:
		r.report(Attempts, "task %v is done at attempt %d after %d", s.id, s.attempt, last.attempt)
	case end < asked-slack || surely && (end < last.goneAt-slack || end > last.goneBy+slack):
		r.report(Stuck, "task %v, which is done, stays until %d ms after it was asked for", s.id, (end-asked)/1e6)
	}
	last.acked, last.acking, last.goneAt, last.goneBy = true, 0, end, end
}

// checkChainsLocked compares both halves of each transaction without a reply that acknowledges a
// task and pushes another.
func (r *run) checkChainsLocked(shown []shownTask) {
	there := map[ID]*shownTask{}
	for i := range shown {
		there[shown[i].id] = &shown[i]
	}
	for id, of := range r.tasks.all {
		h := of.after
		if of.pushed || h == nil || r.tasks.all[h.id] != h.of {
			continue
		}
		acks := 0 // that may have ended the one before, besides those with a reply
		for _, at := range h.of.turns {
			acks += at.acking
		}
		pushed, before := there[id] != nil || len(of.turns) > 1, there[h.id]
		surely, _ := h.of.ended()
		switch gone := before == nil || before.state == "done"; {
		case gone && !surely && acks == 1 && !pushed:
			r.report(Order, "task %v was acknowledged, and %v not pushed in the same transaction", h.id, id)
		case !gone && before.token == h.turn.token && pushed:
			r.report(Order, "task %v was pushed, and %v not acknowledged in the same transaction", id, h.id)
		}
	}
}

// checkBatchesLocked looks for pushes of several tasks, without a reply, that have added a part of
// them. The shelf may drop the others.
func (r *run) checkBatchesLocked(shown []shownTask) {
	came := map[*task]bool{}
	for i := range shown {
		came[r.tasks.all[shown[i].id]] = true
	}
	for id, of := range r.tasks.all {
		came[of] = came[of] || len(of.turns) > 1
		missing := func(other *task) bool { return !came[other] && len(other.turns) == 1 }
		if !of.pushed && of.queue != shelf && came[of] && slices.ContainsFunc(of.with, missing) {
			r.report(Order, "task %v of %s is there, and others of the same push are not", id, of.queue)
		}
		of.with = nil
	}
}

// firstTurn is what is known of a task that a restart shows.
func (r *run) firstTurn(last *turn, s *shownTask, came int64) *turn {
	first := &turn{
		token: max(s.token, last.token), attempt: s.attempt, asked: came, came: came, returned: s.token == 0,
		progress: s.progress,
	}
	if s.token != 0 {
		first.ends, first.endsBy, first.told = r.nanos(s.leaseEnd), r.nanos(s.leaseEnd), s.leaseEnd
	}
	if s.state == "delayed" {
		first.notBefore, first.notAfter = r.nanos(s.notBefore), r.nanos(s.notBefore)
	}
	if s.dead() {
		first.dead, first.died = true, came
	}
	return first
}

// checkShown compares a task in a list, which was asked for and came at these moments, with its
// last turn. It returns how many claims nobody saw after that.
func (r *run) checkShown(of *task, last *turn, s *shownTask, asked, came int64) (unseen int64) {
	redriven := r.tasks.redrives.between(of.queue, last.asked, came)
	harvested := r.tasks.harvests.between(of.queue, last.asked, came)
	claimed := s.token == last.token && s.token != 0
	attempts := s.attempt
	if s.queue == deadJobs { // it had all attempts, or a client asked for its death
		if attempts = max(maxAttempts, last.attempt); last.dead {
			attempts = last.attempt
		}
	}
	unseen, ok := last.unseen(attempts, redriven)
	switch {
	case !ok || claimed && unseen != 0:
		r.report(Attempts, "task %v (%s) shows attempt %d after %d", s.id, s.state, s.attempt, last.attempt)
		return 0
	case s.state == "dead" && !last.dead && s.attempt < maxAttempts:
		r.report(Attempts, "task %v is dead after %d attempts", s.id, s.attempt)
	case s.token != 0 && s.token < last.token:
		r.report(Tokens, "task %v is claimed with token %d after %d", s.id, s.token, last.token)
	case !claimed && last.live(came) && !harvested:
		r.report(Lost, "task %v is %s and lost its claim, whose lease ends in %d ms", s.id, s.state, (last.ends-came)/1e6)
	case !s.dead() && last.died != 0 && !r.tasks.redrives.between(of.queue, last.died, came):
		r.report(Returned, "task %v is %s after its death", s.id, s.state)
	case last.reasoned && unseen == 0 && !redriven && !strings.HasSuffix(s.reason, nackReason):
		r.report(Lost, "task %v came back for the reason %q instead of %q", s.id, s.reason, nackReason)
	case (s.queue == deadJobs) != (s.origin == jobs):
		r.report(Lost, "task %v is in %s and has the origin %q", s.id, s.queue, s.origin)
	}
	switch s.state {
	case "claimed":
		r.checkClaimed(last, s, claimed, asked)
	case "ready":
		if came < last.notBefore-int64(clockSlack) && unseen == 0 && !redriven {
			r.report(Early, "task %v is ready %d ms before its delay ends", s.id, (last.notBefore-came)/1e6)
		}
	case "delayed":
		if end := r.nanos(s.notBefore); end < asked-int64(clockSlack) || end-int64(clockSlack) > last.notAfter {
			r.report(Stuck, "task %v is delayed until %d ms after it was asked for, which nobody wished", s.id, (end-asked)/1e6)
		}
	}
	return unseen
}

// checkClaimed compares a task in a list that is claimed. known says that its last turn is the
// claim.
func (r *run) checkClaimed(last *turn, s *shownTask, known bool, asked int64) {
	const slack = int64(clockSlack / time.Millisecond)
	away := s.leaseEnd - last.told
	switch {
	case s.leaseEnd < r.millis(asked)-slack:
		r.report(Stuck, "task %v is claimed %d ms after its lease ended", s.id, r.millis(asked)-s.leaseEnd)
	case (!known || last.extending > 0) && s.leaseEnd > r.millis(asked)+maxLease+slack:
		r.report(Stuck, "task %v has a lease of %d ms more", s.id, s.leaseEnd-r.millis(asked))
	case known && last.returned:
		r.report(Returned, "task %v is claimed again with the token that returned it", s.id)
	case known && last.extending == 0 && max(away, -away) > slack:
		r.report(Stuck, "the lease of task %v ends %d ms later than was said", s.id, away)
	case known && last.noting == 0 && s.progress != last.progress:
		r.report(Lost, "the progress of task %v is %d instead of %d", s.id, s.progress, last.progress)
	}
}

// workOff redrives, claims and acknowledges all tasks, first those with a class by their filter.
// Whatever held one up must end soon.
func (r *run) workOff(link *link) error {
	c := newTaskClient(r, r.TaskClients, r.rng)
	c.link = link
	const lease, slack = 10_000, time.Second
	until := time.Now().Add(max(maxLease, maxDelay)*time.Millisecond + slack)
	for left := r.tasks.left(); len(left) > 0 && time.Now().Before(until); left = r.tasks.left() {
		c.redrive(jobs, atOnce)
		c.redrive(chores, atOnce)
		first := filter{}
		if slices.ContainsFunc(left, func(id ID) bool { return r.tasks.of(id).tags.class != "" }) {
			first = ofClass()
		}
		c.add(c.claim(workQueues(), maxHeld, lease, 20, first))
		if err := c.perform(); err != nil {
			return err
		}
		for _, h := range append(c.held, c.forgotten...) {
			c.add(c.ack(h))
		}
		c.held, c.forgotten = nil, nil
		if err := c.perform(); err != nil {
			return err
		}
	}
	left := r.tasks.left()
	for _, id := range left[:min(len(left), 5)] {
		r.report(Stuck, "task %v is one of %d that did not come in %v", id, len(left), max(maxLease, maxDelay)*time.Millisecond+slack)
	}
	r.settleTasks()
	r.tasks.restart(left)
	if len(left) > 0 {
		return nil
	}
	return r.reopen(link)
}

// left lists the tasks that were not acknowledged.
func (t *tasks) left() []ID {
	t.mu.Lock()
	defer t.mu.Unlock()
	var left []ID
	for id, of := range t.all {
		if surely, _ := of.ended(); !surely {
			left = append(left, id)
		}
	}
	return slices.Sorted(slices.Values(left))
}

// restart forgets all tasks but these, and those that may be kept after their acks.
func (t *tasks) restart(left []ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.all, func(id ID, of *task) bool {
		if of.queue == chores {
			of.turns = of.turns[len(of.turns)-1:]
			return false
		}
		return !slices.Contains(left, id)
	})
	t.alive, t.unseen = len(left), 0
	clear(t.harvests)
	clear(t.redrives)
}
