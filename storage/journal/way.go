package journal

import (
	"sync/atomic"
	"time"
)

// way is how the syncs that somebody waits for go first: who brings more to the device, or reads
// much of it, waits between its pieces while one is under way.
type way struct {
	syncing atomic.Bool
	waiting atomic.Int32
	ended   chan struct{} // a token for each who waits; some may be of an earlier sync
}

const (
	maxWaiting = 8 // more than what the background has at a time
	// longestWait is how long a piece waits. One sync follows the other, and a device may hang.
	longestWait = 2 * time.Millisecond
)

// begin and end stand around a sync that somebody waits for. They never wait.
func (w *way) begin() { w.syncing.Store(true) }

func (w *way) end() {
	w.syncing.Store(false)
	for range w.waiting.Load() {
		select {
		case w.ended <- struct{}{}:
		default:
			return
		}
	}
}

// AwaitSync waits until no record is being synced, but 2 ms at most. It is called before each piece
// that the background writes or reads (disk.Piece), by anybody. With Weak it never waits.
func (j *Journal) AwaitSync() {
	w := &j.records
	if !w.syncing.Load() {
		return
	}
	w.waiting.Add(1)
	defer w.waiting.Add(-1)
	for over := time.After(longestWait); w.syncing.Load(); {
		select {
		case <-w.ended:
		case <-over:
			return
		}
	}
}
