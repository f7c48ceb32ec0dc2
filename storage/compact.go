package storage

import (
	"cmp"
	"context"

	"github.com/holdfast-queue/holdfast/storage/content"
)

// CompactProgress is how far Compact is.
type CompactProgress struct {
	Step string // what is being done, for people: "write out", "merge", "check"
	// Done and Total are bytes of tables: merged, and all that will be. 0 while that is not known.
	Done, Total int64
}

// Compact gives the room of everything deleted back: it merges all tables. It is for a store that
// nobody else uses. progress may be nil; the calls come from one goroutine.
//
// When ctx ends Compact returns its error after the step under way, and the store is sound, as it
// is when the process is killed at any moment. An error that wraps ErrFull means that the disk has
// too little room for it. In the end delivery states, packets, heads and fields are held against
// the control record: a difference is a *MismatchError.
func (s *Store) Compact(ctx context.Context, progress func(CompactProgress)) error {
	if progress == nil {
		progress = func(CompactProgress) {}
	}
	progress(CompactProgress{Step: "write out"})
	if err := s.settle(); err != nil {
		return err
	}
	total := s.tables.List().Bytes()
	progress(CompactProgress{Step: "merge", Total: total})
	for whole := false; !whole; {
		var err error
		if _, whole, err = s.mergeOnce(ctx, true); err != nil {
			return damaged(err)
		}
	}
	progress(CompactProgress{Step: "merge", Done: total, Total: total})
	if err := ctx.Err(); err != nil {
		return err
	}
	progress(CompactProgress{Step: "check"})
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
