package broker

import (
	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/storage"
)

// batch is one group commit: what its calls change in the store, and what they answer. While it
// is open it belongs to Broker.mu; from the swap on to the committer, then to the completer,
// which hands it back empty.
type batch struct {
	ops         *storage.Batch
	firstSeq    uint64   // sequence of the first packet pushed while the batch was open
	pushes      []int32  // op number in ops by sequence-firstSeq
	replies     []reply  // in the order of their calls
	records     [][]byte // the packets, or the bytes, of all replies; a nil is filled by the committer
	misses      []miss   // the nils of records
	ahead       []miss   // neighbours of the misses, read along with them for the cache
	copied      []byte   // records copied out of the cache, and bytes of replies
	queuedBytes int      // bytes of records

	missed          *queue          // the queue of the first miss: where to read ahead
	missedSelection index.Selection // and what
}

// reply is what one call answers: records[first:last] of its batch.
type reply struct {
	to          *Consumer
	first, last int32
	queuedBytes int // bytes of those records
	kind        replyKind
}

type replyKind uint8

const (
	replyPackets replyKind = iota // a pop's reply or a delivery
	replyBytes                    // what a session has put together itself: one record
	replyFinish                   // the consumer is gone: nothing follows
)

// miss is a payload to read from the store before the batch deletes it.
type miss struct {
	id     storage.PacketID
	entry  index.ID // ahead: the index entry to tell where the cache has it
	record int32    // misses: the place in records
	expiry int64    // misses: past it the store may have dropped it by itself; 0 never
}

func newBatch(firstSeq uint64) *batch {
	return &batch{ops: new(storage.Batch), firstSeq: firstSeq}
}

// reset empties the batch and keeps its memory, unless one large call has made it outsized.
func (t *batch) reset() {
	const keep, keepBytes = 16 << 10, 4 << 20
	t.ops.Reset()
	*t = batch{
		ops:     t.ops,
		pushes:  emptied(t.pushes, keep),
		replies: emptied(t.replies, keep),
		records: emptied(t.records, keep),
		misses:  emptied(t.misses, keep),
		ahead:   emptied(t.ahead, keep),
		copied:  emptied(t.copied, keepBytes),
	}
}

// emptied returns s without its elements, so that what they point to can be freed, or nil if it
// has become larger than is worth keeping.
func emptied[T any](s []T, keep int) []T {
	if cap(s) > keep {
		return nil
	}
	clear(s)
	return s[:0]
}

func (t *batch) empty() bool { return t.ops.Len() == 0 && len(t.replies) == 0 }

// size is how much work the batch is, in records and replies.
func (t *batch) size() int { return t.ops.Len() + len(t.replies) }

// full says that the batch takes no further call (see batchLimits).
func (t *batch) full(l batchLimits) bool {
	return t.ops.Len() >= l.ops || t.ops.Bytes() >= l.bytes || t.ops.Held() >= maxBatchHeld ||
		t.queuedBytes >= maxBatchQueuedBytes || len(t.replies) >= maxBatchReplies || len(t.records) >= maxBatchReplies ||
		len(t.pushes) >= maxBatchPushes
}

// fits says that a push of so many bytes, and what surrounds them, can still go into the batch's
// transaction. An empty batch takes any that Tx.Push lets through.
func (t *batch) fits(l batchLimits, bytes int) bool {
	return t.ops.Len() == 0 || t.ops.Bytes()+bytes+pushOverhead <= l.maxBytes
}

// pushed returns the op that pushed the packet with this sequence in this batch.
func (t *batch) pushed(seq uint64) (op int, ok bool) {
	if seq < t.firstSeq || seq-t.firstSeq >= uint64(len(t.pushes)) {
		return 0, false
	}
	return int(t.pushes[seq-t.firstSeq]), true
}

// copy keeps a copy of record as long as the batch lives.
func (t *batch) copy(record []byte) []byte {
	from := len(t.copied)
	t.copied = append(t.copied, record...)
	return t.copied[from:len(t.copied):len(t.copied)]
}
