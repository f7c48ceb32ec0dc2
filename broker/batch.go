package broker

import (
	"github.com/holdfast-queue/holdfast/storage/content"
)

// batch is one group commit: what its calls change in the store.
type batch struct {
	ops *content.Batch
	// must says that it is written whatever it has: a start may not give its tokens out again, and
	// knows by its time how late a slow rate of shares let some take.
	must   bool
	puts   puts // the operations of ops that put packets
	events events
}

func newBatch() *batch { return &batch{ops: new(content.Batch)} }

// begin prepares an empty batch for what follows the marks.
func (t *batch) begin(m content.Marks) { t.puts.firstSeq, t.puts.firstLow = m.NextSeq, m.LowSeq }

// reset empties the batch. It keeps the memory, unless a large call has made it outsized.
func (t *batch) reset() {
	const keep = 16 << 10
	t.ops.Reset()
	*t = batch{ops: t.ops, events: t.events, puts: puts{up: emptied(t.puts.up, keep), down: emptied(t.puts.down, keep)}}
}

// emptied returns s without its elements, or nil if its memory is not worth keeping.
func emptied[T any](s []T, keep int) []T {
	if cap(s) > keep {
		return nil
	}
	clear(s)
	return s[:0]
}

// used says that calls have put packets, which may all be gone again.
func (t *batch) used() bool { return len(t.puts.up)+len(t.puts.down) > 0 || t.ops.Memory() > 0 }

// memory is about what the batch takes of memory, at least. Records that were cancelled stay in it.
func (t *batch) memory() int {
	return t.ops.Memory() + recordMemory*max(t.ops.Len(), len(t.puts.up)+len(t.puts.down))
}

// full says that the next call begins the next batch.
func (t *batch) full(l content.Limits) bool {
	return t.ops.Len() >= l.MaxOps || t.ops.Bytes() >= l.MaxBytes || t.ops.Memory() >= maxBatchMemory ||
		len(t.puts.up) >= maxBatchPushes || len(t.puts.down) >= maxBatchPushes
}

// halfFull says that the rest of the batch is for others than what changes many packets.
func (t *batch) halfFull(l content.Limits) bool {
	return t.ops.Len() >= l.MaxOps/2 || t.ops.Bytes() >= l.MaxBytes/2
}
