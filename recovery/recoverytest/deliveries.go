package recoverytest

import (
	"slices"

	"github.com/holdfast-queue/holdfast/storage/content"
)

// Tries are the delivery states of a store in memory, with their notes, in the order of the
// list.
type Tries struct {
	Tried []Delivery
}

// Delivery is a delivery state with its notes, or what is left of one.
type Delivery struct {
	content.Delivery
	Damage error // why it cannot be read
}

// Try adds a delivery state behind the others.
func (s *Tries) Try(d content.Delivery) *Delivery {
	s.Tried = append(s.Tried, Delivery{Delivery: d})
	return &s.Tried[len(s.Tried)-1]
}

// Deliveries shows delivery states with their notes, as a snapshot does.
func (s *Tries) Deliveries(fn func(d *content.Delivery, stored content.Stored, damage error) error) error {
	return each(s.Tried, func(d *Delivery) error {
		if d.Damage != nil {
			d.Delivery = content.Delivery{Identity: d.Identity, Reason: d.Reason, Progress: d.Progress}
		}
		return fn(&d.Delivery, content.StoredDelivery, d.Damage)
	})
}

// ReadDeliveries reads some that are there.
func (s *Fake) ReadDeliveries() (read func(identity uint64) (*content.Delivery, error), done func()) {
	return func(identity uint64) (*content.Delivery, error) {
		at := slices.IndexFunc(s.Tried, func(d Delivery) bool { return d.Identity == identity })
		return new(s.Tried[at].Delivery), nil
	}, func() {}
}

// Tally adds all delivery states to a tally.
func (s *Tries) Tally(t *content.Tally) {
	for i := range s.Tried {
		t.AddDelivery(s.Tried[i].Identity)
	}
}
