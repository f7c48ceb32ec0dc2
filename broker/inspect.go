package broker

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/holdfast-queue/holdfast/index"
)

// Peek finds what the next claims would take, in that order and whatever a limit holds back, with
// details: at most n, which is at most MaxCount. Nothing is taken.
func (tx *Tx) Peek(name []byte, n int) (Found, error) {
	q, err := tx.open(name, looks)
	if q == nil || err != nil {
		return Found{}, err
	}
	s := Selection{End: Oldest, Count: n, WithDetails: true, claims: true}
	selection := tx.m.selection(q, &s)
	selection.Limits = false
	t, err := tx.takeable(q, &s, &selection)
	if err != nil {
		tx.lookedAt(len(t.packets), 0)
		return Found{}, err
	}
	return tx.show(q, t.packets)
}

// PrepareIDs does a slice of what calls need that name packets by their ids, as PrepareSearch does.
func (tx *Tx) PrepareIDs() (done int, more bool) {
	if more = tx.m.ix.BuildIdentities(PrepareSlice); more {
		done = PrepareSlice
	}
	return done, more
}

// show finds packets of q, with their details. Of a packet that cannot be read there are only the
// details: it is damaged, or the store has dropped it because it expired while it was claimed.
func (tx *Tx) show(q *queue, packets []index.Packet) (Found, error) {
	m := tx.m
	tx.lookedAt(len(packets), weightOf(packets))
	if err := tx.useReply(m.replyBytes(q, packets, true)); err != nil {
		return Found{}, err
	}
	records, _ := m.fetch(q, packets, nil)
	m.found.Details = m.found.Details[:0]
	for i, p := range packets {
		p, _ = m.ix.Get(p.ID) // it may be damaged
		if m.detail(q, p); records[i] == nil {
			m.found.Details[i].State = Damaged // whatever else it is: compact drops one that is claimed for long after its TTL
		}
	}
	return m.finding(records), nil
}

// Page is packets of a queue in one state, in the order of their priority and age; delayed ones
// soonest first.
type Page struct {
	State  State
	After  Place   // behind this one
	Count  int     // how many at most; no more than MaxCount
	Filter *Filter // only those that it takes; nil: all
}

// PageEnd is how many packets a page has, the place of the last one that was looked at, and whether
// there may be more behind that. With a filter at most MaxLook are looked at.
type PageEnd struct {
	Packets int
	Last    Place
	More    bool
}

// List finds a page, with details, and returns where it ends. ErrReshaped.
func (tx *Tx) List(name []byte, p Page) (f Found, end PageEnd, err error) {
	m := tx.m
	q, err := tx.open(name, looks)
	if err == nil {
		err = m.checkFilter(q, p.Filter)
	}
	if q == nil || err != nil {
		return f, end, err
	}
	if p.After != (Place{}) && p.After.Shape != m.shapeOf(q, p.State, p.After) {
		return f, end, ErrReshaped
	}
	packets, looked, count, filter := m.scratch[:0], 0, min(p.Count, MaxCount), p.Filter.forQueue(q)
	end.Last = p.After
	for k, takes := range m.ix.Each(q.ix, p.State, p.After, filter, p.Filter.share()) {
		if len(packets) == count || looked == MaxLook {
			break
		}
		if takes {
			packets = append(packets, k)
		}
		end.Last = k.Place()
		looked++
	}
	tx.lookedAt(looked, 0)
	m.scratch = packets
	fit := m.cutDetailed(q, packets)
	if end.Packets = len(fit); end.Packets < len(packets) {
		end.Last = fit[end.Packets-1].Place()
	}
	for range m.ix.Each(q.ix, p.State, end.Last, filter, p.Filter.share()) {
		end.More = true
		break
	}
	end.Last.Shape = m.shapeOf(q, p.State, end.Last)
	f, err = tx.show(q, fit)
	return f, end, err
}

// shapeOf is what a place of a page has of the shares: it is another one when packets have come to
// other shares, and after a start, which numbers the shares anew. 0 where neither can matter.
func (m *Machine) shapeOf(q *queue, s State, at Place) uint32 {
	if n := m.ix.Shape(q.ix); s == Ready && (n != 0 || at.Share != 0) {
		return n + uint32(m.begun)
	}
	return 0
}

// Show finds one packet, with details, or none if the queue has none with that id. ErrUnknownQueue.
func (tx *Tx) Show(name []byte, id ID) (Found, error) {
	m := tx.m
	q, err := tx.open(name, known)
	if err != nil {
		return Found{}, err
	}
	p, ok := m.find(q, id)
	if !ok {
		return Found{}, nil
	}
	f, err := tx.show(q, []index.Packet{p})
	if err == nil {
		f.Details[0].Behind, f.Details[0].Paused, f.Details[0].HeldBack = m.ix.Before(p.ID), q.isPausedOut(), m.heldBack(q, p)
	}
	return f, err
}

// Band is how many packets that are ready have a priority from one to another.
type Band struct {
	From, To uint32
	Packets  int
}

// QueueFigures are the figures of a queue that cost little to find.
type QueueFigures struct {
	Ready, Hidden, Delayed, Claimed, Dead, Done, Damaged int // packets by state; Hidden are ready ones of priority 0
	Bytes                                                int64
	Counters
	PausedIn, PausedOut bool // a gate is closed: nothing is pushed, or taken
	// Full says that it holds all that its bound allows. Or a push found no room, and no look since,
	// about each second, has found it at nine tenths of its bound or below.
	Full    bool
	Closed  bool // nothing will ever be pushed again
	Overdue bool // its oldest ready packet was pushed longer ago than alert-age allows
	AtLimit bool // all is claimed that max-claimed allows
	Held    bool // a consumer that has made no call for ConsumerTime holds one of its first 64 claims
	index.HeldCounts
	Strays int // packets that died in another queue and were moved here, unless they are done or damaged
	// BoundRatio is which part of its bound it holds, of packets or of bytes; 0 without a bound.
	BoundRatio float64
}

// figures returns the figures of a queue whose oldest ready packet was pushed at since. since is 0
// if there is none, or no alert-age for it to exceed.
func (m *Machine) figures(q *queue, since int64) QueueFigures {
	n, s, bound := m.ix.Counts(q.ix), settingsOf(q), m.boundRatio(q)
	return QueueFigures{
		Ready: n.Ready, Hidden: n.Unselectable, Delayed: n.Delayed, Claimed: n.Claimed, Dead: n.Dead, Done: n.Done, Damaged: n.Damaged,
		Bytes: n.Bytes, Counters: q.counters,
		PausedIn: s.PauseIn, PausedOut: s.PauseOut, Full: q.full || bound >= 1, Closed: s.Closed, Overdue: m.overdue(s, since), Held: m.held(q), AtLimit: m.ix.AtLimit(q.ix), HeldCounts: m.ix.HeldCounts(q.ix), Strays: n.Strays, BoundRatio: bound,
	}
}

// QueueStats are the figures of a queue, and more.
type QueueStats struct {
	QueueFigures
	Bands []Band
	// The only client that pushes, and the only one that takes; nil if the queue gives no such
	// role.
	Producer, Consumer *string
	Taken              int64 // as of Surveyed
	KeepsShape         bool  // new defaults would have moved too many packets
}

// QueueStats returns the figures of a queue; ok is false if nothing is called so.
func (tx *Tx) QueueStats(name []byte) (s QueueStats, ok bool, err error) {
	q, err := tx.open(name, looks)
	m := tx.m
	if err != nil || q == nil || !m.exists(q) {
		return s, false, err
	}
	var since int64
	if settingsOf(q).AlertAge > 0 {
		since, _ = m.since(q)
	}
	tx.lookedAt(min(m.ix.Counts(q.ix).Claimed, heldClaims), 0)
	s = QueueStats{QueueFigures: m.figures(q, since), Producer: q.holder(producerRole), Consumer: q.holder(consumerRole), Taken: max(q.taken, m.begun), KeepsShape: q.keeps}
	for i, n := range m.ix.Bands(q.ix) {
		to := uint32(math.MaxUint32)
		if i+1 < len(index.BandStarts) {
			to = index.BandStarts[i+1] - 1
		}
		s.Bands = append(s.Bands, Band{index.BandStarts[i], to, n})
	}
	return s, true, nil
}

// oldestPriorities is how many priorities Oldest looks at, the worst ones.
const oldestPriorities = 1024

// Oldest finds the ready packet that was pushed first, of the worst 1,024 priorities that the queue
// has, with details.
func (tx *Tx) Oldest(name []byte) (Found, error) {
	q, err := tx.open(name, looks)
	if q == nil || err != nil {
		return Found{}, err
	}
	m := tx.m
	var high, low index.Packet // of each end of the queue the one that was pushed there first
	m.ix.Eldest(q.ix, middle, oldestPriorities, func(p index.Packet) {
		switch {
		case p.Seq >= middle && (high.ID == 0 || p.Seq < high.Seq):
			high = p
		case p.Seq < middle && p.Seq > low.Seq:
			low = p
		}
	})
	f, err := tx.show(q, slices.DeleteFunc([]index.Packet{high, low}, func(p index.Packet) bool { return p.ID == 0 }))
	if len(f.Packets) == 2 {
		first := 0
		if f.Details[0].State == Damaged || f.Details[1].State != Damaged && f.Packets[1].EnqueuedAt < f.Packets[0].EnqueuedAt {
			first = 1
		}
		f.Packets, f.Details = f.Packets[first:first+1], f.Details[first:first+1]
	}
	return f, err
}

// QueueCounts is how much a queue holds.
type QueueCounts struct {
	Selectable int // packets that a pop can select
	Priorities int // distinct priorities of those; one that packets of two tag sets have counts twice
}

// QueueCounts returns what the queue holds; nothing for an unknown one.
func (tx *Tx) QueueCounts(name []byte) (QueueCounts, error) {
	if err := tx.begin(); err != nil {
		return QueueCounts{}, err
	}
	q := tx.m.queueNamed(name)
	if q == nil {
		return QueueCounts{}, nil
	}
	c := tx.m.ix.Counts(q.ix)
	return QueueCounts{Selectable: c.Ready, Priorities: c.Priorities}, nil
}

// Unfinished is how many packets of a queue are ready, delayed or claimed.
func (tx *Tx) Unfinished(name []byte) (int, error) {
	q, err := tx.open(name, looks)
	if q == nil || err != nil {
		return 0, err
	}
	n, _ := tx.m.ix.Counts(q.ix).Unfinished()
	return n, nil
}

// Consumer is who takes from a queue: a consumer that claims, or a client that waits.
type Consumer struct {
	Name    string
	Seen    int64  // when it last claimed from the queue, in Unix milliseconds; 0: never
	Claimed int    // packets that it holds
	Since   int64  // when it claimed the oldest of them; 0 if it holds none
	IDs     []ID   // of what it holds, up to MaxConsumerIDs
	Waiting []Wait // its requests and subscriptions that wait, up to MaxConsumerIDs
}

// Wait is what somebody waits for.
type Wait struct {
	Queues []string // in the order of their names
	Filter *Filter  // nil: any packet
}

// ConsumerLook is a look at who takes from a queue, in slices.
type ConsumerLook struct {
	found map[string]*Consumer // nil: it begins
	after Place                // the last claim that it has passed
	left  int                  // claims to look at
}

// Consumers makes a slice of a look at who takes from a queue (zkmq document, section active
// consumers), and returns after the last one those that hold packets, those that claimed in the
// last ConsumerTime, and those that wait, ordered by name. It looks at MaxConsumerClaims claims,
// and as many that wait. ErrUnknownQueue.
func (tx *Tx) Consumers(name []byte, l *ConsumerLook) (list []Consumer, more bool, err error) {
	m := tx.m
	q, err := tx.open(name, looks)
	if q == nil {
		q = &queue{waiters: m.waitersFor(name)} // for a name that has none
	}
	switch {
	case err != nil:
		return nil, false, err
	case !m.exists(q) && q.waiters == nil:
		return nil, false, ErrUnknownQueue
	case l.found == nil:
		tx.beginConsumers(q, l)
	}
	n := min(consumerSlice, l.left)
	claims := m.ix.List(q.ix, index.Claimed, l.after, n, m.scratch[:0])
	m.scratch = claims
	for _, p := range claims {
		if l.after = p.Place(); p.Consumer != 0 {
			m.addClaim(l.found, p)
		}
	}
	tx.lookedAt(len(claims), 0)
	if l.left -= n; l.left > 0 && len(claims) == n {
		return nil, true, nil
	}
	list = make([]Consumer, 0, len(l.found))
	for _, w := range slices.SortedFunc(maps.Values(l.found), func(a, b *Consumer) int { return cmp.Compare(a.Name, b.Name) }) {
		list = append(list, *w)
	}
	return list, false, nil
}

// beginConsumers begins a look with those that claimed lately, and those that wait.
func (tx *Tx) beginConsumers(q *queue, l *ConsumerLook) {
	m := tx.m
	m.pruneConsumers(q)
	*l = ConsumerLook{found: make(map[string]*Consumer), left: MaxConsumerClaims}
	for _, k := range q.consumers {
		if tx.now-k.seen < ConsumerTime {
			l.found[k.name] = &Consumer{Name: k.name, Seen: k.seen}
		}
	}
	waiting := m.takers(q.waiters)
	tx.lookedAt(len(q.consumers)+len(waiting), 0)
	for _, s := range waiting[:min(len(waiting), MaxConsumerClaims)] {
		tx.lookedAt(m.addWait(l.found, m.conn(s)), 0)
	}
}

// addWait notes what a connection in line waits for, and returns how many names that are.
func (m *Machine) addWait(found map[string]*Consumer, c *Conn) (names int) {
	name := c.as
	if name == "" {
		name = m.roleHolderOf(c).name
	}
	w := found[name]
	if w == nil {
		w = &Consumer{Name: name}
		found[name] = w
	}
	if len(w.Waiting) == MaxConsumerIDs {
		return 0
	}
	wait := Wait{Filter: m.classes[c.class].filter}
	m.ids = m.dispatch.Lists(c.sub, m.ids[:0])
	for _, id := range m.ids {
		wait.Queues = append(wait.Queues, m.lists[id].of.name)
	}
	slices.Sort(wait.Queues)
	w.Waiting = append(w.Waiting, wait)
	return len(wait.Queues)
}

// addClaim notes that the consumer of a claimed packet holds it.
func (m *Machine) addClaim(found map[string]*Consumer, p index.Packet) {
	k := m.consumers.all[p.Consumer-1]
	w := found[k.name]
	if w == nil {
		w = &Consumer{Name: k.name, Seen: k.seen}
		found[k.name] = w
	}
	if since := m.ix.Delivery(p.ID).LastClaim; w.Claimed == 0 || since < w.Since {
		w.Since = since
	}
	if w.Claimed++; len(w.IDs) < MaxConsumerIDs {
		w.IDs = append(w.IDs, idOf(p.Identity))
	}
}

// Producers returns who pushed to a queue in the last ConsumerTime, ordered by name.
// ErrUnknownQueue.
func (tx *Tx) Producers(name []byte) (list []Producer, err error) {
	q, err := tx.open(name, known)
	if err != nil {
		return nil, err
	}
	tx.m.pruneProducers(q)
	tx.lookedAt(len(q.producers), 0)
	for _, k := range slices.SortedFunc(maps.Values(q.producers), func(a, b *producer) int { return cmp.Compare(a.Name, b.Name) }) {
		list = append(list, k.Producer)
	}
	return list, nil
}
