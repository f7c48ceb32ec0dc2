package recoverytest

import (
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// Scans show what a store in memory holds, one kind each.
type Scans struct {
	Queues  func(fn func(content.Queue) error) error
	Shares  func(fn func(*content.Share) error) error
	Uniques func(fn func(*content.Unique) error) error
	States  func(fn func(d *content.Delivery, stored content.Stored, damage error) error) error
	Packets func(fn func(id content.PacketID, m *content.Meta, rec []byte, damage error) error) error
	Items   func(fn func(v content.ValueID, h *content.Head, f *content.Field, damage error) error) error
}

// Walk is that of a snapshot with a control record. Without one nothing is held against it.
func (s Scans) Walk(v storage.Visitor, control content.Control) error {
	v.Uncounted = v.Uncounted || control.Epoch == 0
	return storage.Scans{
		Queues:  func(v *storage.Visitor) error { return s.Queues(v.Queue) },
		Shares:  func(v *storage.Visitor) error { return s.Shares(v.Share) },
		Uniques: func(v *storage.Visitor) error { return s.Uniques(v.Unique) },
		States:  func(v *storage.Visitor) error { return s.States(v.State) },
		Packets: func(v *storage.Visitor) error { return s.Packets(v.Packet) },
		Items:   func(v *storage.Visitor) error { return s.Items(v.Item) },
	}.Walk(v, control.Tally)
}
