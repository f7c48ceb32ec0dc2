package contents

import (
	"sort"

	"github.com/holdfast-queue/holdfast/storage"
)

// Tried is what a scan keeps of a delivery state until it meets the packet.
type Tried struct {
	Identity      uint64
	Until, Expiry int64
	State         storage.DeliveryState
	Stored        storage.Stored
	Met           bool // the packet is there
}

// TriedOf makes a Tried that has not met its packet.
func TriedOf(d *storage.Delivery, stored storage.Stored) Tried {
	return Tried{Identity: d.Identity, Until: d.Until, Expiry: d.Expiry, State: d.State, Stored: stored}
}

// Leased reports whether somebody holds the packet. t may be nil.
func (t *Tried) Leased(now int64) bool {
	return t != nil && t.State == storage.Claimed && (t.Until == 0 || t.Until > now)
}

// Expired reports whether the packet's time has passed. If it is held it is there all the same.
func (t *Tried) Expired(now int64) bool { return t.Expiry != 0 && t.Expiry <= now }

// TriedList are delivery states in the order of their identities.
type TriedList []Tried

// Find returns the delivery state of a packet, nil if there is none. It looks at identities only.
func (l TriedList) Find(identity uint64) *Tried {
	at := sort.Search(len(l), func(i int) bool { return l[i].Identity >= identity })
	if at == len(l) || l[at].Identity != identity {
		return nil
	}
	return &l[at]
}

// Meet is Find for a packet that takes the delivery state: a second packet with its identity gets
// none.
func (l TriedList) Meet(identity uint64) *Tried {
	t := l.Find(identity)
	if t == nil || t.Met {
		return nil
	}
	t.Met = true
	return t
}
