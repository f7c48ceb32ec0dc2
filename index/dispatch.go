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
// goes to the end of the waitLists of all its queues when it gets its first credit, when a delivery left it with credits,
// or when it is resumed. When it subscribes to one more queue while it waits, it joins that line at the place that its
// wait has earned. It leaves all waitLists when its credits are used up or it is held.
//
// Unknown subscribers are ignored everywhere. Operations on a subscriber cost O(its subscriptions), Waiting O(1), and
// joining a line in the middle O(those that began to wait later).
type Dispatch struct {
	subscribers   slab[subscriber, *subscriber]
	subscriptions slab[subscription, *subscription]
	byPair        map[pair]uint32 // subscription of a subscriber to a queue
	waitLists     map[QueueID]*waitList
	clock         uint64 // moments that subscriber.since counts
}

type pair struct {
	subscriber SubscriberID
	queue      QueueID
}

// subscriber is one consumer. Its subscriptions are chained from first in no useful order.
type subscriber struct {
	since   uint64 // when it began to wait, or had its last delivery: its place in all waitLists
	first   uint32
	credits uint32
	used    bool
	paused  bool
	next    uint32 // free link of a free slot
}

func (s *subscriber) freeLink() *uint32 { return &s.next }

// waits reports whether the subscriber can take a delivery.
func (s *subscriber) canTake() bool { return s.credits > 0 && !s.paused }

// subscription ties a subscriber to a queue. It is in one of the two lists of its queue.
type subscription struct {
	pair
	waitList           *waitList
	next, prev         uint32 // subscriptions of the subscriber; next is the free link of a free slot
	listPrev, listNext uint32 // neighbours in the list of the queue
}

func (s *subscription) freeLink() *uint32 { return &s.next }

// line is the subscriptions to one queue. It exists while there is one.
type waitList struct {
	waiting, idle list
}

// list is a chain of subscriptions.
type list struct {
	first, last uint32
}

// NewDispatch returns a dispatch without subscribers.
func NewDispatch() *Dispatch {
	return &Dispatch{byPair: make(map[pair]uint32), waitLists: make(map[QueueID]*waitList)}
}

// Add makes a subscriber without credits or subscriptions; 0 when all numbers are in use.
func (d *Dispatch) Add() SubscriberID {
	id := d.subscribers.alloc()
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
	d.subscribers.free(uint32(s))
}

// Subscribe adds a subscription; false, and nothing changes, when there is one already.
func (d *Dispatch) Subscribe(s SubscriberID, q QueueID) bool {
	u := d.subscriber(s)
	key := pair{s, q}
	if u == nil || d.byPair[key] != 0 {
		return false
	}
	id := d.subscriptions.alloc()
	if id == 0 {
		return false
	}
	l := d.subscriptions.at(id)
	l.pair, l.waitList, l.next = key, d.waitLists[q], u.first
	if l.waitList == nil {
		l.waitList = new(waitList)
		d.waitLists[q] = l.waitList
	}
	if u.first != 0 {
		d.subscriptions.at(u.first).prev = id
	}
	u.first = id
	d.byPair[key] = id
	d.addToList(id, u.canTake())
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
		d.update(u, min(u.credits, ^uint32(0)-n)+n, u.paused)
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
	n := d.waitLists[q]
	if n == nil || n.waiting.first == 0 {
		return 0, false
	}
	return d.subscriptions.at(n.waiting.first).subscriber, true
}

// Spend uses one credit for a delivery and sends the subscriber, if it still can take one, to the end of its waitLists.
// Without credits it does nothing.
func (d *Dispatch) Spend(s SubscriberID) {
	u := d.subscriber(s)
	if u == nil || u.credits == 0 {
		return
	}
	if u.credits > 1 && !u.paused {
		u.credits--
		d.clock++
		u.since = d.clock
		d.moveAll(u, true, true)
		return
	}
	d.update(u, u.credits-1, u.paused)
}

// Pause takes a subscriber, whose client does not read what it is sent, out of all waitLists; it keeps its credits.
func (d *Dispatch) Pause(s SubscriberID) {
	if u := d.subscriber(s); u != nil {
		d.update(u, u.credits, true)
	}
}

// Resume ends a hold.
func (d *Dispatch) Resume(s SubscriberID) {
	if u := d.subscriber(s); u != nil {
		d.update(u, u.credits, false)
	}
}

// Queues appends the queues a subscriber is subscribed to, in no particular order.
func (d *Dispatch) Queues(s SubscriberID, dst []QueueID) []QueueID {
	if u := d.subscriber(s); u != nil {
		for id := u.first; id != 0; id = d.subscriptions.at(id).next {
			dst = append(dst, d.subscriptions.at(id).queue)
		}
	}
	return dst
}

// Subscribed reports whether a queue has subscriptions.
func (d *Dispatch) Subscribed(q QueueID) bool {
	_, ok := d.waitLists[q]
	return ok
}

// DropQueue ends all subscriptions to a queue, so that its number can be used again.
func (d *Dispatch) DropQueue(q QueueID) {
	for {
		l, ok := d.waitLists[q]
		if !ok {
			return
		}
		id := max(l.waiting.first, l.idle.first)
		d.unsubscribe(d.subscriber(d.subscriptions.at(id).subscriber), id)
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
func (d *Dispatch) update(u *subscriber, credits uint32, paused bool) {
	was := u.canTake()
	u.credits, u.paused = credits, paused
	if is := u.canTake(); is != was {
		d.clock++
		u.since = d.clock
		d.moveAll(u, was, is)
	}
}

// moveAll moves all subscriptions of a subscriber to their place in the list they belong to.
func (d *Dispatch) moveAll(u *subscriber, was, is bool) {
	for id := u.first; id != 0; id = d.subscriptions.at(id).next {
		d.removeFromList(id, was)
		d.addToList(id, is)
	}
}

// unsubscribe forgets a subscription.
func (d *Dispatch) unsubscribe(u *subscriber, id uint32) {
	l := d.subscriptions.at(id)
	d.removeFromList(id, u.canTake())
	if n := l.waitList; n.waiting.first == 0 && n.idle.first == 0 {
		delete(d.waitLists, l.queue)
	}
	if l.next != 0 {
		d.subscriptions.at(l.next).prev = l.prev
	}
	if l.prev != 0 {
		d.subscriptions.at(l.prev).next = l.next
	} else {
		u.first = l.next
	}
	delete(d.byPair, l.pair)
	d.subscriptions.free(id)
}

// addToList puts a subscription into one of its queue's lists, behind those that waited before it.
func (d *Dispatch) addToList(id uint32, waiting bool) {
	s := d.subscriptions.at(id)
	l := s.waitList.list(waiting)
	s.listPrev, s.listNext = l.last, 0
	for waiting && s.listPrev != 0 && d.since(s.listPrev) > d.since(id) {
		s.listPrev, s.listNext = d.subscriptions.at(s.listPrev).listPrev, s.listPrev
	}
	if s.listPrev != 0 {
		d.subscriptions.at(s.listPrev).listNext = id
	} else {
		l.first = id
	}
	if s.listNext != 0 {
		d.subscriptions.at(s.listNext).listPrev = id
	} else {
		l.last = id
	}
}

// since is when the subscriber of a subscription began to wait.
func (d *Dispatch) since(id uint32) uint64 {
	return d.subscribers.at(uint32(d.subscriptions.at(id).subscriber)).since
}

// removeFromList takes a subscription out of the list it is in.
func (d *Dispatch) removeFromList(id uint32, waiting bool) {
	s := d.subscriptions.at(id)
	l := s.waitList.list(waiting)
	if s.listPrev != 0 {
		d.subscriptions.at(s.listPrev).listNext = s.listNext
	} else {
		l.first = s.listNext
	}
	if s.listNext != 0 {
		d.subscriptions.at(s.listNext).listPrev = s.listPrev
	} else {
		l.last = s.listPrev
	}
}

func (n *waitList) list(waiting bool) *list {
	if waiting {
		return &n.waiting
	}
	return &n.idle
}
