// Package contents reads all that a store holds, without an index, and tells what of it is dead:
// what nobody can reach, and what a server deletes little by little. It is for the commands that
// work on a folder while no server does. delivery.go: the delivery states that packets are held
// against.
package contents

import (
	"cmp"
	"context"
	"fmt"

	"github.com/holdfast-queue/holdfast/storage"
)

// Visitor gets what a store holds. Each function may be nil; its error ends the walk. What it gets
// is valid during the call. dead says that the packet has expired or its queue is dropped, that the
// string or hash has expired or is dropped, or that the hash of the field is none of those that
// live.
type Visitor struct {
	Queue func(q *storage.Queue, dead bool) error
	Head  func(h *storage.Head, dead bool) error
	Field func(f *storage.Field, dead bool) error
	// Packet gets a nil d if nothing was tried with the packet. Orphan gets a delivery state
	// without a packet.
	Packet func(id storage.PacketID, m *storage.Meta, d *Delivery, dead bool) error
	Orphan func(d *Delivery) error
	// Unique gets the record of a unique push. It is dead if its window is over, or its packet or
	// queue is gone.
	Unique func(id storage.UniqueID, dead bool) error
	// Progress is told every 2^16 records how many there were, if it is not nil.
	Progress func(records int64)
}

// Walk shows all queue definitions, then all heads, all fields, all packets, all orphans; and ids
// of unique pushes somewhere between. now is the time in Unix milliseconds. It returns the tally of
// what it met. The error is that of ctx, of a visitor or of the store. Memory grows with the number
// of delivery states, by 64 bytes each, and of unique pushes.
func Walk(ctx context.Context, s *storage.Store, now int64, v Visitor) (storage.Tally, error) {
	w := walker{ctx: ctx, Visitor: v, now: now, flush: s.Flush(), dropped: make(map[uint32]bool), uniques: make(map[storage.UniqueID]bool), hashes: make(map[uint64]bool)}
	if err := s.Queues(w.queue); err != nil {
		return w.tally, fmt.Errorf("read queue definitions: %w", err)
	}
	if err := s.Heads(w.head); err != nil {
		return w.tally, fmt.Errorf("read strings and hashes: %w", err)
	}
	if err := s.Fields(w.field); err != nil {
		return w.tally, fmt.Errorf("read fields: %w", err)
	}
	if err := s.Uniques(w.unique); err != nil {
		return w.tally, fmt.Errorf("read ids of unique pushes: %w", err)
	}
	if err := s.Deliveries(w.delivery); err != nil {
		return w.tally, fmt.Errorf("read delivery states: %w", err)
	}
	if err := s.Packets(w.packet); err != nil {
		return w.tally, fmt.Errorf("read packets: %w", err)
	}
	if err := w.orphans(); err != nil {
		return w.tally, err
	}
	return w.tally, w.ids()
}

// walker is one walk under way.
type walker struct {
	Visitor
	ctx        context.Context
	now        int64
	flush      storage.Flush
	dropped    map[uint32]bool
	hashes     map[uint64]bool // that live
	deliveries Deliveries
	uniques    map[storage.UniqueID]bool // without a window; true: its packet is dead, or not met
	tally      storage.Tally
	records    int64
}

// step counts a record, and looks now and then whether to go on.
func (w *walker) step() error {
	if w.records++; w.records&0xffff != 0 {
		return nil
	}
	if w.Progress != nil {
		w.Progress(w.records)
	}
	return w.ctx.Err()
}

func (w *walker) queue(q storage.Queue) error {
	dead := w.flush.DropsQueue(&q) || q.Expired(w.now)
	if dead {
		w.dropped[q.ID] = true
	}
	if w.Queue != nil {
		if err := w.Queue(&q, dead); err != nil {
			return err
		}
	}
	return w.step()
}

func (w *walker) head(h *storage.Head) error {
	w.tally.AddItem(storage.ValueID{ID: h.ID}, h.Version)
	dead := h.Expired(w.now) || w.flush.Drops(h)
	if !dead && h.Kind == storage.Hash {
		w.hashes[h.ID] = true
	}
	if w.Head != nil {
		if err := w.Head(h, dead); err != nil {
			return err
		}
	}
	return w.step()
}

func (w *walker) field(f *storage.Field) error {
	w.tally.AddItem(storage.ValueID{ID: f.Hash, Field: f.ID, IsField: true}, f.Version)
	if w.Field != nil {
		if err := w.Field(f, !w.hashes[f.Hash]); err != nil {
			return err
		}
	}
	return w.step()
}

func (w *walker) packet(id storage.PacketID, m *storage.Meta) error {
	w.tally.Add(id, m.Expiry)
	d := w.deliveries.Find(cmp.Or(m.Identity, id.Seq))
	if d != nil && d.Matched { // a second packet with its identity gets none
		d = nil
	} else if d != nil {
		d.Matched = true
	}
	expired := m.Expired(w.now) && !d.Leased(w.now)
	if unique := (storage.UniqueID{Queue: id.Queue, Identity: cmp.Or(m.Identity, id.Seq)}); w.uniques[unique] {
		w.uniques[unique] = expired || w.dropped[id.Queue]
	}
	if w.Packet != nil {
		if err := w.Packet(id, m, d, expired || w.dropped[id.Queue]); err != nil {
			return err
		}
	}
	return w.step()
}

func (w *walker) delivery(d *storage.Delivery, stored storage.Stored) error {
	if stored&storage.StoredDelivery != 0 {
		w.tally.AddDelivery(d.Identity)
	}
	w.deliveries = append(w.deliveries, NewDelivery(d, stored))
	return w.step()
}

func (w *walker) unique(u *storage.Unique) error {
	w.tally.AddUnique(u.UniqueID)
	if u.Until == 0 {
		w.uniques[u.UniqueID] = true
	} else if w.Unique != nil {
		if err := w.Unique(u.UniqueID, u.Expired(w.now) || w.dropped[u.Queue]); err != nil {
			return err
		}
	}
	return w.step()
}

func (w *walker) ids() error {
	for id, dead := range w.uniques {
		if w.Unique != nil {
			if err := w.Unique(id, dead); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *walker) orphans() error {
	for i := range w.deliveries {
		if d := &w.deliveries[i]; !d.Matched && w.Orphan != nil {
			if err := w.Orphan(d); err != nil {
				return err
			}
		}
	}
	return nil
}

// DeleteDead deletes what is dead, in batches, and at last the definitions of dropped queues and
// the flush record. When it ends early it can be called again. progress, if it is not nil, is told
// how many records were deleted.
func DeleteDead(ctx context.Context, s *storage.Store, now int64, progress func(deleted int64)) error {
	d := deleter{ctx: ctx, s: s, progress: progress}
	var dropped []uint32
	// A walk shows the store as it was before the first batch.
	_, err := Walk(ctx, s, now, Visitor{
		Queue: func(q *storage.Queue, dead bool) error {
			if dead {
				dropped = append(dropped, q.ID)
			}
			return nil
		},
		Head: func(h *storage.Head, dead bool) error {
			if !dead {
				return nil
			}
			d.b.DeleteHead(h.ID, storage.Mark{Version: h.Version, Large: storage.IsLarge(h.Size)})
			return d.deleted()
		},
		Field: func(f *storage.Field, dead bool) error {
			if !dead {
				return nil
			}
			d.b.DeleteField(f.Hash, f.ID, storage.Mark{Version: f.Version, Large: storage.IsLarge(f.Size)})
			return d.deleted()
		},
		Packet: func(id storage.PacketID, m *storage.Meta, state *Delivery, dead bool) error {
			if !dead {
				return nil
			}
			removed := storage.Removed{Expires: m.Expiry != 0, Large: m.Large}
			if state != nil {
				removed.Stored, removed.Identity = state.Stored, state.Identity
			}
			d.b.Delete(id, removed)
			return d.deleted()
		},
		Orphan: func(state *Delivery) error {
			d.b.DeleteDelivery(state.Identity, state.Stored)
			return d.deleted()
		},
		Unique: func(id storage.UniqueID, dead bool) error {
			if !dead {
				return nil
			}
			d.b.DeleteUnique(id)
			return d.deleted()
		},
	})
	if err != nil {
		return err
	}
	if err := d.apply(); err != nil {
		return err
	}
	for _, id := range dropped {
		d.b.DeleteQueue(id)
		if err := d.deleted(); err != nil {
			return err
		}
	}
	if s.Flush() != (storage.Flush{}) {
		d.b.SetFlush(storage.Flush{})
	}
	return d.apply()
}

// deleter is one DeleteDead under way.
type deleter struct {
	ctx      context.Context
	s        *storage.Store
	b        storage.Batch
	count    int64
	progress func(deleted int64)
}

// deleted applies the batch when it is full.
func (d *deleter) deleted() error {
	d.count++
	l := d.s.Limits()
	if d.b.Len()+storage.DeleteEntries <= l.MaxOps && d.b.Bytes() < l.MaxBytes/2 {
		return nil
	}
	return d.apply()
}

func (d *deleter) apply() error {
	if err := d.s.Apply(&d.b); err != nil {
		return fmt.Errorf("delete what has expired or is dropped: %w", err)
	}
	d.b.Reset()
	if d.progress != nil {
		d.progress(d.count)
	}
	return d.ctx.Err()
}
