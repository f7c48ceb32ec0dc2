package index

import (
	"cmp"
	"slices"

	"github.com/holdfast-queue/holdfast/index/tree"
)

// SubscriberID is the number of a subscriber in a [Dispatch]; 0 is none. The numbers of removed
// subscribers are used again.
type SubscriberID uint32

// WaitListID is the number of a wait list in a [Dispatch]; 0 is none. The numbers of removed lists
// are used again.
type WaitListID uint32

// Dispatch decides which subscriber gets the next packet of a queue. It knows no packets: the owner
// asks [Index] what there is and Dispatch who takes it, and then reports the delivery with Spend.
//
// A subscriber may take as many deliveries as it has credits: one for each ready byte of the
// pinpriq document (section subscribe). That byte names no queue, so credits belong to the
// subscriber, not to a subscription. They may come before the first subscription, a delivery from
// any queue uses one, and they stay when a subscription ends.
//
// Subscribers that take the same packets are of one [Class]. The owner says which classes there are
// and what each takes, as narrow packets only, or what a filter accepts.
//
// Subscriptions are to wait lists, of which the owner makes one for each name that somebody waits
// for, whatever queue has that. In it are the subscribers that can take a delivery, the one that
// waits longest first. Three events put a subscriber at the end of all its wait lists: its first
// credit, a delivery that leaves it with credits, and the end of a pause. If it subscribes once
// more while it waits, it is put into that list behind those that have waited longer. It is taken
// out of all wait lists when its credits are used up or it is paused.
//
// Calls for unknown subscribers do nothing. Lists must be known, or 0, which is empty. An operation
// on a subscriber costs O(its subscriptions), and Waiting O(classes in the list), of those with a
// [Key] only the ones that are awake. A place in the middle of a wait list costs O(those that began
// to wait later).
type Dispatch struct {
	subscribers   tree.Slab[subscriber, *subscriber]
	subscriptions tree.Slab[subscription, *subscription]
	waitLists     tree.Slab[waitList, *waitList]
	clock         uint64 // counts the moments that subscriber.since names
	keyOf         func(Class) Key
}

// subscriber is one consumer. Its subscriptions are chained from first in no particular order.
type subscriber struct {
	since   uint64 // when it began to wait, or had its last delivery: its place in all wait lists
	first   uint32
	credits uint32
	class   Class
	used    bool
	paused  bool
	next    uint32 // links free slots
}

func (s *subscriber) FreeLink() *uint32 { return &s.next }

// canTake reports whether the subscriber can take a delivery.
func (s *subscriber) canTake() bool { return s.credits > 0 && !s.paused }

// subscription ties a subscriber to a wait list. It is in one of the lists of that.
type subscription struct {
	subscriber         SubscriberID
	to                 WaitListID
	next, prev         uint32 // the subscriber's other subscriptions; next links free slots
	listNext, listPrev uint32 // neighbours in the list
}

func (s *subscription) FreeLink() *uint32 { return &s.next }

// waitList is the subscriptions to one name.
type waitList struct {
	lines []line      // of subscribers that can take a delivery, in no particular order; none is empty
	keyed *keyedLines // the same of classes with a key; nil: there is none
	idle  list        // of the others, in no particular order
	next  uint32      // links free slots
}

func (w *waitList) FreeLink() *uint32 { return &w.next }

// line returns the line of a class in a wait list; nil if there is none and it is not to be made.
// It is valid until lines come or go.
func (d *Dispatch) line(w *waitList, c Class, makes bool) *line {
	key := d.keyOf(c)
	if len(key.By) > 0 && w.keyed != nil && w.keyed.byClass[c] != nil {
		return &w.keyed.byClass[c].line
	}
	i := slices.IndexFunc(w.lines, func(l line) bool { return l.class == c })
	switch {
	case i >= 0:
		return &w.lines[i]
	case !makes:
		return nil
	case len(key.By) == 0:
		w.lines = append(w.lines, line{class: c})
		return &w.lines[len(w.lines)-1]
	case w.keyed == nil:
		w.keyed = &keyedLines{byClass: make(map[Class]*keyedLine), byKey: make(map[string][]*keyedLine)}
	}
	return w.keyed.add(key, c)
}

// removeLine ends an empty line.
func (w *waitList) removeLine(l *line) {
	if l.keyed == nil {
		*l = w.lines[len(w.lines)-1]
		w.lines = w.lines[:len(w.lines)-1]
	} else if w.keyed.remove(l.keyed); len(w.keyed.byClass) == 0 {
		w.keyed = nil
	}
}

// NewDispatch returns a dispatch without subscribers. keyOf is asked for the keys of their classes.
func NewDispatch(keyOf func(Class) Key) *Dispatch { return &Dispatch{keyOf: keyOf} }

// AddList makes a wait list without subscriptions.
func (d *Dispatch) AddList() WaitListID { return WaitListID(d.waitLists.Alloc()) }

// RemoveList removes a wait list without subscriptions.
func (d *Dispatch) RemoveList(w WaitListID) { d.waitLists.Free(uint32(w)) }

// IsEmpty says that a wait list has no subscriptions.
func (d *Dispatch) IsEmpty(w WaitListID) bool {
	l := d.waitList(w)
	return len(l.lines) == 0 && l.idle == (list{}) && l.keyed == nil
}

// HasKeyed says that Wake may wake some in a list.
func (d *Dispatch) HasKeyed(w WaitListID) bool { return d.waitList(w).keyed != nil }

// AskAnew lets Waiting ask all classes of a list with 0 again: another queue has the name, or what
// they take has changed.
func (d *Dispatch) AskAnew(w WaitListID) {
	lines := d.waitList(w).lines
	for i := range lines {
		lines[i].asked = 0
	}
	for _, l := range d.waitList(w).keyed.inOrder() {
		l.wake(0)
		l.asked = 0
	}
}

// Wake lets Waiting ask the classes of a list that are found by something. One that slept is asked
// with from.
func (d *Dispatch) Wake(w WaitListID, by []byte, from uint64) {
	if k := d.waitList(w).keyed; k != nil {
		for _, l := range k.byKey[string(by)] {
			l.wake(from)
		}
	}
}

// Add makes a subscriber of a class without credits or subscriptions.
func (d *Dispatch) Add(c Class) SubscriberID {
	id := d.subscribers.Alloc()
	u := d.subscribers.At(id)
	u.used, u.class = true, c
	return SubscriberID(id)
}

// Remove removes a subscriber with its credits and subscriptions.
func (d *Dispatch) Remove(s SubscriberID) {
	u := d.subscriber(s)
	if u == nil {
		return
	}
	for u.first != 0 {
		d.unsubscribe(u, u.first)
	}
	d.subscribers.Free(uint32(s))
}

// Subscribe adds a subscription; false, and nothing changes, when there is one already.
func (d *Dispatch) Subscribe(s SubscriberID, w WaitListID) bool {
	u := d.subscriber(s)
	if u == nil || !d.IsEmpty(w) && d.find(u, w) != 0 {
		return false
	}
	id := d.subscriptions.Alloc()
	n := d.subscriptions.At(id)
	n.subscriber, n.to, n.next = s, w, u.first
	if u.first != 0 {
		d.subscriptions.At(u.first).prev = id
	}
	u.first = id
	d.addToList(id, u.canTake())
	return true
}

// Unsubscribe ends a subscription; false when there is none. The credits stay.
func (d *Dispatch) Unsubscribe(s SubscriberID, w WaitListID) bool {
	u := d.subscriber(s)
	if u == nil {
		return false
	}
	id := d.find(u, w)
	if id != 0 {
		d.unsubscribe(u, id)
	}
	return id != 0
}

// find returns the subscription of a subscriber to a wait list; 0 when there is none. One that can
// take a delivery stands where its waiting time says.
func (d *Dispatch) find(u *subscriber, w WaitListID) uint32 {
	if u.canTake() {
		id := uint32(0)
		if l := d.line(d.waitList(w), u.class, false); l != nil {
			id = l.last
		}
		for id != 0 && d.since(id) > u.since {
			id = d.subscriptions.At(id).listPrev
		}
		if id == 0 || d.since(id) != u.since {
			return 0
		}
		return id
	}
	id := u.first
	for id != 0 && d.subscriptions.At(id).to != w {
		id = d.subscriptions.At(id).next
	}
	return id
}

// Credit adds n credits; the sum stops at 2^32-1.
func (d *Dispatch) Credit(s SubscriberID, n uint32) {
	if u := d.subscriber(s); u != nil {
		d.update(u, min(u.credits, ^uint32(0)-n)+n, u.paused)
	}
}

// Credits is how many deliveries a subscriber may take, paused or not.
func (d *Dispatch) Credits(s SubscriberID) uint32 {
	if u := d.subscriber(s); u != nil {
		return u.credits
	}
	return 0
}

// Waiting returns the subscriber that gets the next packet of a queue: the one that has waited
// longest, of those whose class takes one. False when none does. takes is asked at most once for a
// class, in the order in which they would get it. It gets the number that it returned for that
// class the last time, while somebody of it waited all along, and 0 the first time. A class with a
// key that takes nothing sleeps then, until it is woken. Those whose Key.Gate is not below open are
// not asked.
func (d *Dispatch) Waiting(list WaitListID, open int, takes func(c Class, asked uint64) (uint64, bool)) (SubscriberID, bool) {
	lines, keyed := d.waitList(list).lines, d.waitList(list).keyed
	if len(lines) > 1 {
		slices.SortFunc(lines, func(a, b line) int { return cmp.Compare(d.since(a.first), d.since(b.first)) })
	}
	for {
		var l *line
		switch first := keyed.first(open); {
		case len(lines) > 0 && (first == nil || d.since(lines[0].first) < first.since):
			l, lines = &lines[0], lines[1:]
		case first == nil:
			return 0, false
		default:
			l = &first.line
		}
		asked, ok := takes(l.class, l.asked)
		if l.asked = asked; ok {
			return d.subscriptions.At(l.first).subscriber, true
		}
		l.sleep()
	}
}

// Spend uses one credit for a delivery. A subscriber that can take another one goes to the end of
// its wait lists.
func (d *Dispatch) Spend(s SubscriberID) {
	u := d.subscriber(s)
	if u == nil || u.credits == 0 {
		return
	}
	if u.credits > 1 && !u.paused {
		d.clock++
		u.since = d.clock
		d.moveAll(u, true, true)
	}
	d.update(u, u.credits-1, u.paused)
}

// SetPaused takes a subscriber out of all wait lists, because its client does not read what it is
// sent, or ends that. Its credits stay.
func (d *Dispatch) SetPaused(s SubscriberID, paused bool) {
	if u := d.subscriber(s); u != nil {
		d.update(u, u.credits, paused)
	}
}

// Lists appends the wait lists that a subscriber has subscribed to, in no particular order.
func (d *Dispatch) Lists(s SubscriberID, dst []WaitListID) []WaitListID {
	if u := d.subscriber(s); u != nil {
		for id := u.first; id != 0; id = d.subscriptions.At(id).next {
			dst = append(dst, d.subscriptions.At(id).to)
		}
	}
	return dst
}

// Subscribers appends the subscribers of a wait list to dst: first those that can take a delivery.
func (d *Dispatch) Subscribers(w WaitListID, dst []SubscriberID) []SubscriberID {
	for _, l := range d.waitList(w).lines {
		dst = d.subscribersOf(l.list, dst)
	}
	for _, l := range d.waitList(w).keyed.inOrder() {
		dst = d.subscribersOf(l.list, dst)
	}
	return d.subscribersOf(d.waitList(w).idle, dst)
}

// subscribersOf appends the subscribers of a list to dst.
func (d *Dispatch) subscribersOf(l list, dst []SubscriberID) []SubscriberID {
	for id := l.first; id != 0; id = d.subscriptions.At(id).listNext {
		dst = append(dst, d.subscriptions.At(id).subscriber)
	}
	return dst
}

func (d *Dispatch) waitList(w WaitListID) *waitList { return d.waitLists.At(uint32(w)) }

func (d *Dispatch) subscriber(s SubscriberID) *subscriber {
	if !d.subscribers.Has(uint32(s)) {
		return nil
	}
	if u := d.subscribers.At(uint32(s)); u.used {
		return u
	}
	return nil
}

// update sets credits and pause. If that changes whether the subscriber can take a delivery, its
// subscriptions change lists.
func (d *Dispatch) update(u *subscriber, credits uint32, paused bool) {
	was := u.canTake()
	u.credits, u.paused = credits, paused
	if is := u.canTake(); is != was {
		d.clock++
		u.since = d.clock
		d.moveAll(u, was, is)
	}
}

// moveAll moves all subscriptions of a subscriber to their places in the lists they belong to.
func (d *Dispatch) moveAll(u *subscriber, was, is bool) {
	for id := u.first; id != 0; id = d.subscriptions.At(id).next {
		d.removeFromList(id, was)
		d.addToList(id, is)
	}
}

// unsubscribe frees a subscription.
func (d *Dispatch) unsubscribe(u *subscriber, id uint32) {
	n := d.subscriptions.At(id)
	d.removeFromList(id, u.canTake())
	if n.next != 0 {
		d.subscriptions.At(n.next).prev = n.prev
	}
	if n.prev != 0 {
		d.subscriptions.At(n.prev).next = n.next
	} else {
		u.first = n.next
	}
	d.subscriptions.Free(id)
}

// addToList puts a subscription into one of the lists of its wait list, behind those that waited
// before it.
func (d *Dispatch) addToList(id uint32, waiting bool) {
	n := d.subscriptions.At(id)
	w := d.waitList(n.to)
	l, of := &w.idle, (*line)(nil)
	if waiting {
		of = d.line(w, d.subscribers.At(uint32(n.subscriber)).class, true)
		l = &of.list
	}
	n.listPrev, n.listNext = l.last, 0
	for waiting && n.listPrev != 0 && d.since(n.listPrev) > d.since(id) {
		n.listPrev, n.listNext = d.subscriptions.At(n.listPrev).listPrev, n.listPrev
	}
	if n.listPrev != 0 {
		d.subscriptions.At(n.listPrev).listNext = id
	} else {
		l.first = id
	}
	if n.listNext != 0 {
		d.subscriptions.At(n.listNext).listPrev = id
	} else {
		l.last = id
	}
	if waiting {
		of.follow(d.since(l.first))
	}
}

// since is when the subscriber of a subscription began to wait.
func (d *Dispatch) since(id uint32) uint64 {
	return d.subscribers.At(uint32(d.subscriptions.At(id).subscriber)).since
}

// removeFromList takes a subscription out of the list it is in.
func (d *Dispatch) removeFromList(id uint32, waiting bool) {
	n := d.subscriptions.At(id)
	w := d.waitList(n.to)
	l, of := &w.idle, (*line)(nil)
	if waiting {
		of = d.line(w, d.subscribers.At(uint32(n.subscriber)).class, false)
		l = &of.list
	}
	if n.listPrev != 0 {
		d.subscriptions.At(n.listPrev).listNext = n.listNext
	} else {
		l.first = n.listNext
	}
	if n.listNext != 0 {
		d.subscriptions.At(n.listNext).listPrev = n.listPrev
	} else {
		l.last = n.listPrev
	}
	switch {
	case waiting && l.first != 0:
		of.follow(d.since(l.first))
	case waiting:
		w.removeLine(of)
	}
}
