package recovery

import (
	"sort"

	"github.com/holdfast-queue/holdfast/storage/content"
)

// Unselectable is the state, for people, of packets of priority 0.
const Unselectable content.State = 0

// StateNames are the states of packets for people.
var StateNames = [...]string{
	Unselectable: "unselectable", content.Ready: "ready", content.Delayed: "delayed",
	content.Claimed: "claimed", content.Dead: "dead", content.Done: "done",
}

// StateOf is the state of a packet for people. Claimed, dead and done ones are in the state of
// their delivery state; in which the others are follows from the time that they wait for.
func StateOf(priority uint32, until int64, tried content.State, now int64) content.State {
	switch {
	case tried >= content.Claimed:
		return tried
	case priority == 0:
		return Unselectable
	case until > now:
		return content.Delayed
	}
	return content.Ready
}

// Delivery is a delivery state that waits for its packet. It holds no pointer, so that a million of
// them cost the garbage collector nothing.
type Delivery struct {
	Identity, Token       uint64
	Until, Expiry         int64
	FirstClaim, LastClaim int64
	Consumer              uint32 // the caller's own number
	Origin                uint32
	Attempts              uint16
	State                 content.State
	Stored                content.Stored
	Cancelled             bool
	Matched               bool // a packet with this identity was there
	Keep                  bool // the caller's own
}

// Leased reports whether somebody holds the packet. d may be nil.
func (d *Delivery) Leased(now int64) bool { return d != nil && d.State.Leased(d.Until, now) }

// Expires reports whether the packet expires: then it may be gone. Whenever its time comes, a start
// under a clock that was ahead may have deleted it.
func (d *Delivery) Expires() bool { return d.Expiry != 0 }

// Deliveries are delivery states in the order of their identities.
type Deliveries struct {
	List []Delivery
	next int // behind the last one that was found: packets come in much the same order
}

// Add adds the last one.
func (s *Deliveries) Add(d *content.Delivery, stored content.Stored, consumer uint32) {
	s.List = append(s.List, Delivery{
		Identity: d.Identity, Token: d.Token, Until: d.Until, Expiry: d.Expiry, FirstClaim: d.FirstClaim, LastClaim: d.LastClaim,
		Consumer: consumer, Origin: d.Origin, Attempts: uint16(min(d.Attempts, 0xffff)), State: d.State, Stored: stored,
		Cancelled: d.Cancelled,
	})
}

// Match returns the delivery state of a packet, nil if there is none, and whether a packet of this
// identity was matched before.
func (s *Deliveries) Match(identity uint64) (d *Delivery, again bool) {
	l, at := s.List, s.next
	if at == len(l) || l[at].Identity != identity {
		if (at == len(l) || l[at].Identity > identity) && (at == 0 || l[at-1].Identity < identity) {
			return nil, false
		}
		at = sort.Search(len(l), func(i int) bool { return l[i].Identity >= identity })
		if s.next = at; at == len(l) || l[at].Identity != identity {
			return nil, false
		}
	}
	d = &l[at]
	s.next++
	again, d.Matched = d.Matched, true
	return d, again
}
