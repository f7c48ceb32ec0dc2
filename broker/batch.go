package broker

import (
	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/storage"
)

// batch is one group commit: what its calls change in the store, and what they answer. Broker.mu
// guards it while it is open. Then it belongs to the committer, and then to the completer, which
// returns it empty.
type batch struct {
	ops         *storage.Batch
	number      uint64       // counts the batches since New; 1 is the first
	claims      bool         // it gives tokens out, which no start may give out again
	lastKey     uint64       // the last version of a key when the batch was opened
	values      []valueEvent // what is done with values that only the disk has
	puts        puts         // the operations of ops that put packets
	late        []late       // those whose records only the disk holds, in rising order
	replies     []reply      // in the order of their calls
	records     [][]byte     // the packets, or the bytes, of all replies; the committer fills the nils
	misses      []miss       // the nils of records that are not those of late
	details     []Detail     // of the records of replies of kind replyDetailed and replyShown
	notes       []noteMiss   // what of details only the disk holds
	ahead       []miss       // neighbours of what is read, read along for the cache
	copied      []byte       // records copied out of the cache, and bytes of replies
	queuedBytes int          // of all replies
	ended       int          // records deleted by endUnique

	missed          *queue          // the queue of the first record to read: where to read ahead
	missedSelection index.Selection // and which packets
}

// reply is what one call answers: records[first:last] of its batch.
type reply struct {
	to          *Conn
	first, last int32
	detail      int32 // of replyDetailed and replyShown: the first of its details
	queuedBytes int   // of those records, and replyOverhead
	kind        replyKind
	tag         Tag // of all kinds with packets
}

type replyKind uint8

const (
	replyPackets  replyKind = iota // a pop's reply or a delivery
	replyDetailed                  // packets with details
	replyShown                     // the same; a packet whose record is gone keeps its details
	replyBytes                     // what a session put together itself: one record
	replyFinish                    // the consumer is gone: nothing follows
)

// miss is a record to read from the store before the batch deletes it.
type miss struct {
	id     storage.PacketID
	entry  index.ID // of ahead: the packet's index entry, which gets its place in the cache
	record int32    // of misses: the place in records
	expiry int64    // of misses: after it the store may have dropped the record by itself; 0 never
}

func newBatch(m storage.Marks) *batch {
	return &batch{ops: new(storage.Batch), puts: puts{firstSeq: m.NextSeq, firstLow: m.LowSeq}}
}

// reset empties the batch. It keeps the memory, unless a large call has made it outsized.
func (t *batch) reset() {
	const keep, keepBytes = 16 << 10, 4 << 20
	t.ops.Reset()
	*t = batch{
		ops:     t.ops,
		puts:    puts{up: emptied(t.puts.up, keep), down: emptied(t.puts.down, keep)},
		late:    emptied(t.late, keep),
		values:  emptied(t.values, keep),
		replies: emptied(t.replies, keep),
		records: emptied(t.records, keep),
		misses:  emptied(t.misses, keep),
		details: emptied(t.details, MaxCount),
		notes:   emptied(t.notes, MaxCount),
		ahead:   emptied(t.ahead, keep),
		copied:  emptied(t.copied, keepBytes),
	}
}

// emptied returns s without its elements, or nil if its memory is not worth keeping.
func emptied[T any](s []T, keep int) []T {
	if cap(s) > keep {
		return nil
	}
	clear(s)
	return s[:0]
}

func (t *batch) empty() bool { return t.ops.Len() == 0 && len(t.replies) == 0 }

// size is how much work the batch is: records and replies.
func (t *batch) size() int { return t.ops.Len() + len(t.replies) }

// full says that the batch takes no further call (see batchLimits).
func (t *batch) full(l batchLimits) bool {
	return t.ops.Len() >= l.ops || t.ops.Bytes() >= l.bytes || t.ops.Memory() >= maxBatchMemory ||
		t.queuedBytes >= maxBatchQueuedBytes || len(t.replies) >= maxBatchReplies || len(t.records) >= maxBatchReplies ||
		len(t.puts.up) >= maxBatchPushes || len(t.puts.down) >= maxBatchPushes
}

// halfFull says that the rest of the batch is for others than what changes many packets.
func (t *batch) halfFull(l batchLimits) bool {
	return t.ops.Len() >= l.ops/2 || t.ops.Bytes() >= l.bytes/2
}

// fits says that calls which bring r do not take the batch over what the storage applies as a
// whole. Deletes may go over it, as long as the rest is half of that. An empty batch takes what
// batchLimits.check lets through.
func (t *batch) fits(l batchLimits, r Room) bool {
	ops, bytes := l.MaxOps-spareOps-t.ops.Len(), l.MaxBytes-idleRoom-t.ops.Bytes()
	if allowed(storageSize(r, true), ops, bytes) {
		return true
	}
	return r.Deletes > 0 && t.ops.Len()+r.Deletes <= l.MaxDeletes &&
		allowed(storageSize(r, false), ops, l.MaxBytes/2-idleRoom-t.ops.Bytes())
}

// readAhead notes what the first read of the batch is followed by.
func (t *batch) readAhead(q *queue, s index.Selection) {
	if t.missed == nil {
		t.missed, t.missedSelection = q, s
	}
}

// copy returns a copy of record that lives as long as the batch.
func (t *batch) copy(record []byte) []byte {
	from := len(t.copied)
	t.copied = append(t.copied, record...)
	return t.copied[from:len(t.copied):len(t.copied)]
}
