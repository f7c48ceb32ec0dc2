package crash

import (
	"errors"
	"math/rand/v2"
	"sync"
)

// client is one connection of the load. It belongs to its goroutine while work runs, which ends
// with the connection or when the load is over. Otherwise it belongs to the harness.
type client interface {
	connect() error
	work()
	// hangUp closes the connection after the end of the server. It returns how many requests had no
	// reply.
	hangUp(end endKind) (unanswered int)
}

// pipeline is the part of a client that sends some requests at a time and waits for their replies.
type pipeline[O any] struct {
	r      *run
	number int
	rng    *rand.Rand
	link   *link
	ops    []O // requests that were sent; those before done are answered
	done   int
	asked  int64 // a moment before they were sent
}

// maxPipeline is how many requests a client sends at a time.
const maxPipeline = 64

// follow builds and sends one pipeline after the other. It leaves in ops[done:] what had no reply.
func (p *pipeline[O]) follow(who string, build func(requests int), answer func() error) {
	p.forget()
	for p.r.gate.enter() {
		p.forget()
		n := 1 + p.rng.IntN(maxPipeline)
		if p.rng.IntN(4) == 0 {
			n = 1
		}
		p.asked = p.r.ledger.now()
		build(n)
		err := p.link.send()
		p.r.gate.leave()
		for err == nil && p.done < len(p.ops) {
			err = answer()
		}
		if err != nil {
			p.r.broken(who, err)
			return
		}
	}
}

// unanswered returns the requests without a reply.
func (p *pipeline[O]) unanswered() []O { return p.ops[p.done:] }

func (p *pipeline[O]) forget() { p.ops, p.done = p.ops[:0], 0 }

// broken notes that a connection failed, which is what a kill does to it.
func (r *run) broken(who string, err error) {
	switch endKind(r.end.Load()) {
	case notYet:
		if r.count(Died) > 0 {
			return // all connections break; one report is enough
		}
		r.report(Died, "%s lost its connection while nobody ended the server: %v; its log ends with:\n%s", who, err, r.server.Log())
	case stop:
		if errors.Is(err, errGivenUp) {
			return
		}
		r.report(Unanswered, "%s lost its connection in a clean stop: %v", who, err)
	}
}

// errGivenUp is that of a request that waits: a clean stop does not answer it, nor those behind it.
var errGivenUp = errors.New("a request that waits was given up")

// gate lets clients send until it is closed. When set(true) returns, every request that was begun
// is written, and no other will be.
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
