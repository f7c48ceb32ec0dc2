package broker

import "github.com/holdfast-queue/holdfast/storage"

// completeLoop is the completer: it hands the replies of durable batches to their receivers, in
// order, and flushes each receiver once a batch.
func (b *Broker) completeLoop() {
	defer b.stopped.Done()
	var packets []Packet
	var dirty []*Conn
	for t := range b.durable {
		for _, r := range t.replies {
			packets = b.handOut(t, r, packets[:0])
			if !r.to.dirty {
				r.to.dirty = true
				dirty = append(dirty, r.to)
			}
		}
		for _, c := range dirty {
			c.dirty = false
			c.to.Flush()
		}
		dirty = dirty[:0]
		t.reset()
		b.free <- t
		b.completed()
	}
}

// completed lets the committer go on with whatever is open, however little that is.
func (b *Broker) completed() {
	b.mu.Lock()
	b.minBatch = 0
	ready := b.readyToCommit()
	b.mu.Unlock()
	if ready {
		b.signal()
	}
}

// handOut gives one reply to its receiver. It returns packets grown, for the next call.
func (b *Broker) handOut(t *batch, r reply, packets []Packet) []Packet {
	switch r.kind {
	case replyFinish:
		r.to.to.Finish()
		return packets
	case replyBytes:
		r.to.to.Reply(t.records[r.first])
		r.handedOver()
		return packets
	}
	var details []Detail
	if r.kind == replyDetailed || r.kind == replyShown {
		details = t.details[r.detail : r.detail+r.last-r.first]
	}
	for i, record := range t.records[r.first:r.last] {
		packets = append(packets, Packet{})
		last := len(packets) - 1
		if record == nil { // a list has said how many packets follow
			continue
		}
		if err := storage.DecodeRecord(record, &packets[last]); err != nil {
			packets = packets[:last]
			b.log.Error("popped packet cannot be decoded and is left out of its reply", "error", err)
			continue
		}
		if details != nil {
			details[last] = details[i]
		}
	}
	if details != nil {
		details = details[:len(packets)]
	}
	r.to.to.Packets(r.tag, packets, details)
	r.handedOver()
	return packets
}

// handedOver takes the reply out of what is queued for its connection.
func (r *reply) handedOver() {
	r.to.queuedBytes.Add(-int64(r.queuedBytes))
	r.to.queuedReplies.Add(-1)
}
