package crash

import (
	"fmt"
	"math/rand/v2"
	"strconv"
)

// taskOp is one request of a taskClient.
type taskOp struct {
	args    []string
	answer  func(reply any)
	claims  int64 // how many tasks it may claim
	waits   bool
	counter counterName // that it adds to, if it counts
	counts  int64
	of      *task   // that it pushes
	next    *taskOp // a second command, which is sent with it as a transaction
}

// heldTask is a claim that a client knows.
type heldTask struct {
	id   ID
	of   *task
	name string
	turn *turn
}

// taskClient pushes tasks and works on them. At times it dies and forgets them, or wakes up late.
type taskClient struct {
	pipeline[taskOp]
	held       []*heldTask // it works on them
	forgotten  []*heldTask // it does not, but may come back to them
	token      int64       // the last that it was given
	recalled   []recalled  // claims of recalls, some long ended
	latest     *latest     // its own queue; nil: none yet
	pushes     int         // to its own queues
	lent       []*lending  // claims of tenants, some long ended
	lentRested []*lending  // and of rested
	outings    []*outing   // and of ordered
}

// taskPart is the part of IDs that the first of these clients has.
const taskPart = 20_000

// The most claims that a client works on, and of those that it may come back to.
const (
	maxHeld      = 24
	maxForgotten = 24
)

func newTaskClient(r *run, number int, rng *rand.Rand) *taskClient {
	return &taskClient{pipeline: pipeline[taskOp]{r: r, number: taskPart + number, rng: rng}}
}

func (c *taskClient) connect() (err error) {
	c.link, err = c.r.server.dial(redisListener)
	return err
}

func (c *taskClient) work() { c.follow("a client of the work queue", c.build, c.answer) }

func (c *taskClient) hangUp(end endKind) int {
	c.link.conn.Close()
	left := c.unanswered()
	if end != stop {
		c.lose()
		return len(left)
	}
	for _, op := range left { // a clean stop carries out what it answers, and nothing else
		for o := &op; o != nil; o = o.next {
			c.r.tasks.counts(o.counter, -o.counts)
		}
	}
	if c.givenUp() {
		return 0
	}
	return len(left)
}

// givenUp says that the next reply is to a request that waits, or is behind one whose wait may have
// ended only when the server stopped.
func (c *taskClient) givenUp() bool {
	return c.done < len(c.ops) && (c.ops[c.done].waits || c.done > 0 && c.ops[c.done-1].waits)
}

// lose notes what the requests without a reply may have claimed.
func (c *taskClient) lose() {
	for _, op := range c.unanswered() {
		c.r.tasks.lose(op.claims)
	}
}

// build makes the next pipeline.
func (c *taskClient) build(requests int) {
	if c.rng.IntN(deathEvery) == 0 {
		c.die()
	}
	for range min(requests, maxTaskPipeline) {
		c.choose()
	}
}

const (
	// deathEvery is how many pipelines a client lives, on average.
	deathEvery = 60
	// maxTaskPipeline is short, because a claim without a reply is one that the checks know less of.
	maxTaskPipeline = 16
)

// die closes the connection, at times with requests that are not answered, and forgets all claims.
// Another worker begins in its place.
func (c *taskClient) die() {
	if c.number != taskPart && c.rng.IntN(2) == 0 { // the first one's settings come in order
		for range 1 + c.rng.IntN(4) {
			c.choose()
		}
		_ = c.link.send() // the worker is gone in any case
		c.lose()
		c.forget()
	}
	c.link.conn.Close()
	c.held, c.forgotten, c.lent, c.lentRested, c.outings = nil, nil, nil, nil, nil
	if c.latest != nil {
		c.latest.ended, c.latest.lost = true, true
	}
	link, err := c.r.server.dial(redisListener)
	if err != nil {
		return // the next request fails
	}
	c.link = link
	_, _ = link.ask(one("PING")) // a clean stop answers those that were accepted
}

// answer reads the reply to the next request.
func (c *taskClient) answer() error {
	op := &c.ops[c.done]
	replies := 1
	if op.next != nil {
		replies = 4 // of MULTI, two commands, EXEC
	}
	var reply string
	var err error
	for ; replies > 0 && err == nil; replies-- {
		reply, err = c.link.receiveReply()
	}
	switch {
	case err != nil && c.givenUp():
		return fmt.Errorf("%w: %w", errGivenUp, err)
	case err != nil:
		return err
	}
	v, _ := parseReply(reply)
	if op.next == nil {
		op.answer(v)
	} else if all, _ := v.([]any); len(all) == 2 {
		op.answer(all[0])
		op.next.answer(all[1])
	} else {
		c.unexpected(op.args, v)
	}
	c.r.ops[ofTasks].Add(1)
	c.done++
	return nil
}

// perform sends the requests that were added and reads their replies, outside the load.
func (c *taskClient) perform() error {
	if err := c.link.send(); err != nil {
		return err
	}
	for c.done < len(c.ops) {
		if err := c.answer(); err != nil {
			return err
		}
	}
	c.forget()
	return nil
}

// add adds a request to the pipeline.
func (c *taskClient) add(op taskOp) {
	if op.next != nil {
		c.link.addCommand("MULTI")
	}
	for o := &op; o != nil; o = o.next {
		c.link.addCommand(o.args...)
		c.r.tasks.counts(o.counter, o.counts)
	}
	if op.next != nil {
		c.link.addCommand("EXEC")
	}
	c.ops = append(c.ops, op)
}

// unexpected reports a reply that no server should give.
func (c *taskClient) unexpected(args []string, reply any) {
	c.r.report(Corrupt, "the reply to %s is %.300q", briefCommands(one(args...)), reply)
}

// took enters the tasks of a reply to a claim with a lease in milliseconds. Their tokens are above
// floor, and they match.
func (c *taskClient) took(args []string, reply any, asked, floor, lease int64, match filter) {
	list, _ := reply.([]any)
	if _, refused := reply.(replyError); refused || reply != nil && list == nil {
		c.unexpected(args, reply)
	}
	came := c.r.ledger.now()
	shown := shownTasks(reply)
	for i := range shown {
		s := &shown[i]
		now := &turn{
			token: s.token, attempt: s.attempt, asked: asked, came: came,
			ends: asked + lease*1e6, endsBy: came + lease*1e6, told: s.leaseEnd,
		}
		if broken := c.r.tasks.claim(s, now); broken != "" {
			c.r.report(broken, "task %v (%s) of %s was claimed, and had ended, was never pushed, or not so", s.id, s.name, s.queue)
			continue
		}
		if !match.matches(s.tags) {
			c.r.report(Unfit, "task %v with the tags %v was claimed by %q", s.id, s.tags, args)
		}
		c.r.tokens(shown[i:i+1], max(floor, c.token))
		c.token = max(c.token, s.token)
		if i > 0 && !shown[i-1].before(s) {
			c.r.report(Order, "task %v of priority %d was claimed after %v of %d", s.id, s.priority, shown[i-1].id, shown[i-1].priority)
		}
		if end := c.r.nanos(s.leaseEnd); end < now.ends-int64(clockSlack) || end > now.endsBy+int64(clockSlack) {
			c.r.report(Order, "task %v was claimed for %d ms and has a lease end %d ms after the request", s.id, lease, (end-asked)/1e6)
		}
		c.hold(&heldTask{s.id, c.r.tasks.of(s.id), s.name, now})
	}
}

// hold keeps a claim, mostly to work on it.
func (c *taskClient) hold(h *heldTask) {
	if c.rng.IntN(6) == 0 || len(c.held) >= maxHeld {
		c.leave(h)
		return
	}
	c.held = append(c.held, h)
}

// leave keeps a claim that the client may come back to, when it has long ended.
func (c *taskClient) leave(h *heldTask) {
	if len(c.forgotten) == maxForgotten {
		c.forgotten = c.forgotten[1:]
	}
	c.forgotten = append(c.forgotten, h)
}

// good notes that the server took a token in a request that was sent at asked.
func (c *taskClient) good(what string, h *heldTask, asked int64) {
	if h.turn.over(asked) {
		c.r.report(Tokens, "%s of task %v with token %d was accepted, which was no longer good", what, h.id, h.turn.token)
	}
}

// refusedBy says that a reply refuses a token, and notes that. Other errors are reported.
func (c *taskClient) refusedBy(args []string, reply any, h *heldTask) bool {
	text, refused := reply.(replyError)
	switch {
	case !refused:
		return false
	case len(text) > 6 && text[:6] == "STALE ":
		h.turn.refuse(c.r.ledger.now())
	default:
		c.unexpected(args, reply)
	}
	return true
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }
