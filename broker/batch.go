package broker

import "github.com/holdfast-queue/holdfast/storage"

// batch is one group commit: what its calls change in the store, and what they answer. Broker.mu
// guards it while it is open. Then it belongs to the committer, and then to the completer, which
// returns it empty.
type batch struct {
	ops         *storage.Batch
	number      uint64   // counts the batches since New; 1 is the first
	claims      bool     // it gives tokens out, which no start may give out again
	lastKey     uint64   // the last version of a key when the batch was opened
	puts        puts     // the operations of ops that put packets
	replies     []reply  // in the order of their calls
	records     [][]byte // the packets, or the bytes, of all replies; nil where one that is shown cannot be read
	details     []Detail // of the records of replies of kind replyDetailed and replyShown
	copied      []byte   // where records, values and bytes of replies are copied to
	queuedBytes int      // of all replies
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
		replies: emptied(t.replies, keep),
		records: emptied(t.records, keep),
		details: emptied(t.details, MaxCount),
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

// memory is about what the batch takes of memory, at least. Records that were cancelled stay in it.
func (t *batch) memory() int {
	return t.ops.Memory() + recordMemory*max(t.ops.Len(), len(t.puts.up)+len(t.puts.down))
}

// full says that the next call begins the next batch.
func (t *batch) full(l storage.Limits) bool {
	return t.ops.Len() >= l.MaxOps || t.ops.Bytes() >= l.MaxBytes || t.ops.Memory() >= maxBatchMemory ||
		t.queuedBytes >= maxBatchQueuedBytes || len(t.replies) >= maxBatchReplies || len(t.records) >= maxBatchReplies ||
		len(t.puts.up) >= maxBatchPushes || len(t.puts.down) >= maxBatchPushes
}

// halfFull says that the rest of the batch is for others than what changes many packets.
func (t *batch) halfFull(l storage.Limits) bool {
	return t.ops.Len() >= l.MaxOps/2 || t.ops.Bytes() >= l.MaxBytes/2
}

// copy returns a copy of record that lives as long as the batch.
func (t *batch) copy(record []byte) []byte {
	if cap(t.copied)-len(t.copied) < len(record) { // what was copied before stays where it is
		t.copied = make([]byte, 0, max(len(record), min(2*cap(t.copied), 1<<20), 4096))
	}
	from := len(t.copied)
	t.copied = append(t.copied, record...)
	return t.copied[from:len(t.copied):len(t.copied)]
}
