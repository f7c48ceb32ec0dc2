package broker

import "container/list"

// A push that waits stands in the line of its queue. Its turn comes when it is the first there and
// the queue takes it: then the whole push is made. Others that push meanwhile are refused or wait
// behind it, also if there were room for them. Those who wait to take come first: who pushes and
// who takes never wait for each other.

// PushWait is a push that waits. Its bytes stay as they are as long as it waits.
type PushWait struct {
	Push     PushRequest
	Payloads [][]byte
	Until    int64 // as of TakeWait
}

// WaitPush makes c wait, once, until a push has its turn. Its waiter is called Ready then, and
// makes the push. Detach ends the wait. c must not be a subscriber.
func (tx *Tx) WaitPush(c *Conn, w Waiter, p PushWait) error {
	if err := tx.begin(); err != nil {
		return err
	}
	if c.waiter != nil || c.queues > 0 {
		return ErrWaiting
	}
	q, err := tx.b.makeQueue(p.Push.Queue)
	if err == nil {
		err = tx.mayUse(q, producerRole)
	}
	if err != nil {
		return err
	}
	tx.useRole(q, producerRole)
	c.push = &p
	q.lineUp(c)
	tx.b.wait(c, w, p.Until)
	return nil
}

func (q *queue) lineUp(c *Conn) {
	if q.line == nil {
		q.line = list.New()
	}
	c.pushesTo, c.inLine = q, q.line.PushBack(c)
}

// leaveLine takes c out of the line in which it stands, if it does.
func (b *Broker) leaveLine(c *Conn) {
	q := c.pushesTo
	if q == nil {
		return
	}
	q.line.Remove(c.inLine)
	c.pushesTo, c.inLine, c.push = nil, nil, nil
	if q.line.Len() == 0 {
		q.line = nil
		b.listIdle(q)
		return
	}
	b.deferQueue(q) // the next one may fit
}

// moveLine moves all who stand in the line of one queue to the end of that of another.
func (b *Broker) moveLine(from, to *queue) {
	if from.line == nil {
		return
	}
	for e := from.line.Front(); e != nil; e = e.Next() {
		to.lineUp(e.Value.(*Conn))
	}
	from.line = nil
	b.deferQueue(to)
}

// hasTurn says that a queue takes the push that is first in its line, or will never take it, or has
// a packet with its id by now.
func (b *Broker) hasTurn(q *queue, p *PushWait) bool {
	if _, ok, err := b.holderOf(&p.Push); ok || err != nil {
		return true
	}
	s, l := settingsOf(q), p.Push.load(p.Payloads)
	return s.Closed || !s.PauseIn && (b.fits(q, l) || over(s, l.packets, l.bytes))
}

// admitLine lets those push whose turn has come. What they push goes to those who wait for it, and
// so may make room for the next.
func (b *Broker) admitLine(q *queue) {
	defer func(db uint8) { b.tx.db = db }(b.tx.db)
	for q.line != nil {
		c := q.line.Front().Value.(*Conn)
		if b.tx.db = c.db; !b.hasTurn(q, c.push) {
			return
		}
		if b.refusesDelivery() || b.open.full(b.limits) {
			b.deferQueue(q)
			return
		}
		b.tx.turn = true
		b.ready(q, c)
		b.tx.turn = false
		b.deliverQueue(q)
	}
}
