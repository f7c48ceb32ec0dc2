package dump

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/holdfast-queue/holdfast/storage"
)

// Delivery is the delivery state of a packet with its notes, and with the name of its origin.
type Delivery struct {
	storage.Delivery
	OriginName []byte // nil: it has no origin, or one that is not in the dump
}

// Leased reports whether somebody holds the packet. d may be nil.
func (d *Delivery) Leased(now int64) bool { return d != nil && d.Delivery.Leased(now) }

// states are those of a packet as a dump shows them, by their numbers. The first three follow from
// its other fields and the time.
var states = [...]string{"unselectable", "ready", "delayed", storage.Claimed: "claimed", storage.Dead: "dead", storage.Done: "done"}

func stateOf(priority uint32, notBefore int64, d *Delivery, now int64) string {
	if d != nil && d.State >= storage.Claimed {
		return states[d.State]
	}
	if d != nil {
		notBefore = max(notBefore, d.Until)
	}
	switch {
	case priority == 0:
		return states[0]
	case notBefore > now:
		return states[storage.Delayed]
	}
	return states[storage.Ready]
}

// attemptsOf are those of the delivery state if there is one.
func attemptsOf(p *storage.Packet, d *Delivery) uint32 {
	if d != nil {
		return d.Attempts
	}
	return p.Attempts
}

// newDeliveryRecord makes the part of a packet's record that tells of its delivery state.
func newDeliveryRecord(d *Delivery) (r deliveryRecord) {
	if d == nil {
		return r
	}
	r = deliveryRecord{
		Until: millis(d.Until), Token: sequence(d.Token), FirstClaim: millis(d.FirstClaim), LastClaim: millis(d.LastClaim),
		Consumer: []byte(d.Consumer), Reason: []byte(d.Reason),
	}
	if d.OriginName != nil {
		r.Origin, r.OriginID = d.OriginName, uint64(d.Origin)
	}
	if len(d.Progress) > 0 {
		percent := uint64(d.Progress[0])
		r.Progress, r.ProgressText = &percent, []byte(d.Progress[1:])
	}
	return r
}

// maxText bounds the bytes of a consumer's name, of a reason and of a progress.
const maxText = 0xffff

// checkDelivery says why no dump with this delivery state could be loaded.
func checkDelivery(d *Delivery, m storage.Marks) error {
	switch {
	case d.Identity <= m.LowSeq || d.Identity >= m.NextSeq || d.Token >= m.NextSeq:
		return fmt.Errorf("the packet has the identity %d and the token %d: expected an identity between the marks %d and %d, and a token below the second",
			d.Identity, d.Token, m.LowSeq, m.NextSeq)
	case len(d.Consumer) > maxText || len(d.Reason) > maxText || len(d.Progress) > maxText:
		return fmt.Errorf("the packet's consumer has %d bytes, its reason %d and its progress %d: at most %d each",
			len(d.Consumer), len(d.Reason), len(d.Progress), maxText)
	case d.State > storage.Done:
		return fmt.Errorf("the packet has the unknown state %d", d.State)
	case d.State == storage.Claimed && (d.Token == 0 || d.Attempts == 0):
		return fmt.Errorf("the packet is claimed, with the token %d and after %d attempts: expected 1 or more, both", d.Token, d.Attempts)
	case d.State == storage.Done && d.Expiry == 0:
		return errors.New("the packet is done and never expires: one that was acknowledged is kept for a while")
	case d.Until < 0:
		return fmt.Errorf("the packet waits until %d: expected 0 or more milliseconds", d.Until)
	}
	return nil
}

// deliveryRecord makes a delivery state of a packet's record, nil if nothing was tried with it.
// Attempts alone stay with the packet.
func (c *checker) deliveryRecord(r *packetRecord, p *storage.Packet, seq uint64) (*Delivery, error) {
	t := &r.deliveryRecord
	d := &c.delivery
	*d = Delivery{Delivery: storage.Delivery{
		Identity: cmp.Or(p.Identity, seq), Until: int64(t.Until), Attempts: p.Attempts, Token: uint64(t.Token),
		FirstClaim: int64(t.FirstClaim), LastClaim: int64(t.LastClaim), Consumer: string(t.Consumer), Expiry: p.Expiry, Reason: string(t.Reason),
	}, OriginName: t.Origin}
	switch state := slices.Index(states[:], r.State); {
	case state < 0 && r.State != "":
		return nil, fmt.Errorf("the packet has the state %q: expected ready, delayed, unselectable, claimed, dead or done", r.State)
	case state >= int(storage.Claimed):
		d.State = storage.State(state)
	case d.Until > 0:
		d.State = storage.Delayed
	default:
		d.State = storage.Ready
	}
	switch {
	case t.OriginID >= uint64(c.marks.NextQueue), (t.OriginID == 0) != (t.Origin == nil), len(t.Origin) > storage.MaxName:
		return nil, fmt.Errorf("the packet has the origin %.100q and the origin_id %d: expected the name of a queue and its id, or neither", t.Origin, t.OriginID)
	case t.Progress == nil && t.ProgressText != nil, t.Progress != nil && *t.Progress > math.MaxUint8:
		return nil, errors.New("the packet's progress is not in percent")
	case t.Progress != nil:
		d.Progress = string(append([]byte{byte(*t.Progress)}, t.ProgressText...))
	}
	d.Origin = uint32(t.OriginID)
	if err := checkDelivery(d, c.marks); err != nil {
		return nil, err
	}
	if d.Delivery == (storage.Delivery{State: storage.Ready, Identity: d.Identity, Attempts: d.Attempts, Expiry: d.Expiry}) {
		return nil, nil
	}
	p.Attempts = 0
	return d, nil
}

// readDeliveries notes which packets have a delivery state. A salvage leaves out those that cannot
// be read or loaded, and widens the marks until they hold the others.
func (d *dumper) readDeliveries(m *storage.Marks) error {
	var tally storage.Tally
	unread := uint64(0)
	err := d.src.Deliveries(func(state *storage.Delivery, damage error) error {
		if damage == nil {
			tally.AddDelivery(state.Identity)
			if d.Salvage {
				widen(m, max(state.Identity, state.Token))
			}
			damage = checkDelivery(&Delivery{Delivery: *state}, *m)
		} else {
			unread++
		}
		switch {
		case damage == nil:
			d.delivered = append(d.delivered, state.Identity)
		case !d.Salvage:
			return fmt.Errorf("%w: the delivery state of packet %d: %w", storage.ErrDamaged, state.Identity, damage)
		default:
			d.finding(storage.FindingRecord, fmt.Sprint("delivery state ", state.Identity), "it is left out: %v", damage)
		}
		return nil
	})
	if err != nil && !(d.Salvage && errors.Is(err, storage.ErrDamaged)) {
		return fmt.Errorf("read delivery states: %w", err)
	}
	var mismatch *storage.MismatchError
	if d.Salvage && d.control.Epoch != 0 && errors.As(d.control.CheckDeliveries(tally, unread), &mismatch) {
		f := mismatch.Finding()
		d.finding(f.Kind, f.Key, "%s", f.What)
	}
	return nil
}

// widen raises the mark of the next sequence above n, unless no store comes there.
func widen(m *storage.Marks, n uint64) {
	if n <= 1<<64-2-SequenceMargin {
		m.NextSeq = max(m.NextSeq, n+1)
	}
}

// deliveries are the delivery states of the packets of a run.
type deliveries struct {
	identities []uint64 // in order
	states     []Delivery
}

// find returns the delivery state of a packet, nil if it has none.
func (s *deliveries) find(identity uint64) *Delivery {
	if at, there := slices.BinarySearch(s.identities, identity); there {
		return &s.states[at]
	}
	return nil
}

// read reads the delivery states of some packets, in place of those that it had.
func (s *deliveries) read(d *dumper, identities []uint64) error {
	slices.Sort(identities)
	s.identities = slices.Compact(identities)
	s.states = slices.Grow(s.states[:0], len(s.identities))[:len(s.identities)]
	return d.src.ReadDeliveries(s.identities, func(i int, state *storage.Delivery) error {
		s.states[i] = Delivery{*state, d.originName(state.Origin)}
		return nil
	})
}

// originName is the name of a queue of the dump; nil if it has no such queue.
func (d *dumper) originName(id uint32) []byte {
	at, there := slices.BinarySearchFunc(d.queues, id, func(q *storage.Queue, id uint32) int { return cmp.Compare(q.ID, id) })
	if !there {
		return nil
	}
	return d.queues[at].Name
}
