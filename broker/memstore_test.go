package broker_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/holdfast-queue/holdfast/recovery/recoverytest"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// memStore is a Store and a recovery.Source in memory: what Apply brought is what a restart finds.
// Its hooks let a test look at a commit, or fail it.
type memStore struct {
	recoverytest.Keys
	packets     map[content.PacketID][]byte
	queues      map[uint32]content.Queue
	states      map[uint64]content.Delivery
	notes       map[content.NoteID][]byte
	control     content.Control
	clock       func() int64 // of the times of batches; nil: none has one
	limits      content.Limits
	level       storage.Level
	why         string // of the level
	memoryLevel storage.Level
	repeats     uint64                      // of failures in the background
	applied     int                         // batches
	written     int                         // packet records put by them
	memory      int                         // the most bytes that one of them took, those of cancelled records included
	before      func() error                // called by Apply first; an error fails it
	reads       func(ids int)               // called by Read
	stale       map[content.PacketID][]byte // packets that are gone, and that Some shows still

	after func(b *content.Batch) // called by Apply last
}

func newMemStore() *memStore {
	return &memStore{
		packets: map[content.PacketID][]byte{},
		queues:  map[uint32]content.Queue{},
		states:  map[uint64]content.Delivery{},
		notes:   map[content.NoteID][]byte{},
		control: content.Control{Marks: content.Marks{NextSeq: 1 << 63, LowSeq: 1<<63 - 1, NextQueue: 1}},
		limits:  content.Limits{MaxOps: 10000, MaxBytes: 524288},
	}
}

func (s *memStore) Apply(b *content.Batch) error {
	if s.before != nil {
		if err := s.before(); err != nil {
			return err
		}
	}
	s.applied++
	s.memory = max(s.memory, b.Memory())
	b.Each(func(op content.Op) {
		switch op.Kind {
		case content.OpPut, content.OpReplace:
			s.written++
			s.packets[op.ID] = bytes.Clone(op.Record)
			s.forget(op.Removed.Identity, op.Removed.Stored)
		case content.OpDelete:
			delete(s.packets, op.ID)
			s.forget(op.Removed.Identity, op.Removed.Stored)
		case content.OpPutDelivery:
			s.states[op.Delivery.Identity] = op.Delivery
		case content.OpPutNote:
			s.notes[op.Note] = bytes.Clone(op.Record)
		case content.OpDeleteDelivery:
			s.forget(op.Note.Identity, op.Stored)
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
	s.Keys.Apply(b)
	s.control.Batch++
	s.control.Marks, _ = b.Marks()
	if s.clock != nil {
		s.control.Time = max(s.control.Time, s.clock())
	}
	if s.after != nil {
		s.after(b)
	}
	return nil
}

// forget deletes records of a delivery state.
func (s *memStore) forget(identity uint64, stored content.Stored) {
	if stored&content.StoredDelivery != 0 {
		delete(s.states, identity)
	}
	for kind, bit := range map[content.NoteKind]content.Stored{
		content.NoteReason: content.StoredReason, content.NoteProgress: content.StoredProgress,
	} {
		if stored&bit != 0 {
			delete(s.notes, content.NoteID{Identity: identity, Kind: kind})
		}
	}
}

func (s *memStore) eachState(fn func(*content.Delivery, content.Stored, error) error) error {
	for _, identity := range slices.Sorted(maps.Keys(s.states)) {
		d, stored := s.states[identity], content.StoredDelivery
		if s.notes[content.NoteID{Identity: identity, Kind: content.NoteReason}] != nil {
			stored |= content.StoredReason
		}
		if s.notes[content.NoteID{Identity: identity, Kind: content.NoteProgress}] != nil {
			stored |= content.StoredProgress
		}
		if err := fn(&d, stored, nil); err != nil {
			return err
		}
	}
	return nil
}

func (s *memStore) ReadNotes(ids []content.NoteID, fn func(int, []byte, error)) {
	for i, id := range ids {
		fn(i, s.notes[id], nil)
	}
}

func (s *memStore) Read(ids []content.PacketID, fn func(int, []byte, error)) {
	if s.reads != nil {
		s.reads(len(ids))
	}
	for i, id := range ids {
		record, ok := s.packets[id]
		switch {
		case !ok:
			fn(i, nil, fmt.Errorf("%w: packet %v is not there", storage.ErrDamaged, id))
		case content.DecodeRecord(record, new(content.Packet)) != nil:
			fn(i, nil, fmt.Errorf("%w: packet %v", storage.ErrDamaged, id))
		default:
			fn(i, record, nil)
		}
	}
}

// Some shows nothing that was deleted.
func (s *memStore) Some(from content.PacketID, n int, fn func(content.PacketID, *content.Meta)) (next content.PacketID, more bool, err error) {
	shown := maps.Clone(s.packets)
	maps.Copy(shown, s.stale)
	for _, id := range slices.SortedFunc(maps.Keys(shown), content.PacketID.Compare) {
		if id.Queue != from.Queue || id.Compare(from) < 0 {
			continue
		}
		if n == 0 {
			return id, true, nil
		}
		var m content.Meta
		if err := content.DecodeMeta(shown[id], &m); err != nil {
			return id, false, err
		}
		fn(id, &m)
		n--
	}
	return next, false, nil
}

func (s *memStore) Limits() content.Limits { return s.limits }

func (s *memStore) Space() storage.Space {
	return storage.Space{Level: s.level, Why: s.why, Repeats: s.repeats, Repeated: "cannot merge", Memory: storage.Memory{Level: s.memoryLevel}}
}

func (s *memStore) Control() content.Control { return s.control }

func (s *memStore) Walk(v storage.Visitor) error {
	return recoverytest.Scans{Queues: s.eachQueue, Shares: s.Shares, Uniques: s.Uniques, States: s.eachState, Packets: s.eachPacket, Items: s.Items}.Walk(v, s.control)
}

func (s *memStore) eachQueue(fn func(content.Queue) error) error {
	for _, id := range slices.Sorted(maps.Keys(s.queues)) {
		if err := fn(s.queues[id]); err != nil {
			return err
		}
	}
	return nil
}

func (s *memStore) eachPacket(fn func(content.PacketID, *content.Meta, []byte, error) error) error {
	ids := make([]content.PacketID, 0, len(s.packets))
	for id := range s.packets {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, content.PacketID.Compare)
	for _, id := range ids {
		var p content.Packet
		if err := content.DecodeRecord(s.packets[id], &p); err != nil {
			return err
		}
		m := content.Meta{
			Key: p.Key, Tags: p.Tags, Expiry: p.Expiry, Size: uint32(len(p.Key) + len(p.Payload)), Beside: uint32(len(p.Meta)),
			Large: content.IsLarge(len(p.Payload)), Identity: p.Identity, NotBefore: p.NotBefore, EnqueuedAt: p.EnqueuedAt,
			Extra: uint32(content.ExtraBytes(&p)),
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

// uniques returns the records of unique pushes.
func (s *memStore) uniques() (all []content.Unique) {
	_ = s.Uniques(func(u *content.Unique) error { all = append(all, *u); return nil })
	return all
}

func (s *memStore) Verify(scan content.Tally) error {
	var want content.Tally
	for id, record := range s.packets {
		var p content.Packet
		if content.DecodeRecord(record, &p) == nil {
			want.Add(id, p.Expiry)
		}
	}
	s.Keys.Tally(&want)
	for identity := range s.states {
		want.AddDelivery(identity)
	}
	return errors.Join(want.Check(scan, 0), want.CheckKeys(scan, 0), want.CheckDeliveries(scan, 0))
}
