package crash

import "math"

// turn is what is known of a task from one claim to the next. The first turn of a task begins with
// its push, or with what a restart showed. While the load runs it belongs to the client that made
// it. Times are nanoseconds of the run; 0 is not known, or not at all.
type turn struct {
	token       int64 // of the claim, or of one before if it is none
	attempt     int64
	asked, came int64 // the claim was made between these moments
	ends        int64 // its lease ends at this moment at the soonest
	endsBy      int64 // and at this one at the latest
	told        int64 // the lease end that the server gave, in Unix milliseconds
	progress    int64

	noting    int  // notes of progress without a reply so far
	extending int  // the same of extensions
	acking    int  // of acks
	returning int  // of nacks
	snoozing  int  // of those that do not count the attempt
	returned  bool // it is no claim, or no more
	snoozed   bool // and its attempt does not count
	reasoned  bool // and the client said why
	acked     bool
	refused   int64 // when a token was refused

	notBefore int64 // the task is delayed until then, at least
	notAfter  int64 // and until then at most; 0: it is not delayed
	dead      bool  // the client asked for its death
	died      int64 // it was dead some time after this

	goneAt, goneBy int64 // an acknowledged task is kept until some moment between these; 0: it is not
}

// never is a moment that no run reaches.
const never = math.MaxInt64

// live says that the claim is surely there at a moment, unless it was harvested.
func (t *turn) live(now int64) bool {
	return t.token != 0 && !t.returned && t.returning == 0 && now < t.ends-int64(clockSlack)
}

// over says that the claim surely ended before a moment.
func (t *turn) over(now int64) bool {
	return t.refused != 0 || t.returned || t.acked || now > t.endsBy && now-t.endsBy > int64(clockSlack)
}

// refuse notes that a token was refused.
func (t *turn) refuse(now int64) {
	if t.refused == 0 {
		t.refused = now
	}
}

// unseen is how many claims nobody saw since the turn began, if the task has had so many attempts.
// ok is false if there can be no such claims. A task that was redriven begins again.
func (t *turn) unseen(attempts int64, redriven bool) (n int64, ok bool) {
	had := t.attempt
	if t.snoozed || t.snoozing > 0 && attempts < had {
		had--
	}
	if attempts >= had {
		return attempts - had, true
	}
	if !t.dead {
		n = max(0, maxAttempts-had)
	}
	return n + attempts, redriven
}

// follows compares two turns of a task, the second being the next that is known. It returns how
// many claims nobody saw between them.
func (r *run) follows(id ID, t *task, a, b *turn) (unseen int64) {
	redriven := r.tasks.redrives.between(t.queue, a.asked, b.came)
	harvested := r.tasks.harvests.between(t.queue, a.asked, b.came)
	unseen, ok := a.unseen(b.attempt-1, redriven)
	switch {
	case b.token <= a.token:
		r.report(Tokens, "task %v was claimed with tokens %d and %d", id, a.token, b.token)
	case a.acked:
		r.report(Returned, "task %v was claimed with token %d after the ack of %d", id, b.token, a.token)
	case a.live(b.came) && !harvested:
		r.report(Shared, "task %v was claimed with token %d, %d ms before the lease of %d ends",
			id, b.token, (a.ends-b.came)/1e6, a.token)
	case b.came < a.notBefore-int64(clockSlack):
		r.report(Early, "task %v was claimed %d ms before its delay ends", id, (a.notBefore-b.came)/1e6)
	case a.died != 0 && !r.tasks.redrives.between(t.queue, a.died, b.came):
		r.report(Returned, "task %v was dead and was claimed", id)
	case !ok:
		r.report(Attempts, "attempt %d of task %v follows attempt %d", b.attempt, id, a.attempt)
	default:
		return unseen
	}
	return 0
}

// checkRefused compares the refusal of a token with the lease.
func (r *run) checkRefused(id ID, t *task, a *turn) {
	if a.refused != 0 && a.live(a.refused) && !a.acked && a.acking == 0 && !r.tasks.harvests.between(t.queue, a.asked, a.refused) {
		r.report(Lost, "token %d of task %v was refused %d ms before its lease ends", a.token, id, (a.ends-a.refused)/1e6)
	}
}

// waves are the calls that change many tasks of a queue: by queue, when each began and ended.
type waves map[string][]*wave

type wave struct{ from, to int64 }

// begin notes a call that is about to be sent.
func (w waves) begin(queue string, now int64) *wave {
	one := &wave{from: now, to: never}
	w[queue] = append(w[queue], one)
	return one
}

// between says that one may have been carried out between two moments.
func (w waves) between(queue string, from, to int64) bool {
	for _, one := range w[queue] {
		if one.from <= to && one.to >= from {
			return true
		}
	}
	return false
}
