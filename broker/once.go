package broker

import (
	"cmp"

	"github.com/holdfast-queue/holdfast/index"
)

// A push of one packet may be unique. Then it finds the packet that has its id, which it may
// replace: that keeps its place, and gets the payload of the push.

// Push adds a packet at the newest end of its priority, and returns its id. A unique push adds none
// where a packet has its id already: it returns that one's, and may replace what that has. The
// packet is on disk when the reply of any later call is handed out, whoever made that. The
// request's bytes are copied.
func (tx *Tx) Push(r PushRequest) (ID, error) {
	id, _, err := tx.PushTold(r)
	return id, err
}

// PushTold is Push that tells what became of it, if r.Tell says so: "new", "replaced", or in which
// state the packet is that has the id; "gone" if its window lasts, and it is not in the queue.
func (tx *Tx) PushTold(r PushRequest) (id ID, told string, err error) {
	if err := tx.CheckSize(r); err != nil {
		return 0, "", err
	}
	if len(r.Unique) > 0 {
		if err := tx.begin(); err != nil {
			return 0, "", err
		}
		if id, told, met, err := tx.meet(&r); met || err != nil {
			return id, told, err
		}
	}
	id = idOf(tx.m.marks.NextSeq)
	q, err := tx.push(&r, [][]byte{r.Payload})
	if err != nil {
		return 0, "", err
	}
	if r.Window > 0 {
		tx.beginWindow(q, r.Unique, tx.now+r.Window, id)
	}
	return id, "new", nil
}

// meet makes a unique push where a packet has its id; met is false if none has it.
func (tx *Tx) meet(r *PushRequest) (id ID, told string, met bool, err error) {
	m := tx.m
	q, err := m.findQueue(r.Queue)
	if q == nil || err != nil {
		return 0, "", false, err
	}
	identity, met := m.holder(q, r.Unique)
	if !met || !r.Replace && !r.Tell {
		return idOf(identity), "", met, nil
	}
	p, there := m.find(q, idOf(identity))
	told = p.State.String()
	switch {
	case !there:
		told = "gone"
	case r.Replace && (p.State == index.Ready || p.State == index.Delayed):
		told, err = "replaced", tx.replaceTwin(q, p, r)
	}
	return idOf(identity), told, true, err
}

// replaceTwin gives a packet that waits what a push brings. In the store that is one operation.
func (tx *Tx) replaceTwin(q *queue, p index.Packet, r *PushRequest) error {
	m, sized := tx.m, *r
	sized.Key, _ = m.ix.Key(p.ID, nil)
	if err := cmp.Or(tx.CheckSize(sized), tx.CanStore(), tx.mayMove(p)); err != nil {
		return err
	}
	record, err := m.record(q, p)
	if err != nil {
		return err
	}
	old := m.finding([][]byte{m.copy(record)}).Packets[0]
	l := sized.load([][]byte{r.Payload})
	if l.instead = &p; l.priority != 0 {
		l.priority = p.Priority
	}
	if _, err := tx.openToPush(r.Queue, l, r.Tags); err != nil {
		return err
	}
	to := tx.packet(r)
	to.Key, to.Payload, to.EnqueuedAt, to.Attempts, to.Identity = old.Key, r.Payload, old.EnqueuedAt, old.Attempts, old.Identity
	if to.Unique, to.UntilClaim = m.unique(p), p.UntilClaim; max(r.Delay, r.At) < 0 {
		to.NotBefore = p.Until
	}
	d, here := m.ix.Delivery(p.ID), p
	here.Stored = 0 // it stays
	e := m.putInPlace(q, here, &to)
	e.Until, e.Delivery = to.NotBefore, d
	p, _ = m.ix.Get(m.ix.Replace(p.ID, e, tx.now))
	if d.Stored != 0 {
		m.setDelivery(p, d, p.State, p.Until)
	}
	m.changed(q)
	return nil
}
