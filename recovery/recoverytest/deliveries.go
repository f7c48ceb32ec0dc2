package recoverytest

import (
	"slices"

	"github.com/holdfast-queue/holdfast/storage"
)

// Tries are the delivery states of a store in memory, with their notes, in the order of the
// list.
type Tries struct {
	Tried []Delivery
}

// Delivery is a delivery state with its notes.
type Delivery struct {
	storage.Delivery
	Damage error // why it cannot be read
}

// Stored says which records there are.
func (d *Delivery) Stored() storage.Stored {
	s := storage.StoredDelivery
	if d.Reason != "" {
		s |= storage.StoredReason
	}
	if d.Progress != "" {
		s |= storage.StoredProgress
	}
	return s
}

// Try adds a delivery state behind the others.
func (s *Tries) Try(d storage.Delivery) *Delivery {
	s.Tried = append(s.Tried, Delivery{Delivery: d})
	return &s.Tried[len(s.Tried)-1]
}

// Deliveries hands one value out again and again, as the store does. Fake has those of a snapshot.
func (s *Tries) Deliveries(fn func(d *storage.Delivery, stored storage.Stored) error) error {
	var buf storage.Delivery
	for i := range s.Tried {
		buf = s.Tried[i].Delivery
		if err := fn(&buf, s.Tried[i].Stored()); err != nil {
			return err
		}
		buf = storage.Delivery{Consumer: "overwritten"}
	}
	return nil
}

// Deliveries shows delivery states with their notes, as a snapshot does.
func (s *Fake) Deliveries(fn func(d *storage.Delivery, damage error) error) error {
	for i := range s.Tried {
		d := s.Tried[i]
		if d.Damage != nil {
			d.Delivery = storage.Delivery{Identity: d.Identity, Reason: d.Reason, Progress: d.Progress}
		}
		if err := fn(&d.Delivery, d.Damage); err != nil {
			return err
		}
	}
	return nil
}

// ReadDeliveries reads some that are there.
func (s *Fake) ReadDeliveries() (read func(identity uint64) (*storage.Delivery, error), done func()) {
	return func(identity uint64) (*storage.Delivery, error) {
		at := slices.IndexFunc(s.Tried, func(d Delivery) bool { return d.Identity == identity })
		return new(s.Tried[at].Delivery), nil
	}, func() {}
}

// Tally adds all delivery states to a tally.
func (s *Tries) Tally(t *storage.Tally) {
	for i := range s.Tried {
		t.AddDelivery(s.Tried[i].Identity)
	}
}

// put writes a delivery state with its notes.
func (d *Delivery) put(b *storage.Batch) { b.PutDelivery(&d.Delivery, 0) }
