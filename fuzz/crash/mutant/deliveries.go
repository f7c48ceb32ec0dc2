package mutant

import (
	"slices"
	"time"

	"github.com/holdfast-queue/holdfast/storage"
)

// copyDelivery adds an operation on a delivery state or one of its notes to a batch.
func copyDelivery(b *storage.Batch, op *storage.Op) {
	switch {
	case op.Kind == storage.OpPutDelivery:
		b.PutDelivery(&op.Delivery, op.Stored)
	case op.Kind == storage.OpPutNote:
		b.PutNote(op.Note, op.Record, op.Stored)
	case op.Stored&storage.StoredDelivery != 0:
		b.DeleteDelivery(op.Note.Identity, op.Stored)
	default: // a DeleteDelivery would take back what the batch puts
		for _, kind := range []storage.NoteKind{storage.NoteReason, storage.NoteProgress} {
			if op.Stored&(1<<kind) != 0 {
				b.PutNote(storage.NoteID{Identity: op.Note.Identity, Kind: kind}, nil, op.Stored)
			}
		}
	}
}

// Deliveries implements recovery.Source.
func (s *store) Deliveries(fn func(*storage.Delivery, storage.Stored) error) error {
	if s.delivery == nil {
		return s.Store.Deliveries(fn)
	}
	return s.Store.Deliveries(func(d *storage.Delivery, stored storage.Stored) error {
		changed := *d
		s.delivery(&changed)
		return fn(&changed, stored)
	})
}

// attemptLost forgets the last attempt of one packet in four.
func attemptLost(s *store) {
	n := 0
	s.delivery = func(d *storage.Delivery) {
		if n++; n%4 == 0 && d.Attempts > 0 {
			d.Attempts--
		}
	}
}

// tokenRepeated goes on behind the last packet at a start, as if no token had been given since.
func tokenRepeated(s *store) {
	s.control = func(c *storage.Control) {
		c.NextSeq = 1 << 63
		_ = s.Store.Packets(func(id storage.PacketID, _ *storage.Meta) error {
			c.NextSeq = max(c.NextSeq, id.Seq+1)
			return nil
		})
	}
}

// leaseWithoutEnd lets leases that a restart finds go on for a long time.
func leaseWithoutEnd(s *store) {
	s.delivery = func(d *storage.Delivery) {
		if d.State == storage.Claimed {
			d.Until += time.Hour.Milliseconds()
		}
	}
}

// deathForgotten lets the dead be ready again after a start.
func deathForgotten(s *store) {
	s.delivery = func(d *storage.Delivery) {
		if d.State == storage.Dead {
			d.State = storage.Waiting
		}
	}
}

// deadAndReady leaves every second packet that moves with its delivery state, as the dead do, where
// it was, too.
func deadAndReady(s *store) {
	s.unchecked = true
	n := 0
	s.edit = func(ops []storage.Op) []storage.Op {
		put := map[uint64]bool{} // by sequence
		for _, op := range ops {
			put[op.ID.Seq] = put[op.ID.Seq] || op.Kind == storage.OpPut
		}
		return slices.DeleteFunc(ops, func(op storage.Op) bool {
			if op.Kind != storage.OpDelete || !put[op.ID.Seq] {
				return false
			}
			n++
			return n%2 == 0
		})
	}
}

// ackForgotten leaves out one in 16 deletions of packets that were claimed.
func ackForgotten(s *store) {
	n := 0
	s.edit = func(ops []storage.Op) []storage.Op {
		return slices.DeleteFunc(ops, func(op storage.Op) bool {
			if op.Kind != storage.OpDelete || op.Removed.Stored&storage.StoredDelivery == 0 {
				return false
			}
			n++
			return n%16 == 0
		})
	}
}
