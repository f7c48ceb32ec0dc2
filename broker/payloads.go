package broker

import (
	"fmt"

	"github.com/holdfast-queue/holdfast/storage"
)

// located is where a packet's record is.
type located struct {
	record []byte           // nil if only the disk holds it; valid until the batch or the cache changes
	op     int              // the operation of the open batch that puts the packet; -1 if none does
	from   storage.PacketID // of a record that only the disk holds
}

// locate finds a packet's record: in the open batch, in the cache or on disk.
func (b *Broker) locate(id storage.PacketID, ref uint32) located {
	op, ok := b.open.puts.find(id)
	if !ok {
		return located{record: b.cache.get(ref, id.Seq), op: -1, from: id}
	}
	if record := b.open.ops.Record(op); record != nil {
		return located{record: record, op: op}
	}
	return located{op: op, from: b.open.lateOf(op).from}
}

// replyRecord appends a located record to those of the reply that is being made. If only the disk
// holds it, it notes that the committer has to read it.
func (b *Broker) replyRecord(at located, expiry int64) {
	t := b.open
	switch {
	case at.record == nil:
		b.stats.misses.Add(1)
		t.misses = append(t.misses, miss{id: at.from, record: int32(len(t.records)), expiry: expiry})
	case at.op < 0:
		at.record = t.copy(at.record)
	}
	t.records = append(t.records, at.record)
}

// planReadAhead lists in t.ahead the packets that the next pops are likely to take, if a pop of t
// missed the cache. Reading them along with it costs a tenth of reading each by itself.
func (b *Broker) planReadAhead(t *batch) {
	if t.missed == nil || !b.queues.has(t.missed) {
		return
	}
	b.scratch = b.ix.Next(t.missed.ix, t.missedSelection, 0, readAhead, b.scratch[:0])
	bytes := 0
	for _, p := range b.scratch {
		if bytes += weight(p); bytes > readAheadBytes {
			return
		}
		// What this batch puts is not on disk yet, or is read anyway.
		if at := b.locate(t.missed.packet(p), p.Ref); at.record == nil && at.op < 0 {
			t.ahead = append(t.ahead, miss{id: at.from, entry: p.ID})
		}
	}
}

// readRecords reads what the batch needs from the disk, before its operations change that: the nils
// of t.records, the records of t.late, and t.ahead into the cache.
func (b *Broker) readRecords(t *batch) error {
	ids := make([]storage.PacketID, 0, len(t.misses)+len(t.late)+len(t.ahead))
	for _, m := range t.misses {
		ids = append(ids, m.id)
	}
	for _, l := range t.late {
		ids = append(ids, l.from)
	}
	for _, m := range t.ahead {
		ids = append(ids, m.id)
	}
	ahead := make([][]byte, len(t.ahead))
	var decoded Packet
	err := b.store.Read(ids, func(i int, record []byte) error {
		// Check it now: once the batch has deleted it, a reply could only leave it out.
		if record != nil && storage.DecodeRecord(record, &decoded) != nil {
			record = nil
		}
		if i < len(t.misses) {
			return b.fillMiss(t, &t.misses[i], record)
		}
		if i -= len(t.misses); i < len(t.late) {
			return b.fillLate(t, &t.late[i], record, &decoded)
		}
		if record != nil { // nil: the batch that pushed it is not on disk yet
			ahead[i-len(t.late)] = t.copy(record)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read payloads: %w", err)
	}
	b.mu.Lock()
	for i, record := range ahead {
		if record != nil {
			b.cacheRecord(t.ahead[i], record)
		}
	}
	b.mu.Unlock()
	return nil
}

// fillMiss gives a reply a record that was read for it.
func (b *Broker) fillMiss(t *batch, m *miss, record []byte) error {
	if record == nil {
		return b.unreadable(m.id, m.expiry)
	}
	t.records[m.record] = t.copy(record)
	return nil
}

// fillLate gives a put, and the reply that wants it too, the record that was read for it. p is what
// that holds.
func (b *Broker) fillLate(t *batch, l *late, record []byte, p *Packet) error {
	if record == nil {
		return b.loseLate(t, l)
	}
	if l.record >= 0 {
		t.records[l.record] = t.copy(record)
	}
	if p.Identity != l.identity || p.Expiry != l.expires {
		changed, err := storage.AppendChanged(nil, record, l.expires, l.identity)
		if err != nil {
			return err
		}
		record = changed
	}
	t.ops.Fill(int(l.op), record)
	return nil
}

// loseLate gives up a packet that cannot be moved because its record cannot be read, if that is
// accepted. The next batch may have taken it already: then the control record counts one too few,
// and the next start says so.
func (b *Broker) loseLate(t *batch, l *late) error {
	if err := b.unreadable(l.from, l.expiry); err != nil {
		return err
	}
	t.ops.Cancel(int(l.op))
	b.mu.Lock()
	defer b.mu.Unlock()
	if p, ok := b.ix.Get(l.entry); ok && p.Seq == l.seq {
		b.ix.Remove(l.entry)
		b.leaveConsumer(p)
		b.deleteDelivery(p)
		if p.HasUnique {
			b.endUnique(b.queues.of(p.Queue), p.Identity)
		}
		b.changed(b.queues.of(p.Queue))
	}
	return nil
}

// unreadable decides what becomes of a packet that is wanted and whose record is gone or no packet.
// If the packet has expired meanwhile, the store's own expiry may have taken it. Otherwise it is
// damage.
func (b *Broker) unreadable(id storage.PacketID, expiry int64) error {
	if expiry != 0 && expiry <= b.wallClock() {
		return nil
	}
	why := b.store.Damage(id)
	if why == nil {
		why = fmt.Errorf("%w: packet %v is in the index, but its record is gone or no packet", storage.ErrDamaged, id)
	}
	if !b.acceptLoss {
		return fmt.Errorf("%w: %w", ErrUnreadable, why)
	}
	b.log.Error("packet is damaged and is left out", "error", why)
	return nil
}

// cacheRecord caches a record that was read ahead, unless its packet is gone or was replaced.
func (b *Broker) cacheRecord(m miss, record []byte) {
	p, ok := b.ix.Get(m.entry)
	if !ok || p.Seq != m.id.Seq {
		return
	}
	if _, replaced := b.open.puts.find(m.id); !replaced {
		b.ix.SetRef(m.entry, m.id.Seq, b.cache.add(m.id.Seq, record))
	}
}
