package storage

import (
	"cmp"
	"context"

	"github.com/holdfast-queue/holdfast/storage/content"
)

// Compact gives back the room of what was deleted, or has expired by a moment: it merges all
// tables. The moment is in Unix milliseconds; by 0 nothing has expired. It is for a store that
// nobody else uses. progress may be nil. One goroutine calls it, and step says to people what is
// being done: "write out", "merge", "check". done and total are bytes of tables: merged, and all
// that will be, 0 while that is not known.
//
// When ctx ends Compact returns its error after the step under way, and the store is sound, as it
// is when the process is killed at any moment. An error that wraps ErrFull means that the disk has
// too little room for it. In the end delivery states, packets, heads and fields are held against
// the control record: a difference is a *MismatchError.
func (s *Store) Compact(ctx context.Context, by int64, progress func(step string, done, total int64)) error {
	if progress == nil {
		progress = func(string, int64, int64) {}
	}
	s.expired.Store(uint64(by / 1000))
	progress("write out", 0, 0)
	if err := s.settle(); err != nil {
		return err
	}
	total := s.tables.List().Bytes
	progress("merge", 0, total)
	for whole := false; !whole; {
		var err error
		if _, whole, err = s.mergeOnce(ctx, true); err != nil {
			return damaged(err)
		}
	}
	progress("merge", total, total)
	if err := ctx.Err(); err != nil {
		return err
	}
	progress("check", 0, 0)
	n, err := s.snapshot() // the tables were just read back
	if err != nil {
		return err
	}
	defer n.Close()
	err = n.Walk(Visitor{Packet: func(_ content.PacketID, _ *content.Meta, _ []byte, damage error) error {
		return cmp.Or(ctx.Err(), damage)
	}})
	if err != nil {
		return err
	}
	return n.Walk(Visitor{ // apart from the packets, of which Whole would read large payloads
		Whole: true,
		State: func(_ *content.Delivery, _ content.Stored, damage error) error { return damage },
		Item:  func(_ content.ValueID, _ *content.Head, _ *content.Field, damage error) error { return damage },
	})
}
