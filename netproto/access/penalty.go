package access

import (
	"net/netip"
	"sync"
	"time"
)

const (
	firstPenalty = 100 * time.Millisecond
	maxPenalty   = 5 * time.Second
	// forgotten is how long after its last failure an address is like any other.
	forgotten = 10 * time.Minute
	// maxPenalties is how many addresses are known. The one that failed longest ago makes room.
	maxPenalties = 4096
	// maxSuspects is how many logins of one address may wait for the end of its penalty.
	maxSuspects = 8
)

// penalties are the addresses whose logins have failed.
type penalties struct {
	mu sync.Mutex
	of map[netip.Addr]*penalty
}

// penalty holds what an address has to bear.
type penalty struct {
	wait    time.Duration // after the next failure
	last    time.Time     // failure
	until   time.Time     // no login is tried before
	waiting int           // logins that wait for that
}

// Host is the address as which a client counts: of IPv6 a host has 64 bits by itself.
func Host(a netip.Addr) netip.Addr {
	a = a.Unmap().WithZone("")
	if a.Is6() {
		network, _ := a.Prefix(64) // which fits
		return network.Addr()
	}
	return a
}

// begin says how long a login has to wait before it asks again; it calls leave after that. 0: it is
// tried now, and the next of a suspect waits as if it had failed. ErrBusy if too many wait.
func (p *penalties) begin(from netip.Addr, now time.Time) (wait time.Duration, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.of[Host(from)]
	switch {
	case one == nil || now.Sub(one.last) > forgotten:
		return 0, nil
	case !now.Before(one.until):
		one.until = now.Add(one.wait)
		return 0, nil
	case one.waiting >= maxSuspects:
		return 0, ErrBusy
	}
	one.waiting++
	return one.until.Sub(now), nil
}

// leave ends a wait.
func (p *penalties) leave(from netip.Addr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if one := p.of[Host(from)]; one != nil && one.waiting > 0 { // it may be a newer one
		one.waiting--
	}
}

// fail notes a login that failed, and returns its penalty.
func (p *penalties) fail(from netip.Addr, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.of[Host(from)]
	if one == nil || now.Sub(one.last) > forgotten {
		p.makeRoom(now)
		one = &penalty{wait: firstPenalty}
		p.of[Host(from)] = one
	}
	wait := one.wait
	one.wait = min(2*wait, maxPenalty)
	one.last, one.until = now, now.Add(wait)
	return wait
}

// makeRoom forgets what is over, and one address more if there are too many.
func (p *penalties) makeRoom(now time.Time) {
	if len(p.of) < maxPenalties {
		return
	}
	var oldest netip.Addr
	for a, one := range p.of {
		if now.Sub(one.last) > forgotten {
			delete(p.of, a)
		} else if first := p.of[oldest]; first == nil || one.last.Before(first.last) {
			oldest = a
		}
	}
	if len(p.of) >= maxPenalties {
		delete(p.of, oldest)
	}
}
