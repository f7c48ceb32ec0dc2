package mutant

import (
	"slices"
	"time"

	"github.com/holdfast-queue/holdfast/storage/content"
)

// copyItem adds an operation on a string, hash, field or id to a batch, or that on the flush
// record.
func copyItem(b *content.Batch, op *content.Op) {
	switch op.Kind {
	case content.OpPutHead:
		b.PutHead(&op.Head, op.Old)
	case content.OpDeleteHead:
		b.DeleteHead(op.Head.ID, op.Old)
	case content.OpPutField:
		b.PutField(&op.Field, op.Old)
	case content.OpDeleteField:
		b.DeleteField(op.Field.Hash, op.Field.ID, op.Old)
	case content.OpPutShare:
		b.PutShare(&op.Share, false)
	case content.OpDeleteShare:
		b.DeleteShare(op.Share.ShareID)
	case content.OpPutUnique:
		b.PutUnique(&op.Unique)
	case content.OpDeleteUnique:
		b.DeleteUnique(op.Unique.UniqueID)
	case content.OpSetFlush:
		b.SetFlush(op.Flush)
	}
}

func isItem(op content.Op) bool {
	return op.Kind >= content.OpPutHead && op.Kind <= content.OpDeleteField || op.Kind >= content.OpPutUnique
}

// dropForgotten forgets to note of a long list that it is deleted. Its elements are deleted by
// later batches all the same, the first of them after a while.
func dropForgotten(s *store) {
	dropped := false
	s.edit = func(ops []content.Op) []content.Op {
		if dropped {
			time.Sleep(late)
		}
		dropped = false
		for i := range ops {
			dropped = dropped || ops[i].Queue.Dropped
			ops[i].Queue.Dropped = false
		}
		return ops
	}
}

// valuesLater writes the strings, hashes and ids of a batch in a transaction of their own, a little
// after its packets.
func valuesLater(s *store) {
	s.apply = func(b *content.Batch) error {
		var packets, items []content.Op
		for _, op := range s.ops(b) {
			if isItem(op) {
				items = append(items, op)
			} else {
				packets = append(packets, op)
			}
		}
		if err := s.write(packets); err != nil || len(items) == 0 {
			return err
		}
		time.Sleep(late)
		return s.write(items)
	}
}

// valueDropped leaves out one in 4 puts of strings and fields.
func valueDropped(s *store) {
	s.unchecked = true
	n := 0
	s.edit = func(ops []content.Op) []content.Op {
		return slices.DeleteFunc(ops, func(op content.Op) bool {
			if op.Kind != content.OpPutHead && op.Kind != content.OpPutField {
				return false
			}
			n++
			return n%4 == 0
		})
	}
}

// valueNeverExpires forgets when strings, hashes and windows expire.
func valueNeverExpires(s *store) {
	s.unchecked = true
	s.edit = func(ops []content.Op) []content.Op {
		for i := range ops {
			ops[i].Head.Expiry = 0
			if ops[i].Unique.Until != 0 {
				ops[i].Unique.Until += 3_600_000
			}
		}
		return ops
	}
}

// valueExpiresEarly takes most of the time that strings, hashes and windows have to live.
func valueExpiresEarly(s *store) {
	s.unchecked = true
	early := func(end int64) int64 { return end - (end-time.Now().UnixMilli())*3/4 }
	s.edit = func(ops []content.Op) []content.Op {
		for i := range ops {
			if ops[i].Head.Expiry != 0 {
				ops[i].Head.Expiry = early(ops[i].Head.Expiry)
			}
			if ops[i].Unique.Until != 0 {
				ops[i].Unique.Until = early(ops[i].Unique.Until)
			}
		}
		return ops
	}
}
