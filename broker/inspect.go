package broker

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/holdfast-queue/holdfast/index"
)

// Place is where a List goes on.
type Place = index.Place

// Peek replies with what the next claims would take, in that order, with details: at most n, which
// is at most MaxCount. Nothing is taken.
func (tx *Tx) Peek(c *Conn, name []byte, n int, tag Tag) error {
	q, err := tx.look(name)
	if err != nil {
		return err
	}
	s := Selection{End: Oldest, Count: n, WithDetails: true}
	tx.b.scratch = tx.b.scratch[:0]
	if q != nil {
		tx.b.takeable(q, s, tx.b.selection(q, s))
	}
	return tx.show(c, q, tag)
}

// look makes sure that the broker accepts calls, and returns the queue with a name, nil if there is
// none.
func (tx *Tx) look(name []byte) (*queue, error) {
	if err := tx.begin(); err != nil {
		return nil, err
	}
	return tx.b.findQueue(name)
}

// show replies with the packets of q in b.scratch and their details.
func (tx *Tx) show(c *Conn, q *queue, tag Tag) error {
	if err := tx.useReply(tx.b.scratchBytes(q, true)); err != nil {
		return err
	}
	tx.b.showScratch(c, q, tag)
	return nil
}

// showScratch is show without its check. Of a packet that cannot be read there are only the
// details: it is damaged, or the store has dropped it because it expired while it was claimed.
func (b *Broker) showScratch(c *Conn, q *queue, tag Tag) {
	first, bytes := len(b.open.records), b.scratchBytes(q, true)
	if len(b.scratch) > 0 {
		records, _ := b.fetch(q, b.scratch, nil)
		b.open.appendRecords(records...)
	}
	for _, p := range b.scratch {
		p, _ = b.ix.Get(p.ID) // it may be damaged
		b.detail(q, p)
	}
	b.queueReply(c, first, replyShown, tag, bytes)
}

// Page is packets of a queue in one state, in the order of their priority and age; delayed ones
// soonest first.
type Page struct {
	State  State
	After  Place   // behind this one
	Count  int     // at most so many, and MaxCount
	Filter *Filter // only those that it takes; nil: all
}

// PageEnd is how many packets a page has, the place of the last one that was looked at, and whether
// there may be more behind that. With a filter at most MaxLook are looked at.
type PageEnd struct {
	Packets int
	Last    Place
	More    bool
}

// List replies with a page, with details. Inside Atomic a ListEnd of the same comes first.
func (tx *Tx) List(c *Conn, name []byte, p Page, tag Tag) error {
	q, _, err := tx.list(name, p)
	if err != nil {
		return err
	}
	tx.b.showScratch(c, q, tag)
	return nil
}

// ListEnd says where a List of the same arguments ends, so that a session can begin its reply. It
// takes what that List replies with from what one Atomic may.
func (tx *Tx) ListEnd(name []byte, p Page) (end PageEnd, err error) {
	b := tx.b
	q, last, err := tx.list(name, p)
	if err == nil {
		err = tx.useReply(b.scratchBytes(q, true))
	}
	if q == nil || err != nil {
		return end, err
	}
	end = PageEnd{Packets: len(b.scratch), Last: last}
	for range b.ix.Each(q.ix, p.State, last, p.Filter.in(q)) {
		end.More = true
		break
	}
	return end, nil
}

// list leaves in b.scratch what a List replies with, and returns the place where that ends.
func (tx *Tx) list(name []byte, p Page) (q *queue, last Place, err error) {
	b := tx.b
	b.scratch = b.scratch[:0]
	q, err = tx.look(name)
	if q == nil || err != nil {
		return nil, last, err
	}
	if err := b.checkFilter(q, p.Filter); err != nil {
		return nil, last, err
	}
	looked, count := 0, min(p.Count, MaxCount)
	for k, takes := range b.ix.Each(q.ix, p.State, p.After, p.Filter.in(q)) {
		if len(b.scratch) == count || looked == MaxLook {
			break
		}
		if takes {
			b.scratch = append(b.scratch, k)
		}
		last = k.Place()
		looked++
	}
	found := len(b.scratch)
	if b.cutDetailed(q); len(b.scratch) < found {
		last = b.scratch[len(b.scratch)-1].Place()
	}
	return q, last, nil
}

// Show replies with one packet and its details, or without any if the queue has none with that id.
// ErrUnknownQueue.
func (tx *Tx) Show(c *Conn, name []byte, id ID, tag Tag) (ok bool, err error) {
	if err := tx.begin(); err != nil {
		return false, err
	}
	b := tx.b
	q, err := b.knownQueue(name)
	if err != nil {
		return false, err
	}
	p, ok := b.find(q, id)
	if b.scratch = b.scratch[:0]; ok {
		b.scratch = append(b.scratch, p)
	}
	if err := tx.show(c, q, tag); err != nil || !ok {
		return false, err
	}
	d := &b.open.details[len(b.open.details)-1]
	d.Behind, d.Paused = b.ix.Before(p.ID), q.isPausedOut()
	return true, nil
}

// find returns the packet of a queue with an id.
func (b *Broker) find(q *queue, id ID) (index.Packet, bool) {
	p, ok := b.ix.Find(id.identity())
	return p, ok && p.Queue == q.ix
}

// Band is how many packets that are ready have a priority from one to another.
type Band struct {
	From, To uint32
	Packets  int
}

// QueueStats are the figures of a queue.
type QueueStats struct {
	Ready, Hidden, Delayed, Claimed, Dead, Done, Damaged int // packets by state; Hidden are ready ones of priority 0
	Bytes                                                int64
	Bands                                                []Band
	// The only client that pushes, and the only one that takes; nil if the queue gives no such
	// role.
	Producer, Consumer *string
	Counters
}

// bandStarts are the first priorities of the bands.
var bandStarts = [...]uint32{1, 10, 100, 1000, 10_000}

// QueueStats returns the figures of a queue; ok is false if nothing is called so.
func (tx *Tx) QueueStats(name []byte) (s QueueStats, ok bool, err error) {
	q, err := tx.look(name)
	b := tx.b
	if err != nil || q == nil || !b.exists(q) {
		return s, false, err
	}
	n := b.ix.Counts(q.ix)
	s = QueueStats{
		Ready: n.Ready, Hidden: n.Unselectable, Delayed: n.Delayed, Claimed: n.Claimed, Dead: n.Dead, Done: n.Done, Damaged: n.Damaged,
		Bytes: n.Bytes, Counters: q.counters, Producer: q.holder(producerRole), Consumer: q.holder(consumerRole),
	}
	for i, from := range bandStarts {
		to := uint32(math.MaxUint32)
		if i+1 < len(bandStarts) {
			to = bandStarts[i+1] - 1
		}
		s.Bands = append(s.Bands, Band{from, to, b.ix.CountBetween(q.ix, from, to)})
	}
	return s, true, nil
}

// oldestPriorities is how many priorities Oldest looks at, the best ones.
const oldestPriorities = 1024

// Oldest replies with the ready packet that was pushed first, of the best 1,024 priorities that the
// queue has, or without any.
func (tx *Tx) Oldest(c *Conn, name []byte, tag Tag) error {
	q, err := tx.look(name)
	if err != nil {
		return err
	}
	b := tx.b
	b.scratch = b.scratch[:0]
	if q == nil {
		return tx.show(c, q, tag)
	}
	var oldest index.Packet
	after := Place{Seq: math.MaxUint64} // behind priority 0
	for range oldestPriorities {
		b.scratch = b.ix.List(q.ix, index.Ready, after, 1, b.scratch[:0])
		if len(b.scratch) == 0 {
			break
		}
		p := b.scratch[0]
		if oldest.ID == 0 || p.Seq < oldest.Seq {
			oldest = p
		}
		after = Place{Priority: p.Priority, Seq: math.MaxUint64}
	}
	if b.scratch = b.scratch[:0]; oldest.ID != 0 {
		b.scratch = append(b.scratch, oldest)
	}
	return tx.show(c, q, tag)
}

// Unfinished is how many packets of a queue are ready, delayed or claimed.
func (tx *Tx) Unfinished(name []byte) (int, error) {
	q, err := tx.look(name)
	if q == nil || err != nil {
		return 0, err
	}
	n, _ := tx.b.ix.Counts(q.ix).Unfinished()
	return n, nil
}

// Consumer is a consumer of a queue.
type Consumer struct {
	Name    string
	Seen    int64 // when it last made a call for the queue, in Unix milliseconds
	Claimed int   // packets that it holds
	Since   int64 // when it claimed the oldest of them; 0 if it holds none
	IDs     []ID  // of what it holds, up to MaxConsumerIDs
}

// Consumers returns who claims from a queue: those that hold packets, and those that called in the
// last ConsumerTime, ordered by name. It looks at MaxConsumerClaims claims. ErrUnknownQueue.
func (tx *Tx) Consumers(name []byte) ([]Consumer, error) {
	if err := tx.begin(); err != nil {
		return nil, err
	}
	b := tx.b
	q, err := b.knownQueue(name)
	if err != nil {
		return nil, err
	}
	b.pruneConsumers(q)
	found := make(map[string]*Consumer)
	for _, k := range q.consumers {
		if tx.now-k.seen < ConsumerTime {
			found[k.name] = &Consumer{Name: k.name, Seen: k.seen}
		}
	}
	b.scratch = b.ix.List(q.ix, index.Claimed, Place{}, MaxConsumerClaims, b.scratch[:0])
	for _, p := range b.scratch {
		if p.Consumer != 0 {
			b.addClaim(found, p)
		}
	}
	list := make([]Consumer, 0, len(found))
	for _, w := range slices.SortedFunc(maps.Values(found), func(a, b *Consumer) int { return cmp.Compare(a.Name, b.Name) }) {
		list = append(list, *w)
	}
	return list, nil
}

// addClaim notes that the consumer of a claimed packet holds it.
func (b *Broker) addClaim(found map[string]*Consumer, p index.Packet) {
	k := b.consumers.all[p.Consumer-1]
	w := found[k.name]
	if w == nil {
		w = &Consumer{Name: k.name, Seen: k.seen}
		found[k.name] = w
	}
	if since := b.ix.Delivery(p.ID).LastClaim; w.Claimed == 0 || since < w.Since {
		w.Since = since
	}
	if w.Claimed++; len(w.IDs) < MaxConsumerIDs {
		w.IDs = append(w.IDs, idOf(p.Identity))
	}
}
