package broker

import (
	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/storage"
)

// A claim lends a packet to a consumer. The packet stays in its queue and in the store; its
// delivery state says who has it, until when, and for which token. Every claim gets a new token, so
// whoever comes late with an old one changes nothing.

// ClaimRequest says which packets of a queue a consumer wants to claim.
type ClaimRequest struct {
	Selection        // Count is at most MaxCount; a group is cut there
	Lease     int64  // in milliseconds; 0 is that of the queue's settings
	Consumer  []byte // its name, at most MaxConsumer bytes; empty: none
}

// Claim lends packets to a consumer: they are nobody else's until their leases end. The reply goes
// to c's receiver, with details. It has no packets if none can be selected or the queue is unknown;
// with MustFind there is ErrNothing instead.
func (tx *Tx) Claim(c *Conn, name []byte, r ClaimRequest, tag Tag) error {
	if err := tx.beginTake(); err != nil {
		return err
	}
	b := tx.b
	q, err := tx.openForTake(name)
	if err == nil {
		err = b.checkFilter(q, r.Filter)
	}
	if err == nil && q == nil && r.MustFind {
		err = ErrNothing
	}
	if err != nil {
		return err
	}
	first, bytes := len(b.open.records), 0
	if q != nil {
		selection := b.selection(q, r.Selection)
		selection.Limit.Packets = MaxCount
		r.WithDetails = true
		records := b.takeable(q, r.Selection, selection)
		if len(records) == 0 && r.MustFind {
			return ErrNothing
		}
		bytes = b.scratchBytes(q, true)
		if err := tx.useReply(bytes); err != nil {
			return err
		}
		b.open.appendRecords(records...)
		tx.claim(q, r)
	}
	b.queueReply(c, first, replyDetailed, tag, bytes)
	return nil
}

// claim claims the packets in b.scratch and puts their details into the reply.
func (tx *Tx) claim(q *queue, r ClaimRequest) {
	b, w := tx.b, (*consumer)(nil)
	if len(r.Consumer) > 0 {
		w = b.enter(q, r.Consumer)
	}
	lease := r.Lease
	if lease == 0 {
		lease = settingsOf(q).Lease
	}
	for _, p := range b.scratch {
		d := b.ix.Delivery(p.ID)
		b.setConsumer(&d, w)
		if d.FirstClaim == 0 {
			d.FirstClaim = tx.now
		}
		d.LastClaim, d.Token = tx.now, b.nextToken()
		if d.Attempts < ^uint16(0) {
			d.Attempts++
		}
		b.putNote(p, &d, storage.NoteProgress, nil)
		b.setDelivery(p, d, Claimed, tx.steady+lease)
		p, _ = b.ix.Get(p.ID)
		b.detail(q, p)
	}
	if len(b.scratch) > 0 {
		tx.useRole(q, consumerRole)
		b.open.claims, b.identify = true, true
		b.changed(q)
	} else if w != nil {
		b.consumers.release(w)
	}
}

// nextToken returns the token of a new claim. The first sequence of a store is none: clients see it
// as 0, which stands for no token.
func (b *Broker) nextToken() uint64 {
	if token := b.nextSeq(Newest); token != middle {
		return token
	}
	return b.nextSeq(Newest)
}

// setConsumer makes a consumer, which may be none, the last that claimed a packet.
func (b *Broker) setConsumer(d *index.Delivery, w *consumer) {
	if d.Consumer != 0 {
		old := b.consumers.all[d.Consumer-1]
		if old == w {
			return
		}
		old.packets--
		d.Consumer = 0
		b.consumers.release(old)
	}
	if w != nil {
		w.packets++
		d.Consumer = w.number
	}
}

// setDelivery gives a packet a delivery state, in the index and in the store. until is the lease
// end on the steady clock, or the not-before or the death on the wall clock; 0 is none.
func (b *Broker) setDelivery(p index.Packet, d index.Delivery, s State, until int64) {
	stored := storage.Stored(d.Stored)
	d.Stored |= uint8(storage.StoredDelivery)
	b.ix.SetDelivery(p.ID, d)
	b.ix.SetState(p.ID, s, until)
	if s == Claimed {
		until = b.wall(until)
	}
	b.open.ops.PutDelivery(&storage.Delivery{
		Identity: p.Identity, State: storage.State(s), Until: until, Attempts: uint32(d.Attempts), Token: d.Token,
		FirstClaim: d.FirstClaim, LastClaim: d.LastClaim, Consumer: b.consumers.name(d.Consumer),
		Origin: d.Origin, Expiry: p.Expiry,
	}, stored)
}

// putNote writes a text of a packet's delivery state, or deletes it if it is empty.
func (b *Broker) putNote(p index.Packet, d *index.Delivery, kind storage.NoteKind, text []byte) {
	bit := storage.StoredReason
	if kind == storage.NoteProgress {
		bit = storage.StoredProgress
	}
	if stored := storage.Stored(d.Stored); len(text) > 0 || stored&bit != 0 {
		b.open.ops.PutNote(storage.NoteID{Identity: p.Identity, Kind: kind}, text, stored)
	}
	if d.Stored &^= uint8(bit); len(text) > 0 {
		d.Stored |= uint8(bit)
	}
}

// Receipt names one claim.
type Receipt struct {
	ID    ID
	Token int64
}

// claimed returns the packet of a claim; ok is false if the claim has ended or never was.
func (b *Broker) claimed(q *queue, r Receipt) (p index.Packet, d index.Delivery, ok bool) {
	p, ok = b.ix.Find(r.ID.identity())
	if !ok || p.Queue != q.ix || p.State != index.Claimed {
		return p, d, false
	}
	d = b.ix.Delivery(p.ID)
	if d.Token-middle != uint64(r.Token) {
		return p, d, false
	}
	b.seen(d)
	return p, d, true
}

// useClaim returns the queue and the packet of a claim.
func (tx *Tx) useClaim(name []byte, r Receipt) (q *queue, p index.Packet, d index.Delivery, err error) {
	if err := tx.begin(); err != nil {
		return nil, p, d, err
	}
	b := tx.b
	if q, err = b.knownQueue(name); err != nil {
		return nil, p, d, err
	}
	if b.spaceLevel(tx.now) >= storage.Stop {
		return nil, p, d, ErrStopped
	}
	p, d, ok := b.claimed(q, r)
	if !ok {
		return nil, p, d, ErrStale
	}
	return q, p, d, nil
}

// knownQueue is findQueue, with ErrUnknownQueue if nothing is called so.
func (b *Broker) knownQueue(name []byte) (*queue, error) {
	q, err := b.findQueue(name)
	if err == nil && (q == nil || !b.exists(q)) {
		return nil, ErrUnknownQueue
	}
	return q, err
}

// Ack ends claims: their packets are done. It returns how many of the receipts were good. If none
// was, it returns ErrStale, and ErrUnknownQueue if there is no such queue.
func (tx *Tx) Ack(name []byte, receipts []Receipt) (good int, err error) {
	b := tx.b
	if err := tx.beginTake(); err != nil {
		return 0, err
	}
	q, err := b.knownQueue(name)
	if err != nil {
		return 0, err
	}
	bytes := 0
	for _, r := range receipts {
		if p, _, ok := b.claimed(q, r); ok && settingsOf(q).Retain > 0 {
			bytes += weight(p)
		}
	}
	if err := tx.mayBring(len(receipts), bytes); err != nil {
		return 0, err
	}
	for _, r := range receipts {
		if p, d, ok := b.claimed(q, r); ok {
			b.finish(q, p, d)
			good++
		}
	}
	if good == 0 {
		return 0, ErrStale
	}
	b.count(q, &q.counters.Acked, good)
	b.changed(q)
	return good, nil
}

// finish ends a packet that was acknowledged. A queue that retains such keeps it for a while.
func (b *Broker) finish(q *queue, p index.Packet, d index.Delivery) {
	if retain := settingsOf(q).Retain; retain > 0 {
		record, err := b.record(q, p)
		if err == nil {
			moved := b.moveTo(q, p, record, q, q.packet(p), b.tx.now+retain)
			b.setDelivery(moved, d, Done, 0)
			return
		}
		if !b.expired(p) { // else the store may have dropped its record
			b.log.Error("packet that was acknowledged is not retained", "queue", q.entry.Name(), "id", idOf(p.Identity), "error", err)
		}
	}
	b.ix.Remove(p.ID)
	b.deletePacket(q, p)
}

// Extend lets the lease of a claim end so many milliseconds from now, and returns that moment.
// ErrStale, ErrUnknownQueue.
func (tx *Tx) Extend(name []byte, r Receipt, lease int64) (end int64, err error) {
	_, p, d, err := tx.useClaim(name, r)
	if err != nil {
		return 0, err
	}
	tx.b.setDelivery(p, d, Claimed, tx.steady+lease)
	return tx.now + lease, nil
}

// Progress notes how far a consumer has come, in percent, with a text of at most MaxReason bytes.
// ErrStale, ErrUnknownQueue.
func (tx *Tx) Progress(name []byte, r Receipt, percent int, text []byte) error {
	_, p, d, err := tx.useClaim(name, r)
	if err != nil {
		return err
	}
	b := tx.b
	b.patched = append(append(b.patched[:0], byte(percent)), text...)
	b.putNote(p, &d, storage.NoteProgress, b.patched)
	b.ix.SetDelivery(p.ID, d)
	return nil
}
