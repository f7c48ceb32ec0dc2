package fuzz

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/holdfast-queue/holdfast/recovery/recoverytest"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// memStore is a store in memory, with what the broker and recovery need of one. A restart loses
// nothing.
type memStore struct {
	recoverytest.Keys
	mu      sync.Mutex // guards what follows
	packets map[content.PacketID][]byte
	queues  map[uint32]content.Queue
	control content.Control
}

func newMemStore() *memStore {
	return &memStore{
		packets: map[content.PacketID][]byte{},
		queues:  map[uint32]content.Queue{},
		control: content.Control{Marks: content.Marks{NextSeq: 1 << 63, LowSeq: 1<<63 - 1, NextQueue: 1}},
	}
}

// Apply implements broker.Store.
func (s *memStore) Apply(b *content.Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Keys.Apply(b)
	b.Each(func(op content.Op) {
		switch op.Kind {
		case content.OpPut, content.OpReplace:
			s.packets[op.ID] = slices.Clone(op.Record)
		case content.OpDelete:
			delete(s.packets, op.ID)
		case content.OpPutQueue:
			s.queues[op.Queue.ID] = op.Queue
		case content.OpPutCounters:
			q := s.queues[op.Queue.ID]
			q.Counters = op.Queue.Counters
			s.queues[op.Queue.ID] = q
		case content.OpDeleteQueue:
			delete(s.queues, op.Queue.ID)
		}
	})
	s.control.Marks, _ = b.Marks()
	return nil
}

// Read implements broker.Store.
func (s *memStore) Read(ids []content.PacketID, fn func(int, []byte, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, id := range ids {
		if record, ok := s.packets[id]; ok {
			fn(i, record, nil)
		} else {
			fn(i, nil, fmt.Errorf("%w: packet %v is not there", storage.ErrDamaged, id))
		}
	}
}

func (s *memStore) Limits() content.Limits {
	return content.Limits{MaxOps: 32768, MaxBytes: 2097152}
}

func (s *memStore) Space() storage.Space { return storage.Space{Free: 1 << 40, Total: 1 << 40} }

// Control implements recovery.Source.
func (s *memStore) Control() content.Control {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.control
}

// Walk implements recovery.Source: nothing is ever claimed here.
func (s *memStore) Walk(v storage.Visitor) error {
	return recoverytest.Scans{
		Queues: s.eachQueue, Shares: s.Shares, Uniques: s.Uniques, Packets: s.eachPacket, Items: s.Items,
		States: func(func(*content.Delivery, content.Stored, error) error) error { return nil },
	}.Walk(v, s.Control())
}

func (s *memStore) eachQueue(fn func(content.Queue) error) error {
	for _, id := range slices.Sorted(maps.Keys(s.queues)) {
		if err := fn(s.queues[id]); err != nil {
			return err
		}
	}
	return nil
}

// Some implements broker.Store.
func (s *memStore) Some(from content.PacketID, n int, fn func(content.PacketID, *content.Meta)) (next content.PacketID, more bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err = s.eachPacket(func(id content.PacketID, m *content.Meta, _ []byte, _ error) error {
		switch {
		case id.Queue != from.Queue || id.Compare(from) < 0 || more:
		case n == 0:
			next, more = id, true
		default:
			fn(id, m)
			n--
		}
		return nil
	})
	return next, more, err
}

// ReadNotes implements broker.Store.
func (s *memStore) ReadNotes([]content.NoteID, func(int, []byte, error)) {}

func (s *memStore) eachPacket(fn func(content.PacketID, *content.Meta, []byte, error) error) error {
	byID := func(a, b content.PacketID) int {
		return cmp.Or(cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Seq, b.Seq))
	}
	for _, id := range slices.SortedFunc(maps.Keys(s.packets), byID) {
		var p content.Packet
		if err := content.DecodeRecord(s.packets[id], &p); err != nil {
			return err
		}
		m := content.Meta{
			Key: p.Key, Expiry: p.Expiry, EnqueuedAt: p.EnqueuedAt,
			Size: uint32(len(p.Key) + len(p.Payload)), Large: content.IsLarge(len(p.Payload)), Identity: p.Identity,
		}
		if m.Key == nil {
			m.Hash = content.ValueHash(p.Payload)
		}
		if err := fn(id, &m, nil, nil); err != nil {
			return err
		}
	}
	return nil
}

// Verify implements recovery.Source: there is nothing here that could be lost.
func (s *memStore) Verify(content.Tally) error { return nil }
