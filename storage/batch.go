package storage

// Batch is what one Apply writes: all of it or nothing. One goroutine fills it; Apply only reads
// it. After Reset it is empty and uses its memory again.
//
// Invariants:
//  1. ops[i].rec and ops[i].head lie in chunks that are not written again
//     before Reset.
//  2. count and bytes are those of the operations that are not cancelled,
//     plus those of delivery states, queues, items and of the load record.
//  3. Apply carries the operations of one packet out in the order of the calls.
type Batch struct {
	ops     []batchOp
	queues  map[uint32]queueOp
	items   []itemOp
	itemAt  map[ValueID]int32 // where in items
	states  []stateOp
	stateAt map[uint64]int32 // where in states, by identity
	uniques map[UniqueID]uniqueOp
	chunks  [][]byte // the last one is being filled
	spare   [][]byte // kept by Reset for later chunks
	memory  int      // bytes of all chunks

	count    int
	bytes    int
	marks    Marks
	hasMarks bool
	must     bool // MustWrite
	load     onlyOp
	flushed  onlyOp
	flush    Flush // of flushed
}

// OpKind says what an Op does.
type OpKind uint8

// The kinds of Op.
const (
	OpPut OpKind = iota + 1
	OpDelete
	OpReplace
	OpPutQueue
	OpDeleteQueue
	OpPutHead
	OpDeleteHead
	OpPutField
	OpDeleteField
	OpSetFlush
	OpPutDelivery
	OpPutNote
	OpDeleteDelivery
	OpPutCounters
	OpPutUnique
	OpDeleteUnique
)

// Op is one operation of a batch as Each shows it.
type Op struct {
	Kind    OpKind
	ID      PacketID // of OpPut, OpDelete and OpReplace
	Record  []byte   // of OpPut and OpReplace: the full record
	Removed Removed  // of OpDelete and OpReplace
	Queue   Queue    // of OpPutQueue; only its ID of OpDeleteQueue, and with the Counters of OpPutCounters
	Head    Head     // of OpPutHead, with a large value unless that is kept; only its ID of OpDeleteHead
	Field   Field    // of OpPutField, as Head; only its identity of OpDeleteField
	Old     Mark     // of what is done to heads and fields: what was in the store before the batch
	Flush   Flush    // of OpSetFlush
	Unique  Unique   // of OpPutUnique; only its UniqueID of OpDeleteUnique

	Delivery Delivery // of OpPutDelivery
	Note     NoteID   // of OpPutNote, whose text is Record; only its Identity of OpDeleteDelivery
	Stored   Stored   // of OpDeleteDelivery: what is deleted; of the other two: what was in the store before the batch
}

// Removed tells what Delete and Replace must know of the packet that goes.
type Removed struct {
	Expires bool // the packet had an expiry
	Large   bool // its payload has a record of its own: Meta.Large, or IsLarge
	// Stored are the records of its delivery state, which go with it, and Identity names them. A
	// packet that moves keeps them: then Stored is 0.
	Stored   Stored
	Identity uint64
}

// IsLarge reports whether a payload of n bytes gets a record of its own.
func IsLarge(n int) bool { return n > largePayload }

type batchOp struct {
	id        PacketID
	expiry    int64
	rec       []byte // full record of a put or a replace
	head      []byte // where that is large: the record without the payload
	payload   []byte // where that is large: the payload inside rec
	lateSize  int    // what bytes counts of a put whose record is late: rec is nil
	kind      OpKind
	cancelled bool
	removed   Removed
}

type queueOp struct {
	fresh    bool   // the first call in this batch defined it anew
	gone     bool   // both records that the store may have go, unless they are written
	rec      []byte // the definition, nil if it is not written
	counters []byte
}

const (
	chunkSize = 256 << 10
	// maxSpare bounds the memory that an idle batch keeps.
	maxSpare = 16
)

// Reset empties the batch. Records handed out before are no longer valid.
func (b *Batch) Reset() {
	clear(b.ops)
	b.ops = b.ops[:0]
	clear(b.queues)
	clear(b.items)
	b.items = b.items[:0]
	clear(b.itemAt)
	clear(b.states)
	b.states = b.states[:0]
	clear(b.stateAt)
	clear(b.uniques)
	for _, chunk := range b.chunks {
		if cap(chunk) == chunkSize && len(b.spare) < maxSpare {
			b.spare = append(b.spare, chunk[:0])
		}
	}
	clear(b.chunks)
	b.chunks = b.chunks[:0]
	b.memory, b.count, b.bytes = 0, 0, 0
	b.marks, b.hasMarks, b.must = Marks{}, false, false
	b.load, b.flushed, b.flush = onlyOp{}, onlyOp{}, Flush{}
}

// Put adds a packet, copying all it needs of p, and returns the number by which Record and Cancel
// know the operation. Nothing has that id on disk, or the batch deleted it before.
func (b *Batch) Put(id PacketID, p *Packet) (op int) {
	return b.put(batchOp{kind: OpPut, id: id, expiry: p.Expiry}, p)
}

// Replace puts a packet in the place of one that an earlier batch put, in one operation: whatever
// happens, one of the two is there. For a packet that this batch put, use Cancel and Put.
func (b *Batch) Replace(id PacketID, p *Packet, r Removed) (op int) {
	return b.put(batchOp{kind: OpReplace, id: id, expiry: p.Expiry, removed: b.takeStates(id, r)}, p)
}

func (b *Batch) put(o batchOp, p *Packet) (op int) {
	large := IsLarge(len(p.Payload))
	room := recordRoom(p)
	if large {
		room += room - len(p.Payload)
	}
	buf := b.grow(room)
	o.rec = AppendRecord(buf, p)
	o.rec = o.rec[:len(o.rec):len(o.rec)]
	if large {
		o.payload = o.rec[len(o.rec)-len(p.Payload):]
		o.head = appendHead(buf[len(o.rec):len(o.rec)], p)
	}
	b.keep(len(o.rec) + len(o.head))
	return b.add(o)
}

func (b *Batch) add(o batchOp) (op int) {
	b.ops = append(b.ops, o)
	b.count += o.entries()
	b.bytes += o.bytes()
	return len(b.ops) - 1
}

// Record returns the full record of a Put or a Replace, cancelled or not, valid until Reset. It is
// nil while that is late.
func (b *Batch) Record(op int) []byte { return b.ops[op].rec }

// Cancel takes a Put back: its packet was popped again before the batch was sealed, so neither
// needs the disk. Of a Replace it leaves a Delete of what is on disk. A second Cancel does
// nothing.
func (b *Batch) Cancel(op int) {
	o := &b.ops[op]
	if o.cancelled || o.kind == OpDelete {
		return
	}
	b.count -= o.entries()
	b.bytes -= o.bytes()
	if o.kind == OpPut {
		o.cancelled = true
		return
	}
	o.kind, o.head, o.payload = OpDelete, nil, nil
	b.count += o.entries()
	b.bytes += o.bytes()
}

// Delete removes a packet that an earlier batch put. For one that this batch put, use Cancel. A
// packet that moves to another priority is deleted first and put then, in one batch; it may move
// back.
func (b *Batch) Delete(id PacketID, r Removed) {
	b.add(batchOp{kind: OpDelete, id: id, removed: b.takeStates(id, r)})
}

// PutQueue writes a queue definition, and the counters unless all are 0. Within one batch the last
// call for an identity wins.
func (b *Batch) PutQueue(q Queue) {
	rec := appendQueue(b.grow(queueRoom(&q)), &q)
	b.keep(len(rec))
	b.queueOp(q.ID, func(o *queueOp, again bool) {
		if !again {
			o.fresh = q.New
		}
		o.rec = rec[:len(rec):len(rec)]
	})
	if q.Counters != (Counters{}) {
		b.PutCounters(q.ID, q.Counters)
	}
}

// PutCounters writes the counters of a queue that is defined. Within one batch the last call wins.
func (b *Batch) PutCounters(id uint32, c Counters) {
	rec := appendCounters(b.grow(countersRoom), &c)
	b.keep(len(rec))
	b.queueOp(id, func(o *queueOp, _ bool) { o.counters = rec[:len(rec):len(rec)] })
}

// DeleteQueue removes a queue definition, and the counters. When the batch itself defined the queue
// as new, nothing is left to write.
func (b *Batch) DeleteQueue(id uint32) {
	b.queueOp(id, func(o *queueOp, _ bool) { *o = queueOp{fresh: o.fresh, gone: !o.fresh} })
	if b.queues[id].fresh {
		delete(b.queues, id)
	}
}

// queueOp has fn change what the batch does to a queue; again says that it does something already.
func (b *Batch) queueOp(id uint32, fn func(o *queueOp, again bool)) {
	if b.queues == nil {
		b.queues = make(map[uint32]queueOp)
	}
	o, again := b.queues[id]
	b.count -= o.entries()
	b.bytes -= o.bytes()
	fn(&o, again)
	b.queues[id] = o
	b.count += o.entries()
	b.bytes += o.bytes()
}

func (o *queueOp) entries() (n int) {
	for _, rec := range [][]byte{o.rec, o.counters} {
		if rec != nil || o.gone {
			n++
		}
	}
	return n
}

func (o *queueOp) bytes() int {
	return o.entries()*(queueKeyLen+1+opBytes) + len(o.rec) + len(o.counters)
}

// SetMarks gives the marks that the control record holds after this batch. Without it they stay as
// they are.
func (b *Batch) SetMarks(m Marks) { b.marks, b.hasMarks = m, true }

// MustWrite has Apply write the batch even if it holds nothing but marks.
func (b *Batch) MustWrite() { b.must = true }

// Marks returns what SetMarks set.
func (b *Batch) Marks() Marks { return b.marks }

// Len returns how many entries the batch would write, in the measure of Limits.MaxOps. A large
// packet counts twice.
func (b *Batch) Len() int { return b.count }

// Bytes returns what the batch would write, in the measure of Limits.MaxBytes.
func (b *Batch) Bytes() int { return b.bytes }

// Memory returns the bytes of memory that the records in the batch take, those of cancelled
// operations included.
func (b *Batch) Memory() int { return b.memory }

// Each calls fn for every operation that would be written: packets in the order of the calls, then
// delivery states, then queues in no order, then heads and fields, ids of unique pushes, and the
// flush record. For tests and tools.
func (b *Batch) Each(fn func(Op)) {
	for i := range b.ops {
		o := &b.ops[i]
		if !o.cancelled {
			fn(Op{Kind: o.kind, ID: o.id, Record: o.rec, Removed: o.removed})
		}
	}
	for i := range b.states {
		b.states[i].show(fn)
	}
	for id, o := range b.queues {
		if o.gone {
			fn(Op{Kind: OpDeleteQueue, Queue: Queue{ID: id}})
		}
		op := Op{Kind: OpPutQueue, Queue: Queue{ID: id}}
		if o.rec == nil {
			op.Kind = OpPutCounters
		} else if decodeQueue(o.rec, &op.Queue) != nil {
			continue
		}
		op.Queue.New = o.fresh
		if o.counters != nil && decodeCounters(o.counters, &op.Queue.Counters) != nil {
			continue
		}
		if o.rec != nil || o.counters != nil {
			fn(op)
		}
	}
	for i := range b.items {
		if b.items[i].entries() > 0 {
			fn(b.items[i].show())
		}
	}
	for id, o := range b.uniques {
		op := Op{Kind: OpDeleteUnique, Unique: Unique{UniqueID: id}}
		if o.rec != nil && decodeUnique(o.rec, &op.Unique) == nil {
			op.Kind = OpPutUnique
		}
		fn(op)
	}
	if b.flushed.set {
		fn(Op{Kind: OpSetFlush, Flush: b.flush})
	}
}

// grow returns an empty slice with room for n bytes at the end of a chunk; keep makes what was
// appended to it part of the batch.
func (b *Batch) grow(n int) []byte {
	if last := len(b.chunks) - 1; last >= 0 {
		if c := b.chunks[last]; cap(c)-len(c) >= n {
			return c[len(c):len(c):cap(c)]
		}
	}
	var c []byte
	switch {
	case n > chunkSize:
		c = make([]byte, 0, n)
	case len(b.spare) > 0:
		c = b.spare[len(b.spare)-1]
		b.spare = b.spare[:len(b.spare)-1]
	default:
		c = make([]byte, 0, chunkSize)
	}
	b.chunks = append(b.chunks, c)
	return c
}

func (b *Batch) keep(n int) {
	last := len(b.chunks) - 1
	b.chunks[last] = b.chunks[last][:len(b.chunks[last])+n]
	b.memory += n
}

func (o *batchOp) entries() int {
	n := 1 + o.removed.Stored.count()
	if o.head != nil || o.removed.Large {
		n++
	}
	return n
}

func (o *batchOp) bytes() int {
	n := packetKeyLen + opBytes + o.removed.Stored.count()*(noteKeyLen+opBytes)
	if o.head != nil || o.removed.Large {
		n += payloadKeyLen + opBytes
	}
	switch {
	case o.kind == OpDelete:
		return n
	case o.rec == nil:
		return n + o.lateSize
	case o.head != nil:
		return n + len(o.head) + len(o.payload)
	}
	return n + len(o.rec)
}

// recordRoom is at least the length of p's full record.
func recordRoom(p *Packet) int {
	n := 76 + len(p.Key) + len(p.Payload) + len(p.Producer)
	for i := range p.Tags {
		n += 10 + len(p.Tags[i].Name) + len(p.Tags[i].Value)
	}
	return n
}
