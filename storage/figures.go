package storage

import (
	"github.com/holdfast-queue/holdfast/storage/content"
	"math/bits"
	"time"
)

// Figures are what a running store has done, and how it is.
type Figures struct {
	Commits Commits

	Journal      int64 // bytes of segments that hold records
	Spare        int64 // and of those that hold none
	Segments     int   // that hold records
	Pending      int64 // bytes that wait to become tables
	Frozen       int   // windows that do, besides the open one
	LastBatch    uint64
	FlushedBatch uint64 // the last one that is in tables

	Tables      int
	TableBytes  int64
	LevelZero   int   // tables of level 0
	Windows     int   // groups of tables that level 0 has
	DeadBytes   int64 // of tables that nobody needs; an estimate
	Background  map[string]Work
	LastFlushed time.Time // zero: nothing was, since the start
}

// Work tells how much work of one kind was done in the background since the start.
type Work struct {
	Done     uint64        // times that it was done
	Took     time.Duration // for these
	Failures uint64        // times that it failed, and is tried again
	Failing  bool          // the last try failed
}

// Commits are the histograms of the commits since the start.
type Commits struct {
	Latency Histogram // microseconds, until a batch was as durable as Options.Sync says
	Sync    Histogram // microseconds of an fdatasync of the journal
	Bytes   Histogram // of entries of a batch
	Entries Histogram // of a batch
}

// Histogram counts values: bucket i has those above 2^(i-1), up to 2^i; the last one all others.
type Histogram struct {
	Buckets [28]uint64
	Sum     uint64
}

func (h *Histogram) add(v uint64) {
	h.Buckets[min(bits.Len64(max(v, 1)-1), len(h.Buckets)-1)]++
	h.Sum += v
}

// AddTime counts a time in microseconds.
func (h *Histogram) AddTime(d time.Duration) { h.add(uint64(max(0, d.Microseconds()))) }

func (c *Commits) add(b *content.Batch, took time.Duration) {
	c.Latency.AddTime(took)
	c.Bytes.add(uint64(b.Bytes()))
	c.Entries.add(uint64(b.Len()))
}

// Figures returns the figures of about this moment. It touches no disk, and any goroutine may call
// it.
func (s *Store) Figures() Figures {
	list := s.tables.List()
	dead, _ := s.deadAndLive(list)
	f := Figures{
		FlushedBatch: list.Floor.Batch, Tables: len(list.Tables), TableBytes: list.Bytes, LevelZero: list.Zero, Windows: list.Windows, DeadBytes: dead,
		Background: s.troubles.figures(),
	}
	f.Journal, f.Spare = s.journal.Size()
	f.Segments = s.journal.Segments()
	f.Pending, _, f.Frozen = s.layers.waiting()
	if at := s.flushed.Load(); at != 0 {
		f.LastFlushed = time.Unix(0, at)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f.Commits, f.LastBatch = s.commits, s.control.Batch
	return f
}
