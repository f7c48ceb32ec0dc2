package daemon

import (
	"time"

	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// loopStore is the store of the loop, which notes when that waits for the disk.
type loopStore struct {
	Store
	health *health
	room   func() (storage.Level, time.Duration) // Term.Room
	memory *watermark
}

func (s loopStore) wait(use func()) {
	s.health.onDisk.Store(true)
	defer s.health.onDisk.Store(false)
	use()
}

func (s loopStore) Space() storage.Space {
	space := s.Store.Space()
	space.Memory = s.memory.get()
	if s.room != nil {
		level, wait := s.room()
		space.Level, space.Wait = max(space.Level, level), max(space.Wait, wait)
	}
	return space
}

func (s loopStore) Apply(b *content.Batch) (err error) {
	s.wait(func() { err = s.Store.Apply(b) })
	return err
}

func (s loopStore) Read(ids []content.PacketID, fn func(i int, record []byte, damage error)) {
	s.wait(func() { s.Store.Read(ids, fn) })
}

func (s loopStore) Some(from content.PacketID, n int, fn func(content.PacketID, *content.Meta)) (next content.PacketID, more bool, err error) {
	s.wait(func() { next, more, err = s.Store.Some(from, n, fn) })
	return next, more, err
}

func (s loopStore) ReadValues(ids []content.ValueID, fn func(i int, value []byte, damage error)) {
	s.wait(func() { s.Store.ReadValues(ids, fn) })
}

func (s loopStore) ReadNotes(ids []content.NoteID, fn func(i int, text []byte, damage error)) {
	s.wait(func() { s.Store.ReadNotes(ids, fn) })
}
