package crash

import "sync"

// gate lets connections send until it is closed. When close returns, whatever was begun is
// written and nothing more will be.
type gate struct {
	mu     sync.RWMutex // held for reading while something is sent
	closed bool
}

// enter returns false when the gate is closed; after true the caller must leave.
func (g *gate) enter() bool {
	g.mu.RLock()
	if g.closed {
		g.mu.RUnlock()
		return false
	}
	return true
}

func (g *gate) leave() { g.mu.RUnlock() }

func (g *gate) close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
}

func (g *gate) open() {
	g.mu.Lock()
	g.closed = false
	g.mu.Unlock()
}

// shut says whether the gate is closed.
func (g *gate) shut() bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.closed
}
