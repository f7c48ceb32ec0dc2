package mutant

import (
	"slices"
	"time"

	"github.com/holdfast-queue/holdfast/storage"
)

// forgetSetting changes the settings that are written.
func forgetSetting(s *store, forget func(*storage.Settings)) {
	s.edit = func(ops []storage.Op) []storage.Op {
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
func isDrop(ops []storage.Op, op storage.Op) bool {
	return op.Kind == storage.OpDelete && op.Removed.Stored&storage.StoredDelivery == 0 &&
		!slices.ContainsFunc(ops, func(other storage.Op) bool { return other.Kind == storage.OpPut && other.ID.Seq == op.ID.Seq })
}

// droppedStay never deletes what a full queue drops.
func droppedStay(s *store) {
	s.unchecked = true
	s.edit = func(ops []storage.Op) []storage.Op {
		all := slices.Clone(ops)
		return slices.DeleteFunc(ops, func(op storage.Op) bool { return isDrop(all, op) })
	}
}

// worstKept leaves out what a full queue drops, and the packet of the last priority but one that it
// drops it for.
func worstKept(s *store) {
	s.unchecked = true
	s.edit = func(ops []storage.Op) []storage.Op {
		left := map[storage.PacketID]bool{}
		for _, drop := range ops {
			if !isDrop(ops, drop) {
				continue
			}
			at := slices.IndexFunc(ops, func(op storage.Op) bool {
				return op.Kind == storage.OpPut && op.ID.Queue == drop.ID.Queue && op.ID.Priority == drop.ID.Priority-1
			})
			if at >= 0 {
				left[drop.ID], left[ops[at].ID] = true, true
			}
		}
		return slices.DeleteFunc(ops, func(op storage.Op) bool { return left[op.ID] })
	}
}

// pushesTorn writes every packet that was pushed right behind another one of its queue, with all
// that was tried with it, in a transaction of its own a little later.
func pushesTorn(s *store) {
	s.unchecked = true
	var last storage.PacketID
	s.apply = func(b *storage.Batch) error {
		var pushes, others []storage.Op
		torn := map[uint64]bool{} // by sequence
		for _, op := range s.ops(b) {
			if op.Kind == storage.OpPut && op.ID.Seq > last.Seq {
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
