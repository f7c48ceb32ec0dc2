package broker

import (
	"fmt"
	"slices"

	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/storage"
)

// A record is read when a call needs it, before the call changes anything: from the open batch, the
// cache, the batch that is on its way to the disk, or the disk.

// known returns a packet's record if it need not be read from the disk, nil otherwise. lasts says
// that it is valid as long as the open batch; else it is until the cache changes.
func (b *Broker) known(id storage.PacketID, ref uint32) (record []byte, lasts bool) {
	if op, ok := b.open.puts.find(id); ok {
		return b.open.ops.Record(op), true
	}
	if record := b.cache.get(ref, id.Seq); record != nil || b.onWay == nil {
		return record, false
	}
	if op, ok := b.onWay.puts.find(id); ok {
		return b.onWay.ops.Record(op), false
	}
	return nil, false
}

// fetch returns the records of packets of a queue: the slice is valid until the next call, and what
// it holds as long as the open batch. The record is nil where it cannot be read, and the packet is
// set aside; err says why and wraps ErrUnreadable. If s is not nil, the packets are those that it
// selects: those that follow are read along for the cache, which costs a tenth of reading each by
// itself.
func (b *Broker) fetch(q *queue, packets []index.Packet, s *index.Selection) (records [][]byte, err error) {
	records, missing, ids := slices.Grow(b.fetched[:0], len(packets)), b.missing[:0], b.missed[:0]
	for i, p := range packets {
		record, lasts := b.known(q.packet(p), p.Ref)
		if record == nil {
			missing, ids = append(missing, i), append(ids, q.packet(p))
		} else if !lasts {
			record = b.open.copy(record)
		}
		records = append(records, record)
	}
	b.fetched, b.missing = records, missing
	if len(missing) == 0 {
		return records, nil
	}
	var ahead []index.Packet
	if s != nil {
		ahead, ids = b.readAhead(q, s, len(packets), ids)
	}
	b.missed = ids
	var decoded Packet
	b.store.Read(ids, func(i int, record []byte, damage error) {
		if damage == nil && storage.DecodeRecord(record, &decoded) != nil {
			damage = fmt.Errorf("%w: packet %v", storage.ErrDamaged, ids[i])
		}
		switch behind := i - len(missing); {
		case behind >= 0 && damage != nil: // a damaged table has thousands: each by itself would be a read
			b.setAside(q, ahead[behind], damage)
		case behind >= 0:
			p := ahead[behind]
			b.ix.SetRef(p.ID, p.Seq, b.cache.add(p.Seq, record))
		case damage != nil:
			err = fmt.Errorf("%w: %w", ErrUnreadable, damage)
			b.setAside(q, packets[missing[i]], damage)
		default:
			records[missing[i]] = b.open.copy(record)
		}
	})
	return records, err
}

// readAhead returns what s selects behind so many packets, as far as only the disk has it, and
// appends the ids of that.
func (b *Broker) readAhead(q *queue, s *index.Selection, behind int, ids []storage.PacketID) ([]index.Packet, []storage.PacketID) {
	next, n, bytes := b.ix.Next(q.ix, *s, behind, readAhead, b.ahead[:0]), 0, 0
	b.ahead = next
	for _, p := range next {
		if bytes += weight(p); bytes > readAheadBytes {
			break
		}
		if record, _ := b.known(q.packet(p), p.Ref); record == nil {
			next[n], ids = p, append(ids, q.packet(p))
			n++
		}
	}
	return next[:n], ids
}

// setAside takes a packet whose record cannot be read out of the order, until the next start: a
// copy of the folder, or the device, may be sound then.
func (b *Broker) setAside(q *queue, p index.Packet, why error) {
	if p.State != index.Ready {
		return
	}
	b.stats.damaged.Add(1)
	b.ix.SetState(p.ID, index.Damaged, 0)
	b.log.Error("packet cannot be read: it is set aside until the next start",
		"queue", q.entry.Name(), "id", idOf(p.Identity), "error", why)
	b.changed(q)
}

// record is fetch for one packet.
func (b *Broker) record(q *queue, p index.Packet) ([]byte, error) {
	b.one[0] = p
	records, err := b.fetch(q, b.one[:], nil)
	return records[0], err
}

// takeable leaves in b.scratch what s selects, without taking it, and returns the records. What
// cannot be read is set aside, and others are selected.
func (b *Broker) takeable(q *queue, s Selection, selection index.Selection) (records [][]byte) {
	for {
		b.selectPackets(q, s, selection)
		records, err := b.fetch(q, b.scratch, &selection)
		if err == nil {
			return records
		}
	}
}

// appendRecords appends records to those of the reply that is being made.
func (t *batch) appendRecords(records ...[]byte) { t.records = append(t.records, records...) }
