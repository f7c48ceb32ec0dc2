package recovery

import (
	"cmp"
	"strings"

	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// deliveries are all delivery states of a store.
type deliveries struct {
	Deliveries
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

func newDeliveries(counted uint64) deliveries {
	list := make([]Delivery, 0, min(counted, maxDeliveries))
	return deliveries{Deliveries: Deliveries{List: list}, numbers: make(map[string]uint32), workers: make(map[workerID]uint32)}
}

// tried reads a delivery state. Only its notes may be there.
func (r *restorer) tried(d *content.Delivery, stored content.Stored, damage error) error {
	if damage != nil && stored&content.StoredDelivery != 0 {
		return damage
	}
	if damage == nil {
		r.tally.AddDelivery(d.Identity)
	}
	r.progress()
	keepRest(&r.state.Rests.States, d.Identity, d.Rest)
	r.deliveries.Add(d, stored, r.deliveries.number(d.Consumer))
	return nil
}

// number returns the number of a consumer's name.
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

// delivery returns the delivery state of a packet that the scan met, nil if it has none, or if it
// went to another packet of that identity.
func (r *restorer) delivery(id content.PacketID, m *content.Meta) *Delivery {
	d, again := r.deliveries.Match(cmp.Or(m.Identity, id.Seq))
	if again {
		return nil
	}
	return d
}

// setAside makes a packet damaged that has the sequence or the identity of another. It gets an
// identity of its own, so each can be found and deleted.
func (r *restorer) setAside(id content.PacketID, e *index.Entry) {
	r.some(&r.duplicates, "packet %v has the sequence or the identity of another one: it is damaged", id)
	e.State, e.Until, e.Delivery = index.Damaged, 0, index.Delivery{}
	e.Identity = r.state.Marks.NextSeq
	r.state.Marks.NextSeq++
}

// apply gives the index entry of a packet what its delivery state says.
func (r *restorer) apply(d *Delivery, e *index.Entry, dropped bool) {
	d.Keep = true
	e.Delivery = index.Delivery{
		Token: d.Token, FirstClaim: d.FirstClaim, LastClaim: d.LastClaim, Origin: d.Origin, Attempts: d.Attempts, Stored: uint8(d.Stored),
		Cancelled: d.Cancelled && d.State == content.Claimed, // else an older version has ended the claim
	}
	if d.Consumer != 0 && !dropped {
		e.Delivery.Consumer = r.worker(e.Queue, d.Consumer, d.LastClaim)
	}
	if d.Leased(r.Now) && !dropped {
		r.state.Report.Claimed++
	}
	// Until is 0 once the packet was claimed: the delay of its push is over.
	e.State, e.Until = index.State(d.State), d.Until
	switch d.State {
	case content.Delayed:
		e.State = index.Ready // unless that moment is still to come
	case content.Claimed: // a lease that has ended ends as soon as the index advances
		if whole := d.Until - d.LastClaim; whole > 0 && d.Until-r.Now > 2*whole { // the clock is far behind
			e.Until = r.Now + whole
		}
	case content.Dead: // since when, a dump of an older version did not say
		e.Until = cmp.Or(d.Until, d.LastClaim, r.Now)
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

// leaveDeliveries notes the delivery states that belong to no packet that stays, and forgets the
// others. One that should have a packet is a finding only: the control record tells of a loss.
func (r *restorer) leaveDeliveries() {
	lost := 0
	for i := range r.deliveries.List {
		d := &r.deliveries.List[i]
		if d.Keep {
			continue
		}
		r.state.Orphans = append(r.state.Orphans, content.Removed{Stored: d.Stored, Identity: d.Identity})
		if d.Expires() || d.Matched {
			continue
		}
		r.some(&lost, "the delivery state of packet %d belongs to no packet and is left out", d.Identity)
	}
	if lost > maxSameFindings {
		r.finding("%d delivery states more belong to no packet", lost-maxSameFindings)
	}
	r.deliveries = deliveries{}
}
