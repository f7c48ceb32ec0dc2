package storage

import (
	"fmt"

	"github.com/holdfast-queue/holdfast/storage/content"
)

// Walk shows v what it asks for, in the order of its funcs, and holds each kind that was shown as a
// whole against the control record: a difference is a *MismatchError. Where v wants the
// Whole, a tolerant view notes values that belong to nothing, too.
func (n *Snapshot) Walk(v Visitor) error {
	c := count{}
	checkPackets := content.Tally.Check
	if !v.Range.all() {
		checkPackets = nil
	}
	for _, kind := range []struct {
		name  string
		asked bool
		scan  func(*Visitor, *count) error
		check func(t, scan content.Tally, unread uint64) error
	}{
		{"queue definitions", v.Queue != nil, n.queues, nil},
		{"ids of unique pushes", v.Unique != nil || v.Item != nil, n.uniques, nil}, // both are counted as keys
		{"delivery states", v.State != nil, n.states, content.Tally.CheckDeliveries},
		{"packets", v.Packet != nil, n.packets, checkPackets},
		{"strings and hashes", v.Item != nil, n.items, content.Tally.CheckKeys},
	} {
		if !kind.asked {
			continue
		}
		c.unread = 0
		err := v.wrong(kind.scan(&v, &c))
		if err == nil && kind.check != nil && v.Tally == nil {
			err = v.wrong(kind.check(n.control.Tally, c.Tally, c.unread))
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", kind.name, err)
		}
	}
	if v.Tally != nil {
		v.Tally.Merge(c.Tally)
	}
	return nil
}

func (v *Visitor) wrong(err error) error {
	if err != nil && v.Wrong != nil {
		return v.Wrong(err)
	}
	return err
}

// Walk is that of a snapshot of now, and counts what it showed for Verify.
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
		s.dead.Store(max(0, s.tables.List().Bytes()-live))
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

// adopt makes the tally that of the store when a loss is accepted. mismatch is nil when they agree:
// then the store begins. It runs between two commits: each starts from the control record that the
// one before it left.
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
