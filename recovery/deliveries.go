package recovery

import (
	"cmp"
	"slices"
	"strings"

	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/storage"
)

// tried is a delivery state that waits for its packet. It holds no pointer, so that a million of
// them cost the garbage collector nothing.
type tried struct {
	identity, token    uint64
	until, first, last int64
	consumer           uint32 // in deliveries.names, from 1
	origin             uint32
	attempts           uint16
	state              storage.DeliveryState
	stored             storage.Stored
	expired            bool // by its own expiry
	met                bool // the scan met its packet
	kept               bool // its records stay, or it is an orphan already
}

// leased reports whether somebody holds the packet.
func (t *tried) leased(now int64) bool {
	return t.state == storage.Claimed && (t.until == 0 || t.until > now)
}

// deliveries are all delivery states of a store, in order of identity.
type deliveries struct {
	list    []tried
	next    int               // behind the last one that was found: packets come in much the same order
	names   []string          // of consumers
	numbers map[string]uint32 // of these names, from 1
	workers map[workerID]uint32
}

// workerID is a consumer of a queue.
type workerID struct {
	queue index.QueueID
	name  uint32
}

// maxDeliveries bounds the memory that is taken because the control record says so.
const maxDeliveries = 1 << 22

// readDeliveries reads all delivery states.
func (r *restorer) readDeliveries(src Source) error {
	s := &r.deliveries
	s.list = make([]tried, 0, min(src.Control().Deliveries, maxDeliveries))
	s.numbers, s.workers = make(map[string]uint32), make(map[workerID]uint32)
	return src.Deliveries(func(d *storage.Delivery, stored storage.Stored) error {
		r.progress()
		if stored&storage.StoredDelivery != 0 { // else only its notes are there
			r.tally.AddDelivery(d.Identity)
		}
		s.list = append(s.list, tried{
			identity: d.Identity, token: d.Token, until: d.Until, first: d.FirstClaim, last: d.LastClaim,
			consumer: s.number(d.Consumer), origin: d.Origin, attempts: attempts(d.Attempts), state: d.State, stored: stored,
			expired: d.Expiry != 0 && d.Expiry <= r.Now,
		})
		return nil
	})
}

func attempts(n uint32) uint16 { return uint16(min(n, 0xffff)) }

// number is that of a consumer's name.
func (s *deliveries) number(name string) uint32 {
	n, known := s.numbers[name]
	if !known && name != "" {
		name = strings.Clone(name) // of a record
		s.names = append(s.names, name)
		n = uint32(len(s.names))
		s.numbers[name] = n
	}
	return n
}

// find returns the delivery state of a packet, nil if it has none.
func (s *deliveries) find(identity uint64) *tried {
	if at := s.next; at < len(s.list) && s.list[at].identity > identity && (at == 0 || s.list[at-1].identity < identity) {
		return nil
	} else if at == len(s.list) || s.list[at].identity != identity {
		at, there := slices.BinarySearchFunc(s.list, identity, func(t tried, identity uint64) int { return cmp.Compare(t.identity, identity) })
		if s.next = at; !there {
			return nil
		}
	}
	s.next++
	return &s.list[s.next-1]
}

// delivery returns the delivery state of a packet that the scan met, nil if it has none. Of two
// packets with one identity only the first gets it; the other goes by its sequence.
func (r *restorer) delivery(id storage.PacketID, m *storage.Meta) *tried {
	t := r.deliveries.find(cmp.Or(m.Identity, id.Seq))
	if t == nil {
		return nil
	}
	if t.met {
		if r.twins++; r.twins <= maxAlikeFindings {
			r.finding("packet %v and another one have the identity %d: it has lost its delivery state, if it had one", id, t.identity)
		}
		m.Identity = 0
		return nil
	}
	t.met = true
	return t
}

// apply gives the index entry of a packet what its delivery state says.
func (r *restorer) apply(t *tried, e *index.Entry, dropped bool) {
	t.kept = true
	e.Delivery = index.Delivery{
		Token: t.token, FirstClaim: t.first, LastClaim: t.last, Origin: t.origin, Attempts: t.attempts, Stored: uint8(t.stored),
	}
	if t.consumer != 0 && !dropped {
		e.Delivery.Consumer = r.worker(e.Queue, t.consumer, t.last)
	}
	if t.leased(r.Now) && !dropped {
		r.state.Report.Claimed++
	}
	switch t.state {
	case storage.Claimed: // a lease that has ended ends as soon as the index advances
		e.State, e.Until = index.Claimed, t.until
		if whole := t.until - t.last; whole > 0 && t.until-r.Now > 2*whole { // the clock is far behind
			e.Until = r.Now + whole
		}
	case storage.Dead:
		// Its death, or what is nearest to it where a version before 5 wrote the state.
		e.State, e.Until = index.Dead, cmp.Or(t.until, t.last, r.Now)
	case storage.Done:
		e.State, e.Until = index.Done, 0
	case storage.Waiting:
		e.Until = t.until // it was claimed since it was pushed: the delay of the push is over
	}
}

// worker returns the number of a consumer of a queue, and counts one packet more for it, which it
// claimed at a moment.
func (r *restorer) worker(q index.QueueID, name uint32, at int64) uint32 {
	id := workerID{q, name}
	n := r.deliveries.workers[id]
	if n == 0 {
		r.state.Workers = append(r.state.Workers, Worker{Queue: q, Name: r.deliveries.names[name-1]})
		n = uint32(len(r.state.Workers))
		r.deliveries.workers[id] = n
	}
	w := &r.state.Workers[n-1]
	w.Packets++
	w.Seen = max(w.Seen, at)
	return n
}

// leaveDeliveries notes the delivery states that belong to no packet, and forgets the others. One
// that should have a packet is a finding only: if the packet was lost, the control record says so.
func (r *restorer) leaveDeliveries() {
	lost := 0
	for i := range r.deliveries.list {
		t := &r.deliveries.list[i]
		if t.kept {
			continue
		}
		r.state.Orphans = append(r.state.Orphans, Orphan{Removed: storage.Removed{Stored: t.stored, Identity: t.identity}})
		if t.expired {
			continue
		}
		if lost++; lost <= maxAlikeFindings {
			r.finding("the delivery state of packet %d belongs to no packet and is left out", t.identity)
		}
	}
	if lost > maxAlikeFindings {
		r.finding("%d delivery states more belong to no packet", lost-maxAlikeFindings)
	}
	r.deliveries = deliveries{}
}
