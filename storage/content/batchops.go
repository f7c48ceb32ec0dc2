package content

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
	OpPutShare
	OpDeleteShare
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
	Share   Share    // of OpPutShare; only its ShareID of OpDeleteShare

	Delivery Delivery // of OpPutDelivery
	Note     NoteID   // of OpPutNote, whose text is Record; only its Identity of OpDeleteDelivery
	Stored   Stored   // of OpDeleteDelivery: what is deleted; of the other two: what was in the store before the batch
}

// Each calls fn for every operation that would be written, in the order of the calls, or of the
// first call for a key. What goes with something else is shown with that: a large value, the
// delivery state of a packet that goes, the counters of a queue. For tests and tools.
func (b *Batch) Each(fn func(Op)) {
	for i := range b.entries {
		e := &b.entries[i]
		if e.raw == nil {
			continue
		}
		switch key := e.key(); string(key[:2]) {
		case PacketPrefix:
			fn(b.packetOp(e))
		case QueuePrefix:
			b.queueOps(e, fn)
		case HeadPrefix, FieldPrefix:
			fn(b.itemOp(e))
		case StatePrefix:
			if e.puts() || !e.withPacket {
				fn(b.stateOp(e))
			}
		case UniquePrefix:
			op := Op{Kind: OpDeleteUnique}
			if op.Unique.UniqueID, _ = DecodeUniqueKey(key); e.puts() && DecodeUnique(e.value(), &op.Unique) == nil {
				op.Kind = OpPutUnique
			}
			fn(op)
		case SharePrefix[:2]:
			op := Op{Kind: OpDeleteShare}
			id, err := DecodeShareKey(key)
			if op.Share.ShareID = id; err != nil {
				continue // the flush record
			}
			if e.puts() && DecodeShare(e.value(), &op.Share) == nil {
				op.Kind = OpPutShare
			}
			fn(op)
		}
	}
	if f, set := b.Flush(); set {
		fn(Op{Kind: OpSetFlush, Flush: f})
	}
}

func (b *Batch) packetOp(e *batchEntry) Op {
	op := Op{Kind: OpPut, Removed: e.removed}
	switch kind := e.kind(); {
	case kind.Deletes():
		op.Kind = OpDelete
	case kind != EntryNew:
		op.Kind = OpReplace
	}
	if op.ID, _ = DecodePacketKey(e.key()); e.puts() {
		op.Record = e.record
	}
	return op
}

func (b *Batch) stateOp(e *batchEntry) Op {
	id, _ := DecodeStateKey(e.key())
	op := Op{Kind: OpDeleteDelivery, Note: NoteID{Identity: id.Identity}, Stored: 1 << id.Kind}
	if !e.puts() {
		return op
	}
	op.Stored = 0
	for kind := range NoteKind(stateKinds) {
		if e := b.find(AppendStateKey(nil, NoteID{id.Identity, kind})); e != nil && e.stored {
			op.Stored |= 1 << kind
		}
	}
	if op.Kind, op.Record = OpPutNote, e.value(); id.Kind == 0 {
		op.Kind, op.Record = OpPutDelivery, nil
		_ = DecodeDelivery(e.value(), id.Identity, &op.Delivery)
		return op
	}
	op.Note = id
	return op
}

// queueOps shows a definition with its counters, or counters alone.
func (b *Batch) queueOps(e *batchEntry, fn func(Op)) {
	id, counters, _ := DecodeQueueKey(e.key())
	op := Op{Kind: OpPutQueue, Queue: Queue{ID: id}}
	if counters {
		if d := b.find(AppendQueueKey(nil, id)); e.puts() && (d == nil || d.raw == nil) {
			op.Kind = OpPutCounters
			_ = DecodeCounters(e.value(), &op.Queue.Counters)
			fn(op)
		}
		return
	}
	c := b.find(append(AppendQueueKey(nil, id), CountersKey))
	if !e.puts() || c != nil && c.raw != nil && !c.puts() {
		fn(Op{Kind: OpDeleteQueue, Queue: Queue{ID: id}})
	}
	if !e.puts() {
		return
	}
	_ = DecodeQueue(e.value(), &op.Queue)
	if op.Queue.New = !e.stored; c != nil && c.puts() {
		_ = DecodeCounters(c.value(), &op.Queue.Counters)
	}
	fn(op)
}

func (b *Batch) itemOp(e *batchEntry) Op {
	v, _ := DecodeItemKey(e.key())
	var i Item
	if e.puts() {
		_ = DecodeItem(e.value(), &i)
	}
	kept := i.Large
	if value, ok := b.Value(v); ok {
		i.Value, kept = value, false
	}
	switch {
	case v.IsField && !e.puts():
		return Op{Kind: OpDeleteField, Old: e.old, Field: Field{Hash: v.ID, ID: v.Field}}
	case v.IsField:
		return Op{Kind: OpPutField, Old: e.old, Field: Field{v.ID, v.Field, i.Name, i.Version, i.Value, i.Len(), kept, i.Rest}}
	case !e.puts():
		return Op{Kind: OpDeleteHead, Old: e.old, Head: Head{ID: v.ID}}
	}
	return Op{Kind: OpPutHead, Old: e.old, Head: Head{v.ID, i.Kind, i.Database, i.Name, i.Version, i.Expiry, i.Value, i.Len(), kept, i.Rest}}
}
