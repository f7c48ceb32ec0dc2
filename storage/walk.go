package storage

import (
	"fmt"

	"github.com/holdfast-queue/holdfast/storage/content"
)

// Scans show a visitor what there is of one kind each, and count nothing.
type Scans struct{ Queues, Shares, Uniques, States, Packets, Items func(*Visitor) error }

// Walk shows v what it asks for, in the order of its funcs, and holds each kind that was shown as a
// whole against the control record: a difference is a *MismatchError.
func (s Scans) Walk(v Visitor, control content.Tally) error {
	c, shown := count{to: &v}, v
	if !v.Uncounted {
		shown.Unique, shown.State, shown.Packet, shown.Item = c.unique, c.state, c.packet, c.item
	}
	checkPackets := content.Tally.Check
	if !v.Range.all() {
		checkPackets = nil
	}
	for _, kind := range []struct {
		name  string
		asked bool
		scan  func(*Visitor) error
		check func(t, scan content.Tally, unread uint64) error
	}{
		{"queue definitions", v.Queue != nil, s.Queues, nil},
		{"what shares have", v.Share != nil, s.Shares, nil},
		{"ids of unique pushes", v.Unique != nil || v.Item != nil && !v.Uncounted, s.Uniques, nil}, // both are counted as keys
		{"delivery states", v.State != nil, s.States, content.Tally.CheckDeliveries},
		{"packets", v.Packet != nil, s.Packets, checkPackets},
		{"strings and hashes", v.Item != nil, s.Items, content.Tally.CheckKeys},
	} {
		if !kind.asked {
			continue
		}
		c.unread = 0
		err := v.wrong(kind.scan(&shown))
		if err == nil && kind.check != nil && !v.Uncounted {
			err = v.wrong(kind.check(control, c.Tally, c.unread))
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", kind.name, err)
		}
	}
	return nil
}

func (v *Visitor) wrong(err error) error {
	if err != nil && v.Wrong != nil {
		return v.Wrong(err)
	}
	return err
}

// count counts what a walk shows of what the control record counts.
type count struct {
	to *Visitor
	content.Tally
	unread uint64 // records of the kind under way
}

func (c *count) unique(u *content.Unique) error {
	if c.AddUnique(u.UniqueID); c.to.Unique == nil {
		return nil
	}
	return c.to.Unique(u)
}

func (c *count) state(d *content.Delivery, stored content.Stored, damage error) error {
	if damage == nil {
		c.AddDelivery(d.Identity)
	} else {
		c.unread++
	}
	return c.to.State(d, stored, damage)
}

func (c *count) packet(id content.PacketID, m *content.Meta, rec []byte, damage error) error {
	if m != nil {
		c.Add(id, m.Expiry)
	} else {
		c.unread++
	}
	return c.to.Packet(id, m, rec, damage)
}

func (c *count) item(v content.ValueID, h *content.Head, f *content.Field, damage error) error {
	switch {
	case h != nil:
		c.AddItem(v, h.Version)
	case f != nil:
		c.AddItem(v, f.Version)
	default:
		c.unread++
	}
	return c.to.Item(v, h, f, damage)
}

// Walk walks through all scans. Where v wants the Whole, a tolerant view notes values that belong
// to nothing, too.
func (n *Snapshot) Walk(v Visitor) error {
	return Scans{n.queues, n.shares, n.uniques, n.states, n.packets, n.items}.Walk(v, n.control.Tally)
}

// Walk walks through a snapshot of now, and counts what it showed for Verify.
func (s *Store) Walk(v Visitor) error {
	n, err := s.snapshot()
	if err != nil {
		return err
	}
	defer n.Close()
	err = n.Walk(v)
	s.scanned.Add(n.shown.Load() + 1)
	return err
}

// Verify compares the tally of a scan with the control record. When they differ it returns an
// ErrLoss: a *MismatchError of packets, one of keys, one of delivery states, or some of them. With
// Options.AcceptLoss it writes the tally to the control record before it returns, so that a loss
// is reported once. When that fails the error says so, too, and the next batch writes it. A control
// record that was lost with its table is written anew, too.
//
// What the tables have and the scan did not show is dead: a merge may be due.
func (s *Store) Verify(scan content.Tally) error {
	if live := s.scanned.Swap(0); live > 0 {
		s.dead.Store(max(0, s.tables.List().Bytes-live))
		s.unsure.Store(false)
		s.wake(s.merge)
	}
	mismatch, err := s.adopt(scan)
	if mismatch == nil {
		if err == nil && s.late {
			err = s.write(&content.Batch{})
		}
		if isFull(err) { // the next batch writes it
			err = nil
		}
		return err
	}
	if s.opt.AcceptLoss {
		if err := s.write(&content.Batch{}); err != nil {
			return fmt.Errorf("%w; what was found is not written to the control record: %w", mismatch, err)
		}
	}
	return mismatch
}

// adopt gives the store the tally of the scan when a loss is accepted. mismatch is nil when they
// agree: then the store begins. It runs between two commits: each starts from the control record
// that the one before it left.
func (s *Store) adopt(scan content.Tally) (mismatch, err error) {
	s.commitMu.Lock()
	defer s.commitMu.Unlock()
	s.mu.Lock()
	mismatch = s.control.CheckAll(scan)
	if s.opt.AcceptLoss {
		s.control.Tally = scan
	}
	s.mu.Unlock()
	if mismatch == nil {
		err = s.begin()
	}
	return mismatch, err
}
