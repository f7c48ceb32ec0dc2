package broker

// A session that puts its replies together itself computes them inside Do, from the state that
// earlier calls have left, and gives them to Reply. They are sent once everything that they may
// depend on is on disk.

// Tag is a caller's own word that travels with a reply of packets. It comes back to the receiver,
// which tells by it how to write the packets.
type Tag uint32

// Begin makes sure that the broker accepts calls. Every call but Reply and Detach does the same by
// itself. It returns ErrClosed, or ErrStopped if the batch is full because the disk is.
func (tx *Tx) Begin() error { return tx.begin() }

// Durable says that the batch with a number, and all before it, are on disk. 0 is the open batch:
// then nothing that was called until now can be undone.
func (tx *Tx) Durable(batch uint64) bool {
	b := tx.b
	if batch == 0 || batch == b.open.number {
		return b.open.ops.Len() == 0 && b.durableBatch == b.open.number-1
	}
	return batch <= b.durableBatch
}

// Reply answers c with data, which is copied, after all earlier calls. It goes into the open batch
// even if that is full. So it must follow another call or Begin.
func (tx *Tx) Reply(c *Conn, data []byte) {
	b := tx.b
	if b.extendReply(c, data) {
		return
	}
	first := len(b.open.records)
	b.open.appendRecords(b.open.copy(data))
	b.queueReply(c, first, replyBytes, 0, len(data))
}

// ReplyAll is Reply to many, with one copy of data.
func (tx *Tx) ReplyAll(to []*Conn, data []byte) {
	b := tx.b
	copied := b.open.copy(data)
	for _, c := range to {
		first := len(b.open.records)
		b.open.records = append(b.open.records, copied)
		b.queueReply(c, first, replyBytes, 0, len(data))
	}
}

// extendReply appends data to the last reply, if that is c's and its bytes are the last copied. So
// a run of short replies costs like one.
func (b *Broker) extendReply(c *Conn, data []byte) bool {
	t := b.open
	if len(t.replies) == 0 || cap(t.copied)-len(t.copied) < len(data) {
		return false
	}
	r := &t.replies[len(t.replies)-1]
	if r.to != c || r.kind != replyBytes {
		return false
	}
	record := &t.records[r.first]
	from := len(t.copied) - len(*record)
	if from < 0 || len(*record) == 0 || &t.copied[from] != &(*record)[0] {
		return false
	}
	t.copied = append(t.copied, data...)
	*record = t.copied[from:len(t.copied):len(t.copied)]
	r.queuedBytes += len(data)
	c.queuedBytes.Add(int64(len(data)))
	t.queuedBytes += len(data)
	return true
}

// QueueCounts is how much a queue holds.
type QueueCounts struct {
	Selectable int // packets that a pop can select
	Priorities int // distinct priorities of those; one that packets of two tag sets have counts twice
}

// QueueCounts returns what the queue holds; nothing for an unknown one.
func (tx *Tx) QueueCounts(name []byte) (QueueCounts, error) {
	if err := tx.begin(); err != nil {
		return QueueCounts{}, err
	}
	q := tx.b.queueNamed(name)
	if q == nil {
		return QueueCounts{}, nil
	}
	c := tx.b.ix.Counts(q.ix)
	return QueueCounts{Selectable: c.Ready, Priorities: c.Priorities}, nil
}

// queueReply appends a reply of the records from first on, whose packets or data have so many
// bytes.
func (b *Broker) queueReply(c *Conn, first int, kind replyKind, tag Tag, bytes int) {
	bytes += replyOverhead
	c.queuedBytes.Add(int64(bytes))
	c.queuedReplies.Add(1)
	b.open.queuedBytes += bytes
	n := len(b.open.records)
	b.open.replies = append(b.open.replies, reply{
		to: c, first: int32(first), last: int32(n), detail: int32(len(b.open.details) - (n - first)),
		kind: kind, tag: tag, queuedBytes: bytes,
	})
}
