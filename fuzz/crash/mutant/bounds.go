package mutant

import (
	"slices"
	"time"

	"github.com/holdfast-queue/holdfast/storage/content"
)

// forgetSetting changes the settings that are written.
func forgetSetting(s *store, forget func(*content.Settings)) {
	s.edit = func(ops []content.Op) []content.Op {
		for i := range ops {
			if of := ops[i].Queue.Settings; of != nil {
				forget(of)
			}
		}
		return ops
	}
}

// isDrop says that an operation of a batch deletes a packet which no consumer ever had, and which
// does not move.
func isDrop(ops []content.Op, op content.Op) bool {
	return op.Kind == content.OpDelete && op.Removed.Stored&content.StoredDelivery == 0 &&
		!slices.ContainsFunc(ops, func(other content.Op) bool { return other.Kind == content.OpPut && other.ID.Seq == op.ID.Seq })
}

// droppedStay never deletes what a full queue drops.
func droppedStay(s *store) {
	s.unchecked = true
	s.edit = func(ops []content.Op) []content.Op {
		all := slices.Clone(ops)
		return slices.DeleteFunc(ops, func(op content.Op) bool { return isDrop(all, op) })
	}
}

// worstKept leaves out what a full queue drops, and the packet of the last priority but one that it
// drops it for.
func worstKept(s *store) {
	s.unchecked = true
	s.edit = func(ops []content.Op) []content.Op {
		left := map[content.PacketID]bool{}
		for _, drop := range ops {
			if !isDrop(ops, drop) {
				continue
			}
			at := slices.IndexFunc(ops, func(op content.Op) bool {
				return op.Kind == content.OpPut && op.ID.Queue == drop.ID.Queue && op.ID.Priority == drop.ID.Priority-1
			})
			if at >= 0 {
				left[drop.ID], left[ops[at].ID] = true, true
			}
		}
		return slices.DeleteFunc(ops, func(op content.Op) bool { return left[op.ID] })
	}
}

// pushesTorn writes every packet that was pushed right behind another one of its queue, with all
// that was tried with it, in a transaction of its own a little later.
func pushesTorn(s *store) {
	s.unchecked = true
	var last content.PacketID
	s.apply = func(b *content.Batch) error {
		var pushes, others []content.Op
		torn := map[uint64]bool{} // by sequence
		for _, op := range s.ops(b) {
			if op.Kind == content.OpPut && op.ID.Seq > last.Seq {
				torn[op.ID.Seq] = op.ID.Queue == last.Queue && op.ID.Seq == last.Seq+1
				last = op.ID
			}
			if torn[max(op.ID.Seq, op.Delivery.Identity, op.Note.Identity)] {
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
