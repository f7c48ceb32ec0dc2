package recoverytest

import (
	"fmt"

	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// Scans show what a store in memory holds, one kind each.
type Scans struct {
	Queues  func(fn func(content.Queue) error) error
	Uniques func(fn func(*content.Unique) error) error
	States  func(fn func(d *content.Delivery, stored content.Stored, damage error) error) error
	Packets func(fn func(id content.PacketID, m *content.Meta, rec []byte, damage error) error) error
	Items   func(fn func(v content.ValueID, h *content.Head, f *content.Field, damage error) error) error
}

// Walk is that of a snapshot with a control record. Without one nothing is held against it.
func (s Scans) Walk(v storage.Visitor, control content.Control) error {
	w := walk{v: v, held: v.Tally == nil && control.Epoch != 0}
	for _, kind := range []struct {
		name  string
		asked bool
		scan  func() error
		check func(t, scan content.Tally, unread uint64) error
	}{
		{"queue definitions", v.Queue != nil, func() error { return s.Queues(v.Queue) }, nil},
		{"ids of unique pushes", v.Unique != nil || v.Item != nil, func() error { return s.Uniques(w.unique) }, nil},
		{"delivery states", v.State != nil, func() error { return s.States(w.state) }, content.Tally.CheckDeliveries},
		{"packets", v.Packet != nil, func() error { return s.Packets(w.packet) }, content.Tally.Check},
		{"strings and hashes", v.Item != nil, func() error { return s.Items(w.item) }, content.Tally.CheckKeys},
	} {
		if !kind.asked {
			continue
		}
		w.unread = 0
		err := w.wrong(kind.scan())
		if err == nil && kind.check != nil && w.held && (kind.name != "packets" || v.Range == storage.QueueRange{}) {
			err = w.wrong(kind.check(control.Tally, w.tally, w.unread))
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", kind.name, err)
		}
	}
	if v.Tally != nil {
		v.Tally.Merge(w.tally)
	}
	return nil
}

// walk is one under way.
type walk struct {
	v      storage.Visitor
	held   bool
	tally  content.Tally
	unread uint64
}

func (w *walk) wrong(err error) error {
	if err != nil && w.v.Wrong != nil {
		return w.v.Wrong(err)
	}
	return err
}

func (w *walk) unique(u *content.Unique) error {
	if w.tally.AddUnique(u.UniqueID); w.v.Unique == nil {
		return nil
	}
	return w.v.Unique(u)
}

func (w *walk) state(d *content.Delivery, stored content.Stored, damage error) error {
	if damage == nil {
		w.tally.AddDelivery(d.Identity)
	} else {
		w.unread++
	}
	return w.v.State(d, stored, damage)
}

func (w *walk) packet(id content.PacketID, m *content.Meta, rec []byte, damage error) error {
	if m != nil {
		w.tally.Add(id, m.Expiry)
	} else {
		w.unread++
	}
	return w.v.Packet(id, m, rec, damage)
}

func (w *walk) item(v content.ValueID, h *content.Head, f *content.Field, damage error) error {
	switch {
	case h != nil:
		w.tally.AddItem(v, h.Version)
	case f != nil:
		w.tally.AddItem(v, f.Version)
	default:
		w.unread++
	}
	return w.v.Item(v, h, f, damage)
}
