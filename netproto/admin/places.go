package admin

import (
	"context"
	"sync"

	"github.com/holdfast-queue/holdfast/netproto/access"
)

// Places bound how much of one kind is done at a time. A user gets no more of them than it leaves
// to others, and users who operate have one more. Without users they are for everybody. Any
// goroutine may call the methods.
type Places struct {
	size int

	mu   sync.Mutex
	used int
	of   map[string]int // the used ones, by user
	left chan struct{}  // is closed when somebody has left; nil if nobody waits
}

// NewPlaces makes size places, and one more for those who operate.
func NewPlaces(size int) *Places { return &Places{size: size, of: make(map[string]int)} }

// Take takes a place of a user, nil if there are no users. leave gives it back; it is called once.
// leave is nil if there is none for that user now.
func (p *Places) Take(a *access.Account) (leave func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.take(a)
}

func (p *Places) take(a *access.Account) (leave func()) {
	name, own, free := a.Name(), p.of[a.Name()], p.size-p.used
	switch {
	case a == nil:
		own = 0
	case a.May(access.Operate, nil):
		free++
	}
	if own >= free {
		return nil
	}
	p.used++
	p.of[name]++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.used--
		if p.of[name]--; p.of[name] == 0 {
			delete(p.of, name)
		}
		if p.left != nil {
			close(p.left)
			p.left = nil
		}
	}
}

// Wait is Take that waits for a place. It returns nil when ctx ends first.
func (p *Places) Wait(ctx context.Context, a *access.Account) (leave func()) {
	for {
		p.mu.Lock()
		leave = p.take(a)
		if leave == nil && p.left == nil {
			p.left = make(chan struct{})
		}
		left := p.left
		p.mu.Unlock()
		if leave != nil {
			return leave
		}
		select {
		case <-left:
		case <-ctx.Done():
			return nil
		}
	}
}
