// Package crash puts load on a real server, kills it at random moments, starts it again on the same
// folder, and compares what it finds with what the clients were promised. Its map:
//
//	run.go          Run: the cycles of load, end, restart and check
//	options.go      what a run is told, and what it returns
//	server.go       the server process: start, kill, terminate, its log
//	traffic.go      the queues of the load and the packets that go there
//	link.go         a connection to the server
//	client.go       what all clients of the load have in common
//	worker.go       a client that pushes and pops
//	subscriber.go   a client that subscribes
//	boardclient.go  a client of the board
//	redisclient.go  a client of the Redis protocol; redistraffic.go: its commands
//	redislink.go    the Redis protocol on a connection
//	slowreader.go   a client that reads a backup slowly
//	drain.go        emptying queues after a restart
//	identity.go     payloads that prove themselves
//	model.go        what a worker's own queues must hold, exactly
//	ledger.go       what may and must be in the queues that clients share
//	check.go        the comparison of queues with both
//	board.go        what may and must be on the board
//	boardcheck.go   the comparison of the board with it; lostnext.go: requests without a reply
//	keys.go         what must be under the names that one client of the Redis protocol has alone
//	topic.go        what may and must be in the list that these clients share
//	mortal.go       what may and must be under names that expire
//	redischeck.go   the comparison with all three
//	taskclient.go   a client of the work queue; tasktraffic.go: its commands
//	taskreply.go    the replies that it understands; tasktags.go: tags and filters
//	task.go         what may and must be in the work queues; taskbound.go: in those with a bound
//	taskunique.go   pushes that are repeated; taskslot.go: pushes that race for one unique id;
//	tasklatest.go: pushes that replace what waits
//	taskcancel.go   packets that are cancelled; taskshare.go: limits, rates and weights of shares
//	taskrest.go     shares that rest; taskorder.go: strict order by key
//	turn.go         what is known of a task from one claim to the next
//	taskcheck.go    the comparison of the work queues with both
//	taskcount.go    what the counters of the work queues must show
//	finding.go      what a comparison can find
//
// Three references are used side by side. A queue that only one worker uses is modelled exactly.
// The server carries out a connection's requests in order, so after a crash the queue must be as it
// was after some of the requests: at least all that were answered, then a first part of the others.
//
// Queues that clients share are checked packet by packet. A packet is never sent, maybe there (sent
// but not acknowledged), or acknowledged. A pop without a reply may have taken one group of
// packets, so no more groups may be missing than there were such pops.
//
// The items of the board are checked by their scores. One client alone updates an item. So its
// score is the sum of that client's updates up to some moment, at least of all answered ones, since
// the item was last handed out. Where requests overlap, either order is allowed. An item may be
// handed out again only after another update. A request for the next item without a reply may have
// taken one item, but none that surely stood below an item which is still there.
//
// A client of the Redis protocol has names of its own. What is there after a crash must be as after
// some of its requests, where a transaction is one request. All these clients share one list. An
// element of it is popped, or moved to a second list and removed there. It must never be in both,
// nor come back. Names that expire must be there until then, and not after.
//
// Tasks are packets of work queues. What is known of one is cut into turns, each from one claim to
// the next, in the order of their tokens. Neighbours are compared when no client runs any more:
// attempts rise by one, no claim begins before the one before it ends, and none follows an ack. A
// list of all tasks after a restart is compared with their last turns. A claim without a reply is
// seen by the next attempt, so only as many may be unseen as had no reply. Some acks go with the
// push of another task, as one transaction: both must be there, or neither. Counters of a queue lie
// between what was answered, at least a second before a kill, and what was sent.
//
// Claims of a queue with limits are looked at by their tokens: with each, no more are surely open
// than a limit allowed that may have been in force. Of a queue with a rate no more is surely taken
// in any time, with kills in it, than the rate allows. Shares that surely rest give nothing, and
// others do. Of a queue with strict order each claim is looked at: no other packet of its key is
// surely out, nor was one there with a lower place, nor a dead one that holds the key.
package crash

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// run is one run of the harness. Clients share what is safe to share and says so. All else belongs
// to the goroutine of Run.
type run struct {
	Options
	findings
	gate   gate
	ledger *ledger
	queues *queueSet // not changed once made
	board  *board

	topic *topic
	tasks *tasks

	ops    [loadKinds]atomic.Int64 // of this cycle
	pushed atomic.Int64            // acknowledged pushes of pinpriq among them

	end          atomic.Int32 // an endKind, set before the server is ended
	rng          *rand.Rand
	workers      []*worker
	boardClients []*boardClient
	redisClients []*redisClient
	clients      []client    // those, and the subscribers
	reader       *slowReader // of a cycle that has one
	slack        map[int]int // by slackClass: pops without a reply since the shared queues were emptied
	server       *Server
	result       Result

	// plain says that no packet has priority 0 or shares its key. Then a drain pushes nothing,
	// which a disk that is nearly full may refuse.
	plain bool
	ttl   int32 // of what pushAcked pushes, in milliseconds
}

// endKind is how a cycle ends.
type endKind int32

const (
	notYet   endKind = iota
	kill             // SIGKILL
	stop             // SIGTERM, and all that was received is answered
	stopKill         // SIGTERM, and SIGKILL while the server drains
)

func (e endKind) String() string { return [...]string{"", "kill", "stop", "stop+kill"}[e] }

// Run loads, ends, restarts and checks a server for so many cycles. It finds nothing if the server
// keeps its promises. The error is about the harness: it could not do its work.
func Run(o Options) (Result, error) {
	r := newRun(o)
	err := r.cycles()
	if r.server != nil {
		r.server.Kill()
	}
	if err == nil && r.result.Cycles == r.Cycles {
		for p, least := range r.MinRates {
			if rate := r.result.Rate(loadKind(p)); rate < least {
				r.report(Idle, "%.0f operations of %v a second under load, at least %.0f are needed", rate, loadKind(p), least)
			}
		}
	}
	r.result.Findings = r.list()
	return r.result, err
}

func newRun(o Options) *run {
	o.setDefaults()
	workers, subscribers := workers, subscribers
	if o.NoPinpriq {
		workers, subscribers = 0, 0
	}
	r := &run{
		Options: o,
		ledger:  newLedger(workers + 1),
		queues:  newQueueSet(workers),
		board:   newBoard(o.BoardClients, itemsPerClient),
		topic:   newTopic(),
		tasks:   newTasks(),
		rng:     rand.New(rand.NewPCG(o.Seed, 0)),
		slack:   map[int]int{},
	}
	random := func(n int) *rand.Rand { return rand.New(rand.NewPCG(o.Seed, uint64(n))) }
	for n := range workers {
		w := &worker{pipeline: pipeline[op]{r: r, number: n, rng: random(1 + n)}, models: map[int]*model{}}
		for _, q := range r.queues.own[n] {
			w.models[q] = &model{}
		}
		r.workers = append(r.workers, w)
		r.clients = append(r.clients, w)
	}
	for n := range subscribers {
		r.clients = append(r.clients, &subscriber{r: r, rng: random(1000 + n)})
	}
	for n := range o.BoardClients {
		b := &boardClient{pipeline[boardOp]{r: r, number: n, rng: random(2000 + n)}}
		r.boardClients = append(r.boardClients, b)
		r.clients = append(r.clients, b)
	}
	for n := range o.RedisClients {
		c := newRedisClient(r, n, random(3000+n))
		r.redisClients = append(r.redisClients, c)
		r.clients = append(r.clients, c)
	}
	for n := range o.TaskClients {
		r.clients = append(r.clients, newTaskClient(r, n, random(4000+n)))
	}
	return r
}

// cycles runs all cycles and ends with two restarts: one to take everything out, and one after a
// kill to see that nothing comes back.
func (r *run) cycles() error {
	for n := range r.Cycles {
		// After a slow reader everything is checked at once, because what comes back by it may soon
		// be gone.
		if ok, err := r.restart(n%r.DrainEvery == 0 || r.reader != nil); !ok || err != nil {
			return err
		}
		r.reader = nil
		if r.SlowEvery > 0 && n%r.SlowEvery == 1%r.SlowEvery {
			r.reader = newSlowReader(r)
		}
		if err := r.load(n); err != nil {
			return err
		}
		r.result.Cycles++
		if r.StopAtFinding && len(r.list()) > 0 {
			return nil
		}
	}
	for range 2 {
		if ok, err := r.restart(true); !ok || err != nil {
			return err
		}
		r.tasks.killed = r.ledger.now()
		r.server.Kill()
	}
	return nil
}

// restart starts the server on what it left, and checks that. ok is false if the run cannot go on.
func (r *run) restart(all bool) (ok bool, err error) {
	if r.rng.IntN(6) == 0 { // killed while it recovers, too
		s, err := Spawn(r.Command, r.Data)
		if err != nil {
			return false, err
		}
		select {
		case <-s.Exited():
		case <-time.After(time.Duration(r.rng.IntN(60)) * time.Millisecond):
		}
		s.Kill()
	}
	began := time.Now()
	if r.server, err = Start(r.Command, r.Data); err != nil {
		r.report(NotStarted, "%v", err)
		return false, nil
	}
	took := time.Since(began)
	if n := r.server.Log().Findings; n != 0 {
		r.report(Logged, "the start report has %d findings; the log ends with:\n%s", n, r.server.Log())
	}
	r.end.Store(int32(notYet))
	r.gate.set(false)
	if !r.NoPinpriq {
		err = r.check(all)
	}
	if err == nil && len(r.boardClients) > 0 {
		err = r.checkBoard(all)
	}
	if err == nil && len(r.redisClients) > 0 {
		err = r.checkRedis()
	}
	if err == nil && r.TaskClients > 0 {
		err = r.checkTasks(all)
	}
	if errors.Is(err, errDoubled) {
		return false, nil
	}
	if err != nil {
		r.report(Died, "check: %v; the server's log ends with:\n%s", err, r.server.Log())
		return false, nil
	}
	r.Logf("started in %v; %d findings so far, lost=%d returned=%d order=%d", took.Round(time.Millisecond),
		len(r.list()), r.count(Lost), r.count(Returned), r.count(Order))
	return true, nil
}

// load runs the clients for a random time, ends the server and counts what was unanswered.
func (r *run) load(cycle int) error {
	r.pushed.Store(0)
	r.ops = [loadKinds]atomic.Int64{}
	var all sync.WaitGroup
	if err := r.start(&all); err != nil {
		return err
	}
	undisturbed := func() {}
	if r.Disturb != nil {
		r.end.Store(int32(kill)) // connections may break at once
		var err error
		if undisturbed, err = r.Disturb(r.server.cmd.Process.Pid); err != nil {
			return err
		}
	}
	began := time.Now()
	length := r.MinLoad + time.Duration(r.rng.Int64N(int64(r.MaxLoad-r.MinLoad)+1))
	for wait := time.After(length); wait != nil; {
		select {
		case <-wait:
			if wait = nil; r.did() < r.LeastOps && time.Since(began) < deadline {
				wait = time.After(5 * time.Millisecond)
			}
		case <-r.server.Exited(): // by itself; the clients report it
			wait = nil
		}
	}
	took := time.Since(began)
	undisturbed()
	if r.Disturb != nil {
		r.mustServe()
	}
	r.tasks.killed = r.ledger.now()
	end := r.endServer()
	if end == stop {
		r.tasks.killed = 0
	}
	all.Wait()
	r.ledger.settle(r.ledger.now())
	unanswered := 0
	for _, c := range r.clients {
		unanswered += c.hangUp(end)
	}
	r.settleTasks()
	for _, line := range r.server.Log().Failures {
		if r.Disturb != nil {
			break
		}
		r.report(Logged, "the server's log has an error: %s", line)
	}
	if end == stop && unanswered > 0 {
		r.report(Unanswered, "%d requests had no reply after a clean stop", unanswered)
	}
	did := ""
	for p := range r.ops {
		n := r.ops[p].Load()
		r.result.Ops[p] += n
		did += fmt.Sprintf("%d operations of %v, ", n, loadKind(p))
	}
	r.result.Load += took
	r.Logf("cycle %d: %v after %v: %s%d requests unanswered", cycle, end, took.Round(time.Millisecond), did, unanswered)
	return nil
}

// did is how many operations the load has had.
func (r *run) did() (n int64) {
	for p := range r.ops {
		n += r.ops[p].Load()
	}
	return n
}

// mustServe sees that a server still takes packets, or has ended with exit code 1.
func (r *run) mustServe() {
	rng := rand.New(rand.NewPCG(r.Seed, 5000))
	var err error
	for began := time.Now(); time.Since(began) < deadline; time.Sleep(10 * time.Millisecond) {
		select {
		case <-r.server.Exited():
			if code := r.server.cmd.ProcessState.ExitCode(); code != 1 || r.server.Log().Panicked {
				r.report(Died, "it ended with exit code %d; its log ends with:\n%s", code, r.server.Log())
			}
			r.Logf("it has ended: %s", r.server.Log().Failures)
			return
		default:
		}
		var link *link
		if link, err = r.server.dialToCheck(pinpriqListener); err == nil {
			err = r.pushAcked(link, rng, len(r.workers), r.queues.byKind[standing][0], 1, 0)
			link.conn.Close()
		}
		if err == nil {
			return
		}
	}
	r.report(Died, "it neither ends nor serves: %v; its log ends with:\n%s", err, r.server.Log())
}

// start connects all clients and starts their goroutines.
func (r *run) start(all *sync.WaitGroup) error {
	if r.reader != nil {
		if err := r.reader.fill(); err != nil {
			return fmt.Errorf("fill the server for a slow reader: %w", err)
		}
	}
	for _, c := range r.clients {
		if err := c.connect(); err != nil {
			return fmt.Errorf("connect a client: %w", err)
		}
	}
	for _, c := range r.clients {
		all.Go(c.work)
	}
	if r.reader != nil {
		all.Go(r.reader.work)
	}
	return nil
}

// endServer ends the server in one of the ways and waits until it is gone.
func (r *run) endServer() endKind {
	end := kill
	switch n := r.rng.IntN(10); {
	case r.KillsOnly:
	case n < 2:
		end = stop
	case n == 2:
		end = stopKill
	}
	if end == stop {
		// When the gate is closed, every request is written as a whole. So the server receives all
		// of them before the signal, and must answer them.
		r.gate.set(true)
		r.end.Store(int32(end))
		if err := r.server.Terminate(); err != nil {
			r.report(Died, "clean stop: %v", err)
		}
		r.result.Stops++
		return end
	}
	r.end.Store(int32(end))
	if end == stopKill {
		r.server.Interrupt()
		time.Sleep(time.Duration(r.rng.IntN(3000)) * time.Microsecond) // the moment is what is tested
	}
	r.server.Kill()
	r.result.Kills++
	return end
}
