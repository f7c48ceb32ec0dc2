package broker

import (
	"fmt"
	"slices"

	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// A record is read when a call needs it, before the call changes anything: from the open batch, the
// cache, the batch that is on its way to the disk, or the disk.

// known returns a packet's record if it need not be read from the disk, nil otherwise. It is valid
// until the cache changes.
func (m *Machine) known(id content.PacketID, ref uint32) []byte {
	if op, ok := m.open.puts.find(id); ok {
		return m.open.ops.Record(op)
	}
	if record := m.cache.Get(ref, id.Seq); record != nil || m.onWay == nil {
		return record
	}
	if op, ok := m.onWay.puts.find(id); ok {
		return m.onWay.ops.Record(op)
	}
	return nil
}

// fetch returns the records of packets of a queue, valid until the cache changes. The record is nil
// where it cannot be read, and the packet is set aside; err says why and wraps ErrUnreadable. If s
// is not nil, it has selected the packets. What it selects next is then read along for the cache:
// that costs a tenth of reading each by itself.
func (m *Machine) fetch(q *queue, packets []index.Packet, s *index.Selection) (records [][]byte, err error) {
	records, missing := slices.Grow(m.fetched[:0], len(packets)), m.missing[:0]
	for i := range packets {
		record := m.known(q.packet(packets[i]), packets[i].Ref)
		if record == nil {
			missing = append(missing, i)
		}
		records = append(records, record)
	}
	m.fetched, m.missing = records, missing
	if len(missing) > 0 {
		err = m.readMissing(q, packets, s)
	}
	return records, err
}

// readMissing reads what fetch misses. It is a function of its own because what a call of the store
// sets is on the heap.
func (m *Machine) readMissing(q *queue, packets []index.Packet, s *index.Selection) (err error) {
	records, missing, ids := m.fetched, m.missing, m.missed[:0]
	for _, i := range missing {
		ids = append(ids, q.packet(packets[i]))
	}
	for i, record := range records { // the cache changes below
		records[i] = m.copy(record)
	}
	var ahead []index.Packet
	// An Atomic that takes one packet of each of many queues would read 512 for each.
	if t := &m.tx; s != nil && (!t.atomic || t.ahead <= readFarAhead+2*t.changed) {
		ahead, ids = m.readAhead(q, s, len(packets), ids)
		t.ahead += len(ahead)
	}
	m.missed = ids
	m.store.Read(ids, func(i int, record []byte, damage error) {
		switch behind := i - len(missing); {
		case behind >= 0 && damage != nil: // a damaged table has thousands: each by itself would be a read
			m.setAside(q, ahead[behind], damage)
		case behind >= 0:
			p := ahead[behind]
			m.ix.SetRef(p.ID, p.Seq, m.cache.Add(p.Seq, record))
		case damage != nil:
			err = fmt.Errorf("%w: %w", ErrUnreadable, damage)
			m.setAside(q, packets[missing[i]], damage)
		default:
			records[missing[i]] = m.copy(record)
		}
	})
	return err
}

// readAhead returns the packets that s selects after the first behind ones, and appends their ids.
// It leaves out packets that are in memory.
func (m *Machine) readAhead(q *queue, s *index.Selection, behind int, ids []content.PacketID) ([]index.Packet, []content.PacketID) {
	all := *s
	all.Limits = false // it is claimed soon
	next, n, bytes := m.ix.Next(q.ix, all, behind, readAhead, m.ahead[:0]), 0, 0
	m.ahead = next
	for _, p := range next {
		if bytes += weight(p); bytes > readAheadBytes {
			break
		}
		if m.known(q.packet(p), p.Ref) == nil {
			next[n], ids = p, append(ids, q.packet(p))
			n++
		}
	}
	return next[:n], ids
}

// setAside takes a packet whose record cannot be read out of the order, until the next start: a
// copy of the folder, or the device, may be sound then.
func (m *Machine) setAside(q *queue, p index.Packet, why error) {
	if p.State != index.Ready {
		return
	}
	m.damaged++
	m.ix.SetState(p.ID, index.Damaged, 0)
	m.tail(q, p, EventDamaged)
	m.log.Error("packet cannot be read: it is set aside until the next start",
		"queue", q.entry.Name(), "id", idOf(p.Identity), "error", why)
	m.changed(q)
}

// fetchToMove is fetch for packets that get another place one after the other: the records are
// valid until the next call.
func (m *Machine) fetchToMove(q *queue, packets []index.Packet) (records [][]byte, err error) {
	records, err = m.fetch(q, packets, nil)
	if len(m.missing) == 0 { // else fetch has copied them
		for i, record := range records {
			records[i] = m.copy(record)
		}
	}
	return records, err
}

// record is fetch for one packet.
func (m *Machine) record(q *queue, p index.Packet) ([]byte, error) {
	m.one[0] = p
	records, err := m.fetch(q, m.one[:], nil)
	return records[0], err
}

// copy returns a copy of what is read, valid until the next call; nil of nil.
func (m *Machine) copy(read []byte) []byte {
	if read == nil {
		return nil
	}
	if cap(m.copied)-len(m.copied) < len(read) { // what was copied before stays where it is
		m.copied = make([]byte, 0, max(len(read), min(2*cap(m.copied), keepCopied), 4096))
	}
	from := len(m.copied)
	m.copied = append(m.copied, read...)
	return m.copied[from:len(m.copied):len(m.copied)]
}

// weight returns about how many bytes a packet's record has.
func weight(p index.Packet) int { return int(p.Size) + int(p.TagBytes) }

// fitting returns how many of the first packets fit into most bytes; one at least.
func fitting(packets []index.Packet, most int, size func(p index.Packet) int) int {
	bytes := 0
	for i, p := range packets {
		if bytes += size(p); bytes > most && i > 0 {
			return i
		}
	}
	return len(packets)
}

// weightOf returns the weight of packets together.
func weightOf(packets []index.Packet) (bytes int) {
	for _, p := range packets {
		bytes += weight(p)
	}
	return bytes
}

// deletePacket removes a packet that has left the index, or its place there, from the store, with
// its delivery state.
func (m *Machine) deletePacket(q *queue, p index.Packet) {
	m.leaveConsumer(p)
	if p.HasUnique {
		m.endUnique(q, p.Identity)
	}
	if op, ok := m.open.puts.find(q.packet(p)); ok {
		m.open.ops.Cancel(op)
		m.deleteDelivery(p)
		return
	}
	m.open.ops.Delete(q.packet(p), removed(p))
}

// deleteDelivery removes the records of a packet's delivery state from the store.
func (m *Machine) deleteDelivery(p index.Packet) {
	if p.Stored != 0 {
		m.open.ops.DeleteDelivery(p.Identity, content.Stored(p.Stored))
	}
}

// removed returns what the storage has to know about a packet that goes with its delivery state.
func removed(p index.Packet) content.Removed {
	return content.Removed{
		Size: int(p.Size), Expires: p.Flags&content.FlagExpires != 0, Large: p.Flags&content.FlagLarge != 0,
		Stored: content.Stored(p.Stored), Identity: p.Identity,
	}
}
