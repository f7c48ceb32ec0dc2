package crash

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// trial is a server that is loaded, ended and started again, with the workers that load it.
type trial struct {
	command Command
	data    string
	rng     *rand.Rand
	workers []*worker
	server  *Server
	gate    gate
	depth   int          // how many calls a worker sends at a time, at most
	harmed  bool         // something fails in the server, so its log may tell of errors
	calls   atomic.Int64 // with a reply
	refused atomic.Int64 // those for which there was no room
	logf    func(format string, args ...any)
}

func newTrial(command Command, data string, seed uint64, logf func(string, ...any)) *trial {
	t := &trial{command: command, data: data, rng: rand.New(rand.NewPCG(seed, 1000)), depth: 8, logf: logf}
	clock := time.Now().UnixMilli()
	for n := range 6 {
		t.workers = append(t.workers, newWorker(n, seed, clock))
	}
	return t
}

// start starts the server and judges what it has.
func (t *trial) start() error {
	if t.rng.IntN(6) == 0 { // killed while it recovers, too
		s, err := Spawn(t.command, t.data)
		if err != nil {
			return err
		}
		select {
		case <-s.Exited():
		case <-time.After(time.Duration(t.rng.IntN(60)) * time.Millisecond): // the moment is what is tested
		}
		s.Kill()
	}
	var err error
	if t.server, err = Start(t.command, t.data); err != nil {
		return err
	}
	if n := t.server.Log().Findings; n != 0 {
		return fmt.Errorf("the start report has %d findings; the log ends with:\n%s", n, t.server.Log())
	}
	var errs []error
	for _, w := range t.workers {
		if w.link, err = t.server.dial(redisListener); err == nil {
			err = w.settle()
		}
		if err == nil {
			err = w.link.conn.SetDeadline(time.Time{})
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// load has the workers work until until returns, and ends the server: by SIGTERM if it is to be
// clean, else by SIGKILL. A clean end answers all that was sent.
func (t *trial) load(until func(), clean bool) error {
	errs := make([]error, len(t.workers))
	t.gate.set(false)
	var all sync.WaitGroup
	for i, w := range t.workers {
		all.Go(func() { errs[i] = w.work(t) })
	}
	until()
	var err error
	if clean {
		t.gate.set(true)
		err = t.server.Terminate()
	} else {
		t.server.Kill()
	}
	all.Wait()
	t.gate.set(true)
	unanswered := 0
	for _, w := range t.workers {
		unanswered += len(w.sent)
		w.link.conn.Close()
	}
	log := t.server.Log()
	switch {
	case clean && err == nil && unanswered > 0:
		err = fmt.Errorf("%d calls had no reply after a clean stop", unanswered)
	case !t.harmed && len(log.Failures) > 0 || log.Panicked:
		err = fmt.Errorf("the log tells of errors:\n%s", log)
	}
	t.logf("%d calls so far, %d without a reply, clean: %v", t.calls.Load(), unanswered, clean)
	return errors.Join(append(errs, err)...)
}

// leastCalls is how many calls a load has, however long they take, up to a minute.
const leastCalls = 100

// run loads and ends a server so many times, and starts it once more.
func (t *trial) run(cycles int, least, most time.Duration, stops bool) error {
	for range cycles {
		if err := t.start(); err != nil {
			return err
		}
		length := least + time.Duration(t.rng.Int64N(int64(most-least)+1))
		from := t.calls.Load()
		loaded := func() {
			t.wait(length)
			t.until(func() bool { return t.calls.Load() >= from+leastCalls })
		}
		if err := t.load(loaded, stops && t.rng.IntN(4) == 0); err != nil {
			return err
		}
	}
	if err := t.start(); err != nil {
		return err
	}
	t.server.Kill()
	return nil
}

// kill ends what is left of the server when a test is over.
func (t *trial) kill() {
	if t.server != nil {
		t.server.Kill()
	}
}

// wait waits until a time is over or the server has ended.
func (t *trial) wait(length time.Duration) {
	select {
	case <-t.server.Exited():
	case <-time.After(length): // the moment is what is tested
	}
}

// until waits for something, for the end of the server, or for a minute.
func (t *trial) until(is func() bool) {
	for end := time.Now().Add(deadline); !is() && time.Now().Before(end); {
		select {
		case <-t.server.Exited():
			is()
			return
		case <-time.After(time.Millisecond): // until the next look
		}
	}
}

// gate lets workers send until it is closed. When set(true) returns, every call that was begun is
// written, and no other will be.
type gate struct {
	mu     sync.RWMutex // held for reading while something is sent
	closed bool
}

// enter returns false when the gate is closed. After true the caller must leave.
func (g *gate) enter() bool {
	g.mu.RLock()
	if g.closed {
		g.mu.RUnlock()
		return false
	}
	return true
}

func (g *gate) leave() { g.mu.RUnlock() }

func (g *gate) set(closed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = closed
}
