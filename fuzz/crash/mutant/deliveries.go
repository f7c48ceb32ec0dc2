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

// forgetOf changes what a start sees of the packets in a state.
func forgetOf(s *store, state storage.State, change func(d *storage.Delivery)) {
	s.delivery = func(d *storage.Delivery) {
		if d.State == state {
			change(d)
		}
	}
}

// doneNotKept leaves out the put of one packet in 16 that is done. Its queue would keep it.
func doneNotKept(s *store) {
	s.unchecked = true
	n := 0
	s.edit = func(ops []storage.Op) []storage.Op {
		done := map[uint64]bool{} // by identity
		for _, op := range ops {
			if op.Kind == storage.OpPutDelivery && op.Delivery.State == storage.Done {
				n++
				done[op.Delivery.Identity] = n%16 == 0
			}
		}
		return slices.DeleteFunc(ops, func(op storage.Op) bool { return op.Kind == storage.OpPut && done[op.ID.Seq] })
	}
}

// extensionForgotten leaves out what is written of a claim after its first lease end.
func extensionForgotten(s *store) {
	tokens := map[uint64]uint64{} // by identity
	s.edit = func(ops []storage.Op) []storage.Op {
		return slices.DeleteFunc(ops, func(op storage.Op) bool {
			if op.Kind != storage.OpPutDelivery || op.Delivery.State != storage.Claimed {
				return false
			}
			again := tokens[op.Delivery.Identity] == op.Delivery.Token
			tokens[op.Delivery.Identity] = op.Delivery.Token
			return again
		})
	}
}

// countersForgotten never writes what a queue has counted.
func countersForgotten(s *store) {
	s.edit = func(ops []storage.Op) []storage.Op {
		for i := range ops {
			ops[i].Queue.Counters = storage.Counters{}
		}
		return ops
	}
}

// pushAfterAck writes the packets that a batch brings, with all that was tried with them, in a
// transaction of their own a little after what it does to others.
func pushAfterAck(s *store) {
	s.unchecked = true
	last := uint64(0) // the highest sequence that there was
	s.apply = func(b *storage.Batch) error {
		var pushes, others []storage.Op
		before := last
		for _, op := range s.ops(b) {
			last = max(last, op.ID.Seq)
			if max(op.ID.Seq, op.Delivery.Identity, op.Note.Identity) > before {
				pushes = append(pushes, op)
			} else {
				others = append(others, op)
			}
		}
		if err := s.write(others); err != nil || len(pushes) == 0 {
			return err
		}
		time.Sleep(late)
		return s.write(pushes)
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
