package mutant

import (
	"slices"
	"time"

	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// copyDelivery adds an operation on a delivery state or one of its notes to a batch.
func copyDelivery(b *content.Batch, op *content.Op) {
	switch {
	case op.Kind == content.OpPutDelivery:
		b.PutDelivery(&op.Delivery, op.Stored)
	case op.Kind == content.OpPutNote:
		b.PutNote(op.Note, op.Record, op.Stored)
	case op.Stored&content.StoredDelivery != 0:
		b.DeleteDelivery(op.Note.Identity, op.Stored)
	default: // a DeleteDelivery would take back what the batch puts
		for _, kind := range []content.NoteKind{content.NoteReason, content.NoteProgress} {
			if op.Stored&(1<<kind) != 0 {
				b.PutNote(content.NoteID{Identity: op.Note.Identity, Kind: kind}, nil, op.Stored)
			}
		}
	}
}

// attemptLost forgets the last attempt of one packet in four.
func attemptLost(s *store) {
	n := 0
	s.delivery = func(d *content.Delivery) {
		if n++; n%4 == 0 && d.Attempts > 0 {
			d.Attempts--
		}
	}
}

// tokenRepeated goes on behind the last packet at a start, as if no token had been given since.
func tokenRepeated(s *store) {
	s.control = func(c *content.Control) {
		c.NextSeq = 1 << 63
		_ = s.Store.Walk(storage.Visitor{Packet: func(id content.PacketID, _ *content.Meta, _ []byte, _ error) error {
			c.NextSeq = max(c.NextSeq, id.Seq+1)
			return nil
		}})
	}
}

// forgetOf changes what a start sees of the packets in a state.
func forgetOf(s *store, state content.State, change func(d *content.Delivery)) {
	s.delivery = func(d *content.Delivery) {
		if d.State == state {
			change(d)
		}
	}
}

// doneNotKept leaves out the put of one packet in 4 that is done. Its queue would keep it.
func doneNotKept(s *store) {
	s.unchecked = true
	n := 0
	s.edit = func(ops []content.Op) []content.Op {
		done := map[uint64]bool{} // by identity
		for _, op := range ops {
			if op.Kind == content.OpPutDelivery && op.Delivery.State == content.Done {
				n++
				done[op.Delivery.Identity] = n%4 == 0
			}
		}
		return slices.DeleteFunc(ops, func(op content.Op) bool { return op.Kind == content.OpPut && done[op.ID.Seq] })
	}
}

// extensionForgotten leaves out what is written of a claim after its first lease end. Cancels stay.
func extensionForgotten(s *store) {
	tokens := map[uint64]uint64{} // by identity
	s.edit = func(ops []content.Op) []content.Op {
		return slices.DeleteFunc(ops, func(op content.Op) bool {
			if op.Kind != content.OpPutDelivery || op.Delivery.State != content.Claimed || op.Delivery.Cancelled {
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
	s.edit = func(ops []content.Op) []content.Op {
		for i := range ops {
			ops[i].Queue.Counters = content.Counters{}
		}
		return ops
	}
}

// pushAfterAck writes the packets that a batch brings, with all that was tried with them, in a
// transaction of their own a little after what it does to others.
func pushAfterAck(s *store) {
	s.unchecked = true
	last := uint64(0) // the highest sequence that there was
	s.apply = func(b *content.Batch) error {
		var pushes, others []content.Op
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
	s.edit = func(ops []content.Op) []content.Op {
		put := map[uint64]bool{} // by sequence
		for _, op := range ops {
			put[op.ID.Seq] = put[op.ID.Seq] || op.Kind == content.OpPut
		}
		return slices.DeleteFunc(ops, func(op content.Op) bool {
			if op.Kind != content.OpDelete || !put[op.ID.Seq] {
				return false
			}
			n++
			return n%2 == 0
		})
	}
}

// ackForgotten leaves out one in 4 deletions of packets that were claimed.
func ackForgotten(s *store) {
	n := 0
	s.edit = func(ops []content.Op) []content.Op {
		return slices.DeleteFunc(ops, func(op content.Op) bool {
			if op.Kind != content.OpDelete || op.Removed.Stored&content.StoredDelivery == 0 {
				return false
			}
			n++
			return n%4 == 0
		})
	}
}
