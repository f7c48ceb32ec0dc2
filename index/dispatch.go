package index

// SubscriberID is the number of a subscriber in a [Dispatch]; 0 is none. Numbers of removed ones are used again.
type SubscriberID uint32

// Dispatch decides which subscriber gets the next packet of a queue. It knows no packets: the owner asks [Index] what
// there is, Dispatch who takes it, and then reports the delivery with Spend.
//
// A subscriber may take as many deliveries as it has credits: one for each ready byte of the pinpriq document (section
// subscribe). The byte names no queue, so credits belong to the subscriber, not to a subscription: they may come before
// the first subscription, one delivery from any queue uses one, and they stay when a subscription ends.
//
// Each queue has a line of its subscribers that can take a delivery, the one that waits longest first. A subscriber
// goes to the end of the lines of all its queues when it gets its first credit, when a delivery left it with credits,
// or when it is resumed. When it subscribes to one more queue while it waits, it joins that line at the place that its
// wait has earned. It leaves all lines when its credits are used up or it is held.
//
// Unknown subscribers are ignored everywhere. Operations on a subscriber cost O(its subscriptions), Waiting O(1), and
// joining a line in the middle O(those that began to wait later).
type Dispatch struct {
	subscribers slab[subscriber, *subscriber]
	links       slab[subscription, *subscription]
	byPair      map[pair]uint32 // subscription of a subscriber to a queue
	lines       map[QueueID]*line
	turns       uint64 // moments that subscriber.since counts
}

type pair struct {
	subscriber SubscriberID
	queue      QueueID
}

// subscriber is one consumer. Its subscriptions are chained from first in no useful order.
type subscriber struct {
	since   uint64 // when it began to wait, or had its last delivery: its place in all lines
	first   uint32
	credits uint32
	used    bool
	held    bool
	next    uint32 // free link of a free slot
}

func (s *subscriber) link() *uint32 { return &s.next }

// waits reports whether the subscriber can take a delivery.
func (s *subscriber) waits() bool { return s.credits > 0 && !s.held }

// subscription ties a subscriber to a queue. It is in one of the two lists of its queue.
type subscription struct {
	pair
	line         *line
	next, prev   uint32 // subscriptions of the subscriber; next is the free link of a free slot
	after, ahead uint32 // neighbours in the list of the queue
}

func (s *subscription) link() *uint32 { return &s.next }

// line is the subscriptions to one queue. It exists while there is one.
type line struct {
	waiting, idle list
}

// list is a chain of subscriptions.
type list struct {
	first, last uint32
}

// NewDispatch returns a dispatch without subscribers.
func NewDispatch() *Dispatch {
	return &Dispatch{byPair: make(map[pair]uint32), lines: make(map[QueueID]*line)}
}

// Add makes a subscriber without credits or subscriptions; 0 when all numbers are in use.
func (d *Dispatch) Add() SubscriberID {
	id := d.subscribers.take()
	if id != 0 {
		d.subscribers.at(id).used = true
	}
	return SubscriberID(id)
}

// Remove forgets a subscriber with its credits and subscriptions.
func (d *Dispatch) Remove(s SubscriberID) {
	u := d.subscriber(s)
	if u == nil {
		return
	}
	for u.first != 0 {
		d.unsubscribe(u, u.first)
	}
	d.subscribers.drop(uint32(s))
}

// Subscribe adds a subscription; false, and nothing changes, when there is one already.
func (d *Dispatch) Subscribe(s SubscriberID, q QueueID) bool {
	u := d.subscriber(s)
	key := pair{s, q}
	if u == nil || d.byPair[key] != 0 {
		return false
	}
	id := d.links.take()
	if id == 0 {
		return false
	}
	l := d.links.at(id)
	l.pair, l.line, l.next = key, d.lines[q], u.first
	if l.line == nil {
		l.line = new(line)
		d.lines[q] = l.line
	}
	if u.first != 0 {
		d.links.at(u.first).prev = id
	}
	u.first = id
	d.byPair[key] = id
	d.enqueue(id, u.waits())
	return true
}

// Unsubscribe ends a subscription; false when there is none. The credits stay.
func (d *Dispatch) Unsubscribe(s SubscriberID, q QueueID) bool {
	u := d.subscriber(s)
	id := d.byPair[pair{s, q}]
	if u == nil || id == 0 {
		return false
	}
	d.unsubscribe(u, id)
	return true
}

// Credit adds n credits; more than 2^32-1 together are that many.
func (d *Dispatch) Credit(s SubscriberID, n uint32) {
	if u := d.subscriber(s); u != nil {
		d.change(u, min(u.credits, ^uint32(0)-n)+n, u.held)
	}
}

// Credits is how many deliveries a subscriber may take, held or not.
func (d *Dispatch) Credits(s SubscriberID) uint32 {
	if u := d.subscriber(s); u != nil {
		return u.credits
	}
	return 0
}

// Waiting returns the subscriber whose turn the next packet of a queue is; false when none can take one.
func (d *Dispatch) Waiting(q QueueID) (SubscriberID, bool) {
	n := d.lines[q]
	if n == nil || n.waiting.first == 0 {
		return 0, false
	}
	return d.links.at(n.waiting.first).subscriber, true
}

// Spend uses one credit for a delivery and sends the subscriber, if it still can take one, to the end of its lines.
// Without credits it does nothing.
func (d *Dispatch) Spend(s SubscriberID) {
	u := d.subscriber(s)
	if u == nil || u.credits == 0 {
		return
	}
	if u.credits > 1 && !u.held {
		u.credits--
		d.turns++
		u.since = d.turns
		d.requeue(u, true, true)
		return
	}
	d.change(u, u.credits-1, u.held)
}

// Hold takes a subscriber, whose client does not read what it is sent, out of all lines; it keeps its credits.
func (d *Dispatch) Hold(s SubscriberID) {
	if u := d.subscriber(s); u != nil {
		d.change(u, u.credits, true)
	}
}

// Resume ends a hold.
func (d *Dispatch) Resume(s SubscriberID) {
	if u := d.subscriber(s); u != nil {
		d.change(u, u.credits, false)
	}
}

// Queues appends the queues a subscriber is subscribed to, in no particular order.
func (d *Dispatch) Queues(s SubscriberID, dst []QueueID) []QueueID {
	if u := d.subscriber(s); u != nil {
		for id := u.first; id != 0; id = d.links.at(id).next {
			dst = append(dst, d.links.at(id).queue)
		}
	}
	return dst
}

// Subscribed reports whether a queue has subscriptions.
func (d *Dispatch) Subscribed(q QueueID) bool {
	_, ok := d.lines[q]
	return ok
}

// DropQueue ends all subscriptions to a queue, so that its number can be used again.
func (d *Dispatch) DropQueue(q QueueID) {
	for {
		l, ok := d.lines[q]
		if !ok {
			return
		}
		id := max(l.waiting.first, l.idle.first)
		d.unsubscribe(d.subscriber(d.links.at(id).subscriber), id)
	}
}

func (d *Dispatch) subscriber(s SubscriberID) *subscriber {
	if !d.subscribers.has(uint32(s)) {
		return nil
	}
	if u := d.subscribers.at(uint32(s)); u.used {
		return u
	}
	return nil
}

// change sets credits and hold, and moves the subscriptions when that changes whether the subscriber waits.
func (d *Dispatch) change(u *subscriber, credits uint32, held bool) {
	was := u.waits()
	u.credits, u.held = credits, held
	if is := u.waits(); is != was {
		d.turns++
		u.since = d.turns
		d.requeue(u, was, is)
	}
}

// requeue moves all subscriptions of a subscriber to their place in the list they belong to.
func (d *Dispatch) requeue(u *subscriber, was, is bool) {
	for id := u.first; id != 0; id = d.links.at(id).next {
		d.dequeue(id, was)
		d.enqueue(id, is)
	}
}

// unsubscribe forgets a subscription.
func (d *Dispatch) unsubscribe(u *subscriber, id uint32) {
	l := d.links.at(id)
	d.dequeue(id, u.waits())
	if n := l.line; n.waiting.first == 0 && n.idle.first == 0 {
		delete(d.lines, l.queue)
	}
	if l.next != 0 {
		d.links.at(l.next).prev = l.prev
	}
	if l.prev != 0 {
		d.links.at(l.prev).next = l.next
	} else {
		u.first = l.next
	}
	delete(d.byPair, l.pair)
	d.links.drop(id)
}

// enqueue puts a subscription into one of its queue's lists, behind those that waited before it.
func (d *Dispatch) enqueue(id uint32, waiting bool) {
	s := d.links.at(id)
	l := s.line.list(waiting)
	s.ahead, s.after = l.last, 0
	for waiting && s.ahead != 0 && d.since(s.ahead) > d.since(id) {
		s.ahead, s.after = d.links.at(s.ahead).ahead, s.ahead
	}
	if s.ahead != 0 {
		d.links.at(s.ahead).after = id
	} else {
		l.first = id
	}
	if s.after != 0 {
		d.links.at(s.after).ahead = id
	} else {
		l.last = id
	}
}

// since is when the subscriber of a subscription began to wait.
func (d *Dispatch) since(id uint32) uint64 {
	return d.subscribers.at(uint32(d.links.at(id).subscriber)).since
}

// dequeue takes a subscription out of the list it is in.
func (d *Dispatch) dequeue(id uint32, waiting bool) {
	s := d.links.at(id)
	l := s.line.list(waiting)
	if s.ahead != 0 {
		d.links.at(s.ahead).after = s.after
	} else {
		l.first = s.after
	}
	if s.after != 0 {
		d.links.at(s.after).ahead = s.ahead
	} else {
		l.last = s.ahead
	}
}

func (n *line) list(waiting bool) *list {
	if waiting {
		return &n.waiting
	}
	return &n.idle
}
