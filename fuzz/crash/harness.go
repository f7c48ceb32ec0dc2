package crash

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// Options say what a run does. Zero values mean the defaults.
type Options struct {
	Command Command // how the server is started
	Data    string  // its data folder
	Cycles  int     // how often it is loaded and ended; 3
	Seed    uint64  // of all that is random, but for the machine's own timing
	Workers int     // connections that push and pop; 13, and None for none
	Takers  int     // connections that subscribe; 3, and None for none
	Barbers int     // connections to the board; none, and the server then needs no board

	SlowEvery int // in one of so many cycles a client reads a backup slowly; 0 for never, and the server then needs no admin port

	MinLoad, MaxLoad time.Duration // how long the server lives under load; 200 ms and 2 s
	DrainEvery       int           // the shared queues are emptied and judged every so many cycles; 4
	MinRate          float64       // operations a second under load, below which the run is a failure
	MinBoardRate     float64       // the same of the board's
	KillsOnly        bool          // no clean stops
	StopAtFinding    bool          // end the run with the first cycle that finds something

	Logf func(format string, args ...any)
}

// None is the number of connections of a kind that a run does without.
const None = -1

func (o *Options) setDefaults() {
	set := func(v *int, def int) {
		switch *v {
		case 0:
			*v = def
		case None:
			*v = 0
		}
	}
	set(&o.Cycles, 3)
	set(&o.Workers, 13)
	set(&o.Takers, 3)
	set(&o.DrainEvery, 4)
	if o.MinLoad == 0 {
		o.MinLoad = 200 * time.Millisecond
	}
	if o.MaxLoad == 0 {
		o.MaxLoad = 2 * time.Second
	}
	if o.Logf == nil {
		o.Logf = func(string, ...any) {}
	}
}

// Result is what a run has done and found.
type Result struct {
	Cycles   int
	Kills    int // ends without a warning
	Stops    int // clean ends
	Held     int // ends that left a log which a reader had kept
	Ops      int64
	BoardOps int64
	Load     time.Duration
	Findings []Finding // the first hundred
}

// Rate is operations a second under load: acknowledged pushes, pops that gave packets, deliveries.
func (r Result) Rate() float64 { return float64(r.Ops) / max(r.Load.Seconds(), 1e-3) }

// BoardRate is operations a second of the board: acknowledged updates, items handed out.
func (r Result) BoardRate() float64 { return float64(r.BoardOps) / max(r.Load.Seconds(), 1e-3) }

// run is one run of the harness. Its connections share what is safe to share and says so; all
// else belongs to the goroutine of Run.
type run struct {
	Options
	findings
	gate   gate
	ledger *ledger
	queues *queueSet // not changed once made
	board  *board

	pushed, popped, delivered, shifted, called atomic.Int64 // of this cycle

	end     atomic.Int32 // an endKind, set before the server is ended
	rng     *rand.Rand
	workers []*worker
	takers  []*subscriber
	barbers []*barber
	reader  *slowReader // of a cycle that has one
	slack   map[int]int // by slackClass: pops without a reply since the shared queues were emptied
	pending [][]op      // by worker: what was unanswered when the server was killed
	server  *Server
	result  Result

	// plain: no packet has priority 0 or shares its key, so a drain needs no pushes, which a disk that
	// is nearly full may refuse.
	plain bool
}

// endKind is how a cycle ends.
type endKind int32

const (
	notYet   endKind = iota
	kill             // SIGKILL
	stop             // SIGTERM, and all that was received is answered
	stopKill         // SIGTERM, and SIGKILL in the middle of the drain
)

func (e endKind) String() string { return [...]string{"", "kill", "stop", "stop+kill"}[e] }

// Run loads, ends, restarts and judges a server for so many cycles, and finds nothing if the server
// keeps its promises. The error is about the harness: it could not do its work.
func Run(o Options) (Result, error) {
	r := newRun(o)
	err := r.cycles()
	if r.server != nil {
		r.server.Kill()
	}
	if err == nil && r.result.Cycles == r.Cycles {
		if rate := r.result.Rate(); rate < r.MinRate {
			r.add(Idle, "%.0f operations a second under load, at least %.0f are needed", rate, r.MinRate)
		}
		if rate := r.result.BoardRate(); rate < r.MinBoardRate {
			r.add(Idle, "%.0f operations of the board a second under load, at least %.0f are needed", rate, r.MinBoardRate)
		}
	}
	r.result.Findings = r.list()
	return r.result, err
}

func newRun(o Options) *run {
	o.setDefaults()
	r := &run{
		Options: o,
		ledger:  newLedger(o.Workers + 1),
		queues:  newQueueSet(o.Workers),
		board:   newBoard(o.Barbers, itemsOfBarber),
		rng:     rand.New(rand.NewPCG(o.Seed, 0)),
		slack:   map[int]int{},
		pending: make([][]op, o.Workers),
	}
	for n := range o.Workers {
		w := &worker{r: r, number: n, rng: rand.New(rand.NewPCG(o.Seed, uint64(1+n))), models: map[int]*model{}}
		for _, q := range r.queues.own[n] {
			w.models[q] = &model{}
		}
		r.workers = append(r.workers, w)
	}
	for n := range o.Takers {
		r.takers = append(r.takers, &subscriber{r: r, rng: rand.New(rand.NewPCG(o.Seed, uint64(1000+n)))})
	}
	for n := range o.Barbers {
		r.barbers = append(r.barbers, &barber{r: r, number: n, rng: rand.New(rand.NewPCG(o.Seed, uint64(2000+n)))})
	}
	return r
}

// cycles runs all cycles and ends with two restarts: one to take everything out, and one after a
// kill to see that nothing of it is back.
func (r *run) cycles() error {
	for n := range r.Cycles {
		// After a slow reader all is judged at once: what comes back by that may soon be gone again.
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
		r.server.Kill()
	}
	return nil
}

// restart starts the server on what it left, and judges that. ok is false if the run cannot go on.
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
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	began := time.Now()
	if r.server, err = Start(ctx, r.Command, r.Data); err != nil {
		r.add(NotStarted, "%v", err)
		return false, nil
	}
	took := time.Since(began)
	if n := r.server.Findings(); n != 0 {
		r.add(Report, "the start report has %d findings; the log ends with:\n%s", n, r.server.Log())
	}
	r.end.Store(int32(notYet))
	r.gate.open()
	drained, err := r.judge(all)
	if err != nil {
		r.add(Died, "drain: %v; the server's log ends with:\n%s", err, r.server.Log())
		return false, nil
	}
	if len(r.barbers) > 0 {
		items, err := r.judgeBoard(all)
		drained += items
		if errors.Is(err, errDoubled) {
			return false, nil
		}
		if err != nil {
			r.add(Died, "board: %v; the server's log ends with:\n%s", err, r.server.Log())
			return false, nil
		}
	}
	what := "private queues"
	if all {
		what = "all queues"
	}
	r.Logf("started in %v, drained %d packets of %s: lost=%d returned=%d order=%d other=%d", took.Round(time.Millisecond),
		drained, what, r.of(Lost), r.of(Returned), r.of(Order), len(r.list())-r.of(Lost)-r.of(Returned)-r.of(Order))
	return true, nil
}

// judge empties queues and compares: the workers' own always, the shared ones if all is true.
func (r *run) judge(all bool) (drained int, err error) {
	link, err := dial(r.server.Addr())
	if err != nil {
		return 0, err
	}
	defer link.conn.Close()
	if err := link.conn.SetDeadline(time.Now().Add(deadline)); err != nil {
		return 0, err
	}
	d := &drainer{r: r, part: r.Workers, link: link}
	for n, w := range r.workers {
		got := make(map[int][][]took)
		for _, q := range r.queues.own[n] {
			if got[q], err = d.empty(q); err != nil {
				return d.count, err
			}
		}
		r.judgeWorker(w, r.pending[n], got)
		r.pending[n] = nil
		for _, m := range w.models {
			*m = nil
		}
	}
	if !all {
		r.ledger.each(func(_ ID, e *entry) {
			if r.queues.all[e.queue].kind == private && e.state != popped {
				e.state = gone
			}
		})
		return d.count, nil
	}
	for _, kind := range []queueKind{shared, standing, expiring, fed} {
		for _, q := range r.queues.byKind[kind] {
			if _, err := d.empty(q); err != nil {
				return d.count, err
			}
		}
	}
	r.judgeShared(r.ledger.now())
	r.ledger.forget()
	clear(r.slack)
	return d.count, nil
}

// load runs the connections for a random time, ends the server and notes what was unanswered.
func (r *run) load(cycle int) error {
	for _, count := range []*atomic.Int64{&r.pushed, &r.popped, &r.delivered, &r.shifted, &r.called} {
		count.Store(0)
	}
	var all sync.WaitGroup
	if err := r.connect(&all); err != nil {
		return err
	}
	began := time.Now()
	length := r.MinLoad + time.Duration(r.rng.Int64N(int64(r.MaxLoad-r.MinLoad)+1))
	select {
	case <-time.After(length):
	case <-r.server.Exited(): // by itself; the connections report it
	}
	if r.reader != nil {
		r.awaitHeldLog()
	}
	took := time.Since(began)
	end := r.endServer()
	all.Wait()
	if r.reader != nil && end != stop {
		r.countHeldLogs(cycle)
	}
	r.ledger.settle(r.ledger.now())
	unanswered := 0
	for n, w := range r.workers {
		w.link.conn.Close()
		r.pending[n] = w.unanswered()
		unanswered += len(r.pending[n])
	}
	for _, b := range r.barbers {
		b.line.conn.Close()
		unanswered += len(b.unanswered()) // which judgeBoard looks at
	}
	ready := 0
	for _, s := range r.takers {
		s.link.conn.Close()
		if end != stop {
			s.unanswered()
			ready += s.ready
		}
	}
	for _, line := range r.server.Failures() {
		r.add(Report, "the server's log has an error: %s", line)
	}
	if end == stop && unanswered > 0 {
		r.add(Unanswered, "%d requests had no reply after a clean stop", unanswered)
	}
	ops := r.pushed.Load() + r.popped.Load() + r.delivered.Load()
	r.result.Ops += ops
	r.result.BoardOps += r.shifted.Load() + r.called.Load()
	r.result.Load += took
	r.Logf("cycle %d: %v after %v, %d operations (%.0f/s): %d pushes acknowledged, %d pops, %d deliveries; "+
		"board: %d updates, %d items called; unanswered: %d requests, %d ready", cycle, end, took.Round(time.Millisecond), ops,
		float64(ops)/took.Seconds(), r.pushed.Load(), r.popped.Load(), r.delivered.Load(), r.shifted.Load(), r.called.Load(),
		unanswered, ready)
	return nil
}

// connect opens all connections and starts their goroutines.
func (r *run) connect(all *sync.WaitGroup) error {
	if r.reader != nil {
		if err := r.reader.fill(); err != nil {
			return fmt.Errorf("fill the server for a slow reader: %w", err)
		}
	}
	for _, w := range r.workers {
		link, err := dial(r.server.Addr())
		if err != nil {
			return fmt.Errorf("connect a worker: %w", err)
		}
		w.link = link
	}
	for _, s := range r.takers {
		link, err := dial(r.server.Addr())
		if err != nil {
			return fmt.Errorf("connect a subscriber: %w", err)
		}
		s.link = link
	}
	for _, b := range r.barbers {
		line, err := r.dialBoard()
		if err != nil {
			return fmt.Errorf("connect a barber: %w", err)
		}
		b.line = line
	}
	for _, w := range r.workers {
		all.Go(w.work)
	}
	for _, s := range r.takers {
		all.Go(s.follow)
	}
	for _, b := range r.barbers {
		all.Go(b.work)
	}
	if r.reader != nil {
		return r.reader.start(all)
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
	switch end {
	case kill:
		r.end.Store(int32(end))
		r.server.Kill()
		r.result.Kills++
	case stopKill:
		r.end.Store(int32(end))
		r.server.Interrupt()
		time.Sleep(time.Duration(r.rng.IntN(3000)) * time.Microsecond) // any moment of the drain
		r.server.Kill()
		r.result.Kills++
	case stop:
		// Everything begun is written, and nothing more will be, before the signal: so all of it
		// has been received, and must be answered.
		r.gate.close()
		r.end.Store(int32(end))
		ctx, cancel := context.WithTimeout(context.Background(), deadline)
		defer cancel()
		if err := r.server.Terminate(ctx); err != nil {
			r.add(Died, "clean stop: %v", err)
		}
		r.result.Stops++
	}
	return end
}

// broken notes that a connection failed, which is what a kill does to it.
func (r *run) broken(who string, err error) {
	switch endKind(r.end.Load()) {
	case notYet:
		if r.of(Died) > 0 {
			return // all connections notice; the first one tells
		}
		r.add(Died, "%s lost its connection while nobody ended the server: %v; its log ends with:\n%s", who, err, r.server.Log())
	case stop:
		r.add(Unanswered, "%s lost its connection in a clean stop: %v", who, err)
	}
}
