package index

// Delivery tells what was tried with a packet. The zero value says: nothing. It stays with the
// packet when that changes its state, its queue or its place.
type Delivery struct {
	Token                 uint64 // of the last claim, 0: there was none
	FirstClaim, LastClaim int64  // Unix milliseconds
	Consumer              uint32 // of the last claim: the caller's own number
	Origin                uint32 // where the packet died and was moved from: the caller's own number
	Attempts              uint16 // claims so far
	Stored                uint8  // the caller's own: which records of it the store has
	Cancelled             bool   // the caller's own: the packet goes when its claim ends
}

// delivery is a Delivery where it is kept.
type delivery struct{ Delivery }

func (d *delivery) FreeLink() *uint32 { return &d.Consumer }

// Delivery returns what was tried with a packet; the zero value when that is nothing, or the number
// is not in use.
func (x *Index) Delivery(id ID) Delivery {
	e := x.entry(id)
	if e == nil {
		return Delivery{}
	}
	if e.timer != 0 {
		if d := x.timers.At(e.timer).delivery; d != 0 {
			return x.deliveries.At(d).Delivery
		}
	}
	return Delivery{}
}

// SetDelivery notes what was tried with a packet; the zero value forgets it. False when the number
// is not in use.
func (x *Index) SetDelivery(id ID, d Delivery) bool {
	e := x.entry(id)
	if e == nil {
		return false
	}
	u := x.queueOf(e)
	u.strays -= x.stray(e)
	x.setDelivery(uint32(id), e, d)
	u.strays += x.stray(e)
	return true
}

// stray is what a packet adds to the strays of its queue.
func (x *Index) stray(e *entry) int32 {
	if e.timer != 0 && e.state <= Dead {
		if d := x.timers.At(e.timer).delivery; d != 0 && x.deliveries.At(d).Origin != 0 {
			return 1
		}
	}
	return 0
}

// SetState gives a packet another state and its moment: a Delayed packet's not-before and a Dead
// one's death in Unix milliseconds, a Claimed one's lease end on the steady clock; 0 or less: none,
// as with any other state. The packet keeps its place in the order. False when the number is not in
// use.
func (x *Index) SetState(id ID, s State, until int64) bool {
	e := x.entry(id)
	if e == nil || s < Ready || s > Damaged {
		return false
	}
	x.setState(uint32(id), e, s, until)
	return true
}

func (x *Index) setState(id uint32, e *entry, s State, until int64) {
	was, changes := e.state, s != e.state || s == Delayed // whose place is its moment
	if changes {
		if !s.unfinished() {
			x.unlinkUnique(id, e)
		}
		x.unlink(id, e)
		if e.timer != 0 && s.clock() != e.state.clock() {
			x.timers.schedule(e.timer, e.state.clock(), 0)
		}
		e.state = s
	}
	x.setUntil(id, e, until)
	x.schedule(e)
	if changes {
		x.link(id, e)
		x.followKey(e)
		if !was.unfinished() {
			x.linkUnique(id, e)
		}
	}
}

// setUntil notes the moment of a packet's state, if that state has one.
func (x *Index) setUntil(id uint32, e *entry, until int64) {
	if until <= 0 || e.state == Ready || e.state >= Done {
		until = 0
	}
	if e.timer != 0 || until > 0 {
		x.timer(id, e).until = split64(until)
		x.freeTimerIfEmpty(e)
	}
}

func (x *Index) setDelivery(id uint32, e *entry, d Delivery) {
	if d != (Delivery{}) {
		t := x.timer(id, e)
		if t.delivery == 0 {
			t.delivery = x.deliveries.Alloc()
		}
		x.countOrigin(x.deliveries.At(t.delivery).Origin, d.Origin)
		x.deliveries.At(t.delivery).Delivery = d
		return
	}
	if e.timer == 0 {
		return
	}
	if t := x.timers.At(e.timer); t.delivery != 0 {
		x.countOrigin(x.deliveries.At(t.delivery).Origin, 0)
		x.deliveries.Free(t.delivery)
		t.delivery = 0
		x.freeTimerIfEmpty(e)
	}
}

// countOrigin notes that a packet names another origin, or none.
func (x *Index) countOrigin(was, now uint32) {
	if was == now {
		return
	}
	if was != 0 {
		if x.strays[was]--; x.strays[was] == 0 {
			delete(x.strays, was)
			x.freed = append(x.freed, was)
		}
	}
	if now != 0 {
		if x.strays == nil {
			x.strays = make(map[uint32]int)
		}
		x.strays[now]++
	}
}

// IsOrigin says that a packet names this origin.
func (x *Index) IsOrigin(number uint32) bool { return x.strays[number] > 0 }

// FreedOrigins returns the origins that have lost their last packet since it was called last. They
// are valid until the index changes.
func (x *Index) FreedOrigins() []uint32 {
	freed := x.freed
	x.freed = x.freed[:0]
	return freed
}

// timer returns the timer of a packet, a new one if it has none.
func (x *Index) timer(id uint32, e *entry) *timer {
	if e.timer == 0 {
		e.timer = x.timers.Alloc()
		x.timers.At(e.timer).entry = id
	}
	return x.timers.At(e.timer)
}

// freeTimerIfEmpty takes a timer that holds nothing from its packet.
func (x *Index) freeTimerIfEmpty(e *entry) {
	if x.timers.At(e.timer).empty() {
		x.timers.schedule(e.timer, e.state.clock(), 0)
		x.timers.Free(e.timer)
		e.timer = 0
	}
}

// schedule puts a packet's timer, if it has one, where its state says.
func (x *Index) schedule(e *entry) {
	if e.timer != 0 {
		x.timers.schedule(e.timer, e.state.clock(), x.timers.At(e.timer).dueAt(e.state, x.queueOf(e).keepDead()))
	}
}

// KeepDead says for how many milliseconds after their death the Dead packets of a queue are kept:
// then Advance reports them as Expired. 0 is without end. Those that are Dead already follow with
// RescheduleDead.
func (x *Index) KeepDead(q QueueID, keep int64) {
	if x.hasQueue(q) {
		x.queues.At(uint32(q)).setRules(func(r *rules) { r.keepDead = keep })
	}
}

// RescheduleDead has at most n packets behind a place follow KeepDead. It returns the place of the
// last one, and false when there are no more.
func (x *Index) RescheduleDead(q QueueID, after Place, n int) (last Place, more bool) {
	for p := range x.Each(q, Dead, after, nil, nil) {
		if n--; n < 0 {
			return after, true
		}
		x.schedule(x.entries.At(uint32(p.ID)))
		after = p.Place()
	}
	return after, false
}
