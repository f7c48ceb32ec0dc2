package crash

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
)

// The work queues of the load. What dies in jobs moves to their dead-letter queue. What dies in
// chores stays there.
const (
	jobs     = "jobs"
	deadJobs = "jobs:dead"
	chores   = "chores"
)

// Settings of both, in milliseconds where they are times.
const (
	maxAttempts = 4
	backoffMin  = 20
	maxLease    = 500
	maxDelay    = 1000 // more than a start takes on a busy machine
	retain      = 1000 // of chores only: jobs go when they are acknowledged
	// maxTasks is how many tasks are too many for another push.
	maxTasks = 600
	// firstValue is that of the settings which change, and the backoff-max of queues without them.
	firstValue = 60_000
	// atOnce is the most that one command takes, and enough for all tasks.
	atOnce = 1000
)

// task is a packet of a work queue.
type task struct {
	queue    string // where it was pushed
	name     string // the server's id; empty: not known
	key      string
	tags     tags
	priority int64
	unique   []string  // its push, if that can be repeated
	repeats  int       // repeated pushes without a reply
	pushed   bool      // the push was acknowledged
	leaving  bool      // an ack was sent since it was surely there
	with     []*task   // those of its QMPUSH; nil: it had a push of its own, or a restart showed it
	after    *heldTask // the claim that is acknowledged in the transaction of the push; nil: none
	turns    []*turn   // the first is from its push, or from the last restart
}

// ended says that it was acknowledged, or may have been.
func (t *task) ended() (surely, maybe bool) {
	for _, at := range t.turns {
		surely = surely || at.acked
		maybe = maybe || at.acking > 0
	}
	return surely, maybe || surely
}

// tasks knows every task that may still be there. Any goroutine may use it.
type tasks struct {
	mu     sync.Mutex // guards what follows
	all    map[ID]*task
	last   map[int]uint64 // by client: serial of its last push
	alive  int            // how many of queues without a bound were not acknowledged
	top    atomic.Int64   // the highest token that a client was given
	lost   int64          // how many tasks may have been claimed by requests without a reply
	unseen int64          // how many claims nobody saw

	harvests, redrives waves // by the queue where the tasks were pushed

	counters map[counterName]*counter
	killed   int64 // when the server was killed; 0: it had a clean stop

	// The settings of the shelf change. These values may be there, the first surely before the others.
	settings []int64

	closing, closed bool // the belt may be closed; it surely is
	sure            int  // how many tasks are surely on the belt
	uniques         []uniquePush
	misses          []miss // since the last restart
	slots           []*slotPush
	recalls         []*recall
	cancelled       int       // of recalls, by a reply
	latest          []*latest // since the last time that all was worked off
	shares          shares
	rests           rests
	orders          orders
}

func newTasks() *tasks {
	return &tasks{all: map[ID]*task{}, last: map[int]uint64{}, harvests: waves{}, redrives: waves{}, counters: map[counterName]*counter{}}
}

// len is how many tasks there may be.
func (t *tasks) len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.alive
}

// add makes the identity of a task that is about to be pushed with a delay in milliseconds.
func (t *tasks) add(client int, made task, asked, delay int64) (ID, *task) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last[client]++
	if !bounded(made.queue) {
		t.alive++
	}
	id := makeID(client, t.last[client])
	first := &turn{asked: asked, returned: true}
	if delay > 0 {
		first.notBefore, first.notAfter = asked+delay*1e6, never
	}
	made.turns = []*turn{first}
	t.all[id] = &made
	return id, &made
}

// acknowledge notes the reply to a push. It returns how many tasks are surely on the belt.
func (t *tasks) acknowledge(of *task, name string, now, delay int64) (sure int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := of.turns[0]
	if first.notAfter != 0 {
		first.notAfter = now + delay*1e6
	}
	if of.queue == belt && !of.leaving {
		t.sure++
	}
	first.came, of.name, of.pushed = now, name, true
	t.repeatLocked(of)
	return t.sure
}

// finish notes that a task was acknowledged.
func (t *tasks) finish(of *task) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !bounded(of.queue) {
		t.alive--
	}
}

// tokens checks the tokens of a claim that was sent when floor was the top: they rise over the
// whole store, also across starts.
func (r *run) tokens(shown []shownTask, floor int64) {
	for _, s := range shown {
		if s.token <= floor {
			r.report(Tokens, "packet %v of %s was claimed with token %d after one with %d", s.id, s.queue, s.token, floor)
		}
		for was := r.tasks.top.Load(); was < s.token && !r.tasks.top.CompareAndSwap(was, s.token); was = r.tasks.top.Load() {
		}
	}
}

// claim enters a claim. broken is empty, or says which promise that breaks.
func (t *tasks) claim(s *shownTask, now *turn) (broken Kind) {
	t.mu.Lock()
	defer t.mu.Unlock()
	of, broken := t.knownLocked(s)
	if broken == "" {
		of.turns = append(of.turns, now)
	}
	return broken
}

// knownLocked returns the task that a reply shows. broken says what is wrong with that, if anything
// is.
func (t *tasks) knownLocked(s *shownTask) (of *task, broken Kind) {
	if !s.whole || s.id.serial() == 0 || s.id.serial() > t.last[s.id.part()] {
		return nil, Corrupt
	}
	if of = t.all[s.id]; of == nil {
		return nil, Returned
	}
	if of.name == "" {
		of.name = s.name
	}
	if s.name != of.name || s.key != of.key || s.tags != of.tags || s.priority != of.priority || s.queue != of.queue && (s.queue != deadJobs || of.queue != jobs) {
		return nil, Corrupt
	}
	return of, ""
}

// lose notes that a claim of so many tasks has no reply.
func (t *tasks) lose(count int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lost += count
}

// wave notes a call that is about to change many tasks of a queue.
func (t *tasks) wave(of waves, queue string, now int64) *wave {
	t.mu.Lock()
	defer t.mu.Unlock()
	return of.begin(queue, now)
}

// end notes that the call was answered.
func (t *tasks) end(w *wave, now int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w.to = now
}

// settleTasks compares the turns of every task, when no client runs any more.
func (r *run) settleTasks() {
	t := r.tasks
	t.mu.Lock()
	defer t.mu.Unlock()
	now := r.ledger.now()
	t.settleSlots(now)
	t.rests.settle(now)
	for _, of := range []waves{t.harvests, t.redrives} {
		for _, list := range of {
			for _, w := range list {
				w.to = min(w.to, now)
			}
		}
	}
	for id, of := range t.all {
		slices.SortStableFunc(of.turns[1:], func(a, b *turn) int { return cmp.Compare(a.token, b.token) })
		for i, at := range of.turns {
			r.checkRefused(id, of, at)
			if i > 0 {
				t.unseen += r.follows(id, of, of.turns[i-1], at)
			}
		}
	}
	r.checkUnseenLocked()
}

// checkUnseenLocked compares the claims that nobody saw with those that had no reply.
func (r *run) checkUnseenLocked() {
	if t := r.tasks; t.unseen > t.lost {
		r.report(Attempts, "%d claims were made that nobody saw, and %d may have had no reply", t.unseen, t.lost)
	}
}
