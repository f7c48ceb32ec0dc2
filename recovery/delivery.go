package recovery

import (
	"sort"

	"github.com/holdfast-queue/holdfast/storage"
)

// Delivery is a delivery state that waits for its packet. It holds no pointer, so that a million of
// them cost the garbage collector nothing.
type Delivery struct {
	Identity, Token       uint64
	Until, Expiry         int64
	FirstClaim, LastClaim int64
	Consumer              uint32 // the caller's own number
	Origin                uint32
	Attempts              uint16
	State                 storage.State
	Stored                storage.Stored
	Matched               bool // a packet with this identity was there
	Keep                  bool // the caller's own
}

// NewDelivery makes a Delivery that has not met its packet.
func NewDelivery(d *storage.Delivery, stored storage.Stored) Delivery {
	return Delivery{
		Identity: d.Identity, Token: d.Token, Until: d.Until, Expiry: d.Expiry, FirstClaim: d.FirstClaim, LastClaim: d.LastClaim,
		Origin: d.Origin, Attempts: uint16(min(d.Attempts, 0xffff)), State: d.State, Stored: stored,
	}
}

// Leased reports whether somebody holds the packet. d may be nil.
func (d *Delivery) Leased(now int64) bool { return d != nil && d.State.Leased(d.Until, now) }

// Expired reports whether the packet's time has passed. If it is held it is there all the same.
func (d *Delivery) Expired(now int64) bool { return d.Expiry != 0 && d.Expiry <= now }

// Deliveries are delivery states in the order of their identities.
type Deliveries []Delivery

// Find returns the delivery state of a packet, nil if there is none. It looks at identities only.
func (l Deliveries) Find(identity uint64) *Delivery {
	at := sort.Search(len(l), func(i int) bool { return l[i].Identity >= identity })
	if at == len(l) || l[at].Identity != identity {
		return nil
	}
	return &l[at]
}
