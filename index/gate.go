package index

import "math"

// gate says how many packets may be taken: by a limit of those that are Claimed, by a rate, and by
// a rest. A queue has one, and so has each share. It is a value that is copied and asked, so a look
// ahead changes nothing. Times are in nanoseconds, on the clock of SetClock.
//
// The rate is a meter (GCRA): it says when the next take is due. Each take moves that one gap on,
// at the earliest from now. So takes are spread evenly, with a burst on top. All takes are charged,
// also those of a whole group, and a meter without a gap passes all.
type gate struct {
	rate
	due     int64  // when the next take is, without the burst
	rest    int64  // until when nothing is taken; 0: it does not rest
	max     uint32 // how many may be Claimed at once; 0: any number
	claimed uint32
}

// rate is how fast packets are taken.
type rate struct {
	gap   int64 // between takes; 0: none
	burst int64 // takes at once, 1 at least
}

// rateOf returns a rate whose sums cannot overflow.
func rateOf(gap, burst int64) rate {
	if burst = max(1, burst); gap > 0 {
		burst = min(burst, latest/2/gap)
	}
	return rate{gap, burst}
}

// stop says what keeps a share from giving packets.
type stop uint8

const (
	open     stop = 2 * iota
	full          // all that may be claimed is: it gives to those who do not claim
	waits         // for its rate, or it rests
	stops         // how many there are
	onlyWide = 1  // besides: it has no narrow packets
)

// slack is how much a take may be early, in nanoseconds. The clock has whole milliseconds: without
// it each take would be late by a part of one, and so all behind it.
const slack = 10_000_000

// latest is the latest moment that a take is due: after a century.
const latest = 1 << 62

// slowGap is how far apart takes are of a rate that is slow, in nanoseconds: a start knows of it.
const slowGap = 10_000_000_000

// TakeDue is when the next take of a slow rate is due, without the burst.
type TakeDue struct {
	At  int64 // in milliseconds of the steady clock; 0: at rest
	Gap int64 // nanoseconds between takes of the rate that it goes by
}

// stop says what stops a gate.
func (g *gate) stop(now int64) stop {
	switch {
	case g.passes(now) == 0:
		return waits
	case g.room() == 0:
		return full
	}
	return open
}

// allows is how many takes a gate lets pass now, which claim or do not.
func (g *gate) allows(now int64, claims bool) int {
	if claims {
		return min(g.passes(now), g.room())
	}
	return g.passes(now)
}

// room is how many packets more may be claimed.
func (g *gate) room() int {
	if g.max == 0 {
		return math.MaxInt
	}
	return int(g.max - min(g.max, g.claimed))
}

// passes is how many takes the rate and the rest let pass now.
func (g *gate) passes(now int64) int {
	switch left := now + (g.burst-1)*g.gap + slack - max(g.due, now); {
	case g.rest > now:
		return 0
	case g.gap == 0:
		return math.MaxInt
	case left < 0:
		return 0
	default:
		return int(left/g.gap) + 1
	}
}

// charge counts n takes.
func (g *gate) charge(now, n int64) {
	if g.gap != 0 {
		g.due = max(g.due, now)
		g.due += min((latest-g.due)/g.gap, n) * g.gap
	}
}

// opens is when the rate of a gate that lets nothing pass does so, in milliseconds.
func (g *gate) opens() int64 {
	return max(1, (g.due-(g.burst-1)*g.gap-slack+999_999)/1_000_000)
}

// follow lets a gate obey another rate: as many takes are ahead as before. Who was to wait for long
// waits no longer than the new one says. slow says that its due is another, and was of a slow rate
// or is.
func (g *gate) follow(r rate, now int64) (slow bool) {
	was := g.rate
	if g.rate = r; was == r || g.due <= now {
		return false
	}
	if was.gap != 0 {
		g.due = now + int64(min(latest/2, float64(g.due-now)/float64(was.gap)*float64(r.gap)))
	}
	g.due = min(g.due, now+r.burst*r.gap)
	return max(was.gap, r.gap) >= slowGap
}

// spent is the due of a rate whose burst is spent: it lets one pass at a moment, and none before.
func (r rate) spent(at int64) int64 { return at + (r.burst-1)*r.gap + slack }

// goOn lets a gate go on with a due, which goes by the gap that it has: see follow.
func (g *gate) goOn(d TakeDue, now int64) (slow bool) {
	r := g.rate
	g.due, g.gap = d.At*1_000_000, d.Gap
	return g.follow(r, now)
}

// begin lets a gate begin after a start, with the due that was kept. at is when somebody may have
// taken last, in milliseconds. slow says that another due is to be kept.
func (g *gate) begin(d TakeDue, at, now int64) (slow bool) {
	if d.At > 0 {
		slow = g.goOn(d, now)
	}
	if g.gap < slowGap { // nobody knows what was taken before, and it may have been early
		g.due = max(g.due, g.spent(at*1_000_000+g.gap))
		return d.At > 0
	}
	return slow
}

// end is when all takes that are ahead are over, in milliseconds.
func (g *gate) end() int64 { return (g.due + 999_999) / 1_000_000 }

// keep is what is to be kept of a due.
func (g *gate) keep(now int64) TakeDue {
	if g.due <= now || g.gap < slowGap {
		return TakeDue{}
	}
	return TakeDue{g.end(), g.gap}
}
