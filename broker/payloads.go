package broker

import (
	"fmt"

	"github.com/holdfast-queue/holdfast/storage"
)

// planReadAhead lists in t.ahead the packets that the next pops are likely to take, if a pop of t
// missed the cache. Reading them along with it costs a tenth of reading each by itself.
func (b *Broker) planReadAhead(t *batch) {
	if t.missed == nil || !b.queues.has(t.missed) {
		return
	}
	b.scratch = b.ix.Next(t.missed.ix, t.missedSelection, 0, readAhead, b.scratch[:0])
	bytes := 0
	for _, p := range b.scratch {
		if bytes += int(p.Size); bytes > readAheadBytes {
			return
		}
		if b.cache.get(p.Ref, p.Seq) == nil {
			t.ahead = append(t.ahead, miss{id: t.missed.packet(p), entry: p.ID})
		}
	}
}

// readMisses reads the nils of t.records, and t.ahead into the cache.
func (b *Broker) readMisses(t *batch) error {
	all := append(t.misses, t.ahead...)
	ids := make([]storage.PacketID, len(all))
	for i, m := range all {
		ids[i] = m.id
	}
	ahead := make([][]byte, len(t.ahead))
	var decoded Packet
	err := b.store.Read(ids, func(i int, record []byte) error {
		if i >= len(t.misses) {
			if record != nil { // nil: the batch that pushed it is not on disk yet
				ahead[i-len(t.misses)] = t.copy(record)
			}
			return nil
		}
		// Check it now: once the batch has deleted it, the reply could only leave it out.
		if record == nil || storage.DecodeRecord(record, &decoded) != nil {
			return b.unreadable(t.misses[i])
		}
		t.records[t.misses[i].record] = t.copy(record)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read popped payloads: %w", err)
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

// unreadable decides what becomes of a popped packet whose record is gone or no packet. If the
// packet has expired meanwhile, the store's own expiry may have taken it. Otherwise it is damage.
func (b *Broker) unreadable(m miss) error {
	if m.expiry != 0 && m.expiry <= b.clock() {
		return nil
	}
	why := b.store.Damage(m.id)
	if why == nil {
		why = fmt.Errorf("%w: packet %v is in the index, but its record is gone or no packet", storage.ErrDamaged, m.id)
	}
	if !b.acceptLoss {
		return fmt.Errorf("%w: %w", ErrUnreadable, why)
	}
	b.log.Error("popped packet is damaged and is left out of its reply", "error", why)
	return nil
}

// cacheRecord caches a record that was read ahead, unless its packet is gone.
func (b *Broker) cacheRecord(m miss, record []byte) {
	if p, ok := b.ix.Get(m.entry); ok && p.Seq == m.id.Seq {
		b.ix.SetRef(m.entry, m.id.Seq, b.cache.add(m.id.Seq, record))
	}
}
