package broker

import (
	"cmp"
	"math"

	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// LoadRequest is a packet as another store had it, or this one at another time. Times are in Unix
// milliseconds, 0 is none.
type LoadRequest struct {
	Queue    []byte
	Priority uint32
	Packet         // but for Attempts, Hash and Identity
	Window   int64 // the end of the window of Unique; 0: the packet has the id as long as it lasts

	// What was tried with it. A claim does not go along: its packet is Ready.
	State                 State // Ready, Delayed, Dead or Done, which needs an Expiry
	Until                 int64 // when a delayed packet is ready, or a dead one died
	Attempts              int64
	FirstClaim, LastClaim int64
	Consumer              []byte // of the last claim
	Origin                []byte // the name of the queue where it died and was moved from
	Reason, Progress      []byte // as of Detail
}

// tried says that something was tried with the packet.
func (r *LoadRequest) tried() bool {
	return r.State > Delayed || max(r.Until, r.Attempts, r.FirstClaim, r.LastClaim) > 0 || len(r.Consumer)+len(r.Origin)+len(r.Reason)+len(r.Progress) > 0
}

// Load adds a packet with all that is known of it at the newest end of its priority, and returns
// its id. No setting of the queue keeps it out: it was admitted once. ok is false if it has
// expired; its window begins all the same. Like a packet that moves, it may have a Unique that
// another has: the younger one holds that then.
func (tx *Tx) Load(r *LoadRequest) (id ID, ok bool, err error) {
	m := tx.m
	size := tx.CheckSize(PushRequest{Queue: r.Queue, Key: r.Key, Payload: r.Payload, Tags: r.Tags, Producer: r.Producer, Unique: r.Unique, Lease: r.Lease, Meta: r.Meta})
	if err = cmp.Or(size, tx.CanStore(), tx.begin()); err != nil {
		return 0, false, err
	}
	q, err := m.makeQueue(r.Queue)
	if err == nil {
		err = checkLanes(m.ix.TagSets(q.ix, m.tagBytes(r.Tags)))
	}
	if err == nil && string(settingsOf(q).ShareBy) != "key" { // then it may always be of the empty share
		comes := load{key: r.Key}
		comes.addWidth(content.IsWide(len(r.Key), len(r.Payload)))
		err = m.checkShares(q, &comes, r.Tags)
	}
	if err == nil && !m.ix.HasRoom(1) {
		err = ErrTooManyPackets
	}
	if err != nil {
		return 0, false, err
	}
	m.define(q)
	p := r.Packet
	if r.Window > 0 {
		p.Unique = nil
	}
	if ok = !p.Expired(tx.now); ok {
		id = idOf(m.marks.NextSeq)
		m.insertIn(q, r, &p)
	}
	if r.Window > tx.now {
		if !ok {
			id = idOf(m.nextSeq(Newest)) // the packet that had it is gone
		}
		tx.beginWindow(q, r.Unique, r.Window, id)
	}
	return id, ok, nil
}

// insertIn is insert for a packet with a state.
func (m *Machine) insertIn(q *queue, r *LoadRequest, p *Packet) {
	state, until := r.State, r.Until
	if state <= Delayed {
		if state, until = Ready, max(r.Until, p.NotBefore); until > m.tx.now {
			state = Delayed
		} else {
			until = 0
		}
	}
	ix := m.insert(q, r.Priority, Newest, p, state, until)
	if !r.tried() {
		return
	}
	d := index.Delivery{Attempts: uint16(min(r.Attempts, math.MaxUint16)), FirstClaim: r.FirstClaim, LastClaim: r.LastClaim}
	if len(r.Origin) > 0 {
		if origin, err := m.makeQueue(r.Origin); err == nil { // else it is a string, and redriving needs another
			m.define(origin)
			d.Origin = origin.id
		}
	}
	if len(r.Consumer) > 0 {
		m.setConsumer(&d, m.enterSince(q, r.Consumer, min(r.LastClaim, m.tx.now)))
	}
	packet, _ := m.ix.Get(ix)
	m.putNote(packet, &d, content.NoteReason, r.Reason)
	m.putNote(packet, &d, content.NoteProgress, r.Progress)
	m.setDelivery(packet, d, state, until)
}

// enterSince is enter for a consumer that was seen elsewhere.
func (m *Machine) enterSince(q *queue, name []byte, seen int64) *consumer {
	if k := q.consumers[string(name)]; k != nil {
		seen = max(seen, k.seen)
	}
	k := m.enter(q, name)
	k.seen = seen
	return k
}
