package access

import (
	"net/netip"
	"sync"
	"time"
)

const (
	// freeGuesses is how many logins of an address may miss what is remembered at once: more than wait
	// when all clients of a server come back together. guessesPerSecond is how many may go on.
	freeGuesses      = 2 * maxWaiting
	guessesPerSecond = 100
	// maxGuessers is how many addresses are known.
	maxGuessers = 4096
)

// guesses are the addresses whose passwords were not those that are remembered. What is remembered
// is told at once, and a client that guesses need not wait for anything else: so it is told that to
// those only who have guesses left.
type guesses struct {
	mu sync.Mutex
	of map[netip.Addr]*guesser
}

// guesser holds how many guesses an address has left.
type guesser struct {
	left float64
	at   time.Time // that moment
}

// full says whether all guesses are left now.
func (g *guesser) full(now time.Time) bool {
	g.left, g.at = min(freeGuesses, g.left+guessesPerSecond*now.Sub(g.at).Seconds()), now
	return g.left == freeGuesses
}

// spent says that an address has no guess left.
func (g *guesses) spent(from netip.Addr, now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	one := g.of[Host(from)]
	return one != nil && !one.full(now) && one.left < 1
}

// miss takes a guess of an address, and hit gives it back if it was right after all.
func (g *guesses) miss(from netip.Addr, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	one := g.of[Host(from)]
	if one == nil {
		if len(g.of) >= maxGuessers {
			g.makeRoom(now)
		}
		one = &guesser{left: freeGuesses, at: now}
		g.of[Host(from)] = one
	}
	one.full(now)
	one.left = max(0, one.left-1)
}

func (g *guesses) hit(from netip.Addr) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if one := g.of[Host(from)]; one != nil {
		one.left++
	}
}

// makeRoom forgets the addresses that have all left, and one at least.
func (g *guesses) makeRoom(now time.Time) {
	for a, one := range g.of {
		if one.full(now) || len(g.of) >= maxGuessers {
			delete(g.of, a)
		}
	}
}
