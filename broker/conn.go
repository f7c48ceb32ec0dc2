package broker

import (
	"container/list"
	"slices"
	"sync/atomic"

	"github.com/holdfast-queue/holdfast/index"
)

// Receiver is where a connection's replies and deliveries go: one for each connection. The
// completer goroutine calls it, in the order of the calls that caused them, and only with what is
// on disk. No method may block for long or call the broker. For a slow peer the receiver buffers;
// the broker asks for UnwrittenBytes and pauses deliveries to keep that bounded.
type Receiver interface {
	// Packets hands out the reply of one call that asked for packets, with the call's tag, or one
	// delivery, with tag 0. No packets means that there was nothing to select. details are those of
	// the packets if the call asked for them, and nil otherwise. All is valid during the call only.
	Packets(tag Tag, p []Packet, details []Detail)
	// Reply hands out the bytes of one Tx.Reply. They are valid during the call only.
	Reply(data []byte)
	// Finish says that nothing follows: the connection was detached.
	Finish()
	// Flush follows a run of the calls above: what they appended should go out now.
	Flush()
	// WaitEnded says that the consumer no longer waits (Tx.Wait). Unlike the others it is called
	// with the broker's lock held, before the waiter replies, so that the reader is on its way.
	WaitEnded()
	// UnwrittenBytes is how many bytes are appended and have not left yet. Any goroutine may ask.
	UnwrittenBytes() int64
	// Address is where the client is. It is asked of a client without a name that has a role.
	Address() string
}

// Conn is one receiver as the broker sees it. Broker.mu guards its fields unless they say
// otherwise.
//
// What is on its way to the client lies first in the broker: queuedBytes, until the batch is on
// disk and the completer hands it over. Then it lies in the receiver: UnwrittenBytes. Both together
// are outstanding.
type Conn struct {
	to           Receiver
	delivery     Selection          // what its subscriptions take
	sub          index.SubscriberID // 0 until it first subscribes or is ready
	class        index.Class        // see class.go
	queues       int                // subscriptions
	detached     bool
	roleHolder   *roleHolder // nil: it has no name and no role, see role.go
	db           uint8       // that its names are in
	watched      []watched   // see watch.go
	watchedBytes int         // of the names
	watchesIn    uint16      // bit by database: a watched name stood for something when the watch began
	watchBroken  bool        // one of them was changed
	deferred     bool        // listed in Broker.deferredConns

	// While it waits (wait.go):
	waiter   Waiter
	until    int64  // deadline in Unix milliseconds, 0 for none
	place    int    // in Broker.waits, if it has a deadline
	pushesTo *queue // of a push: in whose line it stands, and where
	inLine   *list.Element
	push     *PushWait
	waiting  atomic.Bool

	paused        atomic.Bool  // nothing is delivered until Resume; set with Broker.mu held
	queuedBytes   atomic.Int64 // of the replies and deliveries that the receiver has not been given
	queuedReplies atomic.Int32 // how many these are
	dirty         bool         // completer only: it has to be flushed
}

// Attach makes a connection of to, whose subscriptions take what the selection says. Tx.Detach ends
// it.
func (b *Broker) Attach(to Receiver, delivery Selection) *Conn {
	b.stats.conns.Add(1)
	return &Conn{to: to, delivery: delivery, class: plainClass(delivery.Fits16)}
}

// Conns is how many are attached: the connections of all protocols.
func (tx *Tx) Conns() int64 { return tx.b.stats.conns.Load() }

// outstandingBytes is how much the client has not been sent yet: in the broker and in the receiver.
func (c *Conn) outstandingBytes() int64 { return c.QueuedBytes() + c.to.UnwrittenBytes() }

// QueuedBytes is the size of the replies and deliveries that the receiver has not been given yet.
// Any goroutine may ask.
func (c *Conn) QueuedBytes() int64 { return c.queuedBytes.Load() }

// Idle says that the receiver has been given every reply and delivery. Any goroutine may ask. It
// stays true while the connection has no subscription and no call is made for it.
func (c *Conn) Idle() bool { return c.queuedReplies.Load() == 0 }

// Paused says that nothing is delivered because too much is outstanding. The receiver must call
// Resume as soon as CaughtUp is true. Any goroutine may ask.
func (c *Conn) Paused() bool { return c.paused.Load() }

// CaughtUp says that a paused connection has half of MaxOutstandingBytes outstanding or less: it is
// time for Resume. Any goroutine may ask.
func (c *Conn) CaughtUp() bool {
	return c.Paused() && c.outstandingBytes() <= MaxOutstandingBytes/2
}

func (b *Broker) conn(s index.SubscriberID) *Conn { return b.conns[s] }

// subscriber gives c a number in the dispatch.
func (b *Broker) subscriber(c *Conn) index.SubscriberID {
	if c.sub == 0 {
		c.sub = b.dispatch.Add(c.class)
		for int(c.sub) >= len(b.conns) {
			b.conns = append(b.conns, nil)
		}
		b.conns[c.sub] = c
	}
	return c.sub
}

// Subscribe makes c a subscriber of the queue, which need not exist yet. A second subscription is
// ignored (pinpriq document, section subscribe). Deliveries need Ready.
func (tx *Tx) Subscribe(c *Conn, name []byte) error {
	if err := tx.begin(); err != nil {
		return err
	}
	b := tx.b
	if c.queues >= MaxSubscriptions {
		if q := b.queueNamed(name); q != nil && slices.Contains(b.dispatch.Queues(c.sub, nil), q.ix) {
			return nil
		}
		return ErrTooManySubscriptions
	}
	q, err := b.makeQueue(name)
	if err != nil {
		return err
	}
	if err := tx.mayUse(q, consumerRole); err != nil {
		return err
	}
	tx.useRole(q, consumerRole)
	if b.dispatch.Subscribe(b.subscriber(c), q.ix) {
		c.queues++
		q.subscribers++
		b.fillConn(c)
	}
	return nil
}

// Unsubscribe ends c's subscription of the queue, if there is one. Readiness that is left stays
// with the connection.
func (tx *Tx) Unsubscribe(c *Conn, name []byte) error {
	if err := tx.begin(); err != nil {
		return err
	}
	b := tx.b
	q := b.queueNamed(name)
	if q == nil || c.sub == 0 || !b.dispatch.Unsubscribe(c.sub, q.ix) {
		return nil
	}
	c.queues--
	q.subscribers--
	b.listIdle(q)
	return nil
}

// Ready lets c have n more deliveries, each from any queue it subscribes to, now or later.
func (tx *Tx) Ready(c *Conn, n uint32) error {
	if err := tx.begin(); err != nil {
		return err
	}
	tx.b.dispatch.Credit(tx.b.subscriber(c), n)
	tx.b.fillConn(c)
	return nil
}

// Detach ends the connection: its subscriptions and its wait go, and Finish is called after all
// that is queued for its receiver. If nothing is queued it returns false and does not call Finish:
// a connection that ends does not wait for the batches of others. Unlike other calls it works on a
// closing broker.
func (tx *Tx) Detach(c *Conn) (queued bool) {
	b := tx.b
	if c.detached {
		return true
	}
	c.detached = true
	b.stats.conns.Add(-1)
	if c.waiter != nil {
		b.endWait(c)
	}
	b.unsubscribeAll(c)
	tx.Unwatch(c)
	b.leaveRoleHolder(c)
	if c.queuedReplies.Load() == 0 {
		return false
	}
	b.queueReply(c, len(b.open.records), replyFinish, 0, 0)
	return true
}

// unsubscribeAll ends c's subscriptions and takes its number in the dispatch, and so its readiness.
func (b *Broker) unsubscribeAll(c *Conn) {
	if c.sub == 0 {
		return
	}
	b.ids = b.dispatch.Queues(c.sub, b.ids[:0])
	b.dispatch.Remove(c.sub)
	b.conns[c.sub] = nil
	c.sub, c.queues = 0, 0
	for _, id := range b.ids {
		q := b.queues.of(id)
		q.subscribers--
		if b.filters(c) {
			b.addFiltered(q, -1)
		}
		b.listIdle(q)
	}
	b.leaveClass(c)
}

// Resume ends a pause. Receivers call it when CaughtUp is true, from any goroutine but the
// completer's.
func (b *Broker) Resume(c *Conn) {
	_ = b.Do(func(*Tx) error {
		if c.paused.Load() && !c.detached {
			c.paused.Store(false)
			b.dispatch.Resume(c.sub)
			b.fillConn(c)
		}
		return nil
	})
}
