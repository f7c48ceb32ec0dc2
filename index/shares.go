package index

import (
	"iter"
	"slices"

	"github.com/holdfast-queue/holdfast/index/tree"
)

// A queue that is shared out has its packets in shares: those with one key, or with one value of a
// tag. Packets without one, or with one longer than MaxShareName, are of the empty share. Its lanes
// are the queue's own, so a queue that is shared out begins with all packets there.

// MaxShareName is how long the name of a share may be, in bytes.
const MaxShareName = 255

// MaxShareLanes bounds the lanes of a queue that is shared out. Who pushes asks HasLane. A packet
// that comes from disk, or was there before, stays in the empty share if it needs one more.
const MaxShareLanes = 250_000

// ShareRule says how a queue is shared out. Its functions must not call the index.
type ShareRule struct {
	By   string                   // what it shares by: rules that share by the same are equal
	Name func(tags []byte) []byte // the name of a packet's share; nil: it is the key
	Rest func(tags []byte) []byte // the tags without what says the share; nil: as they are
}

// ShareOwn is what one share of a queue has of its own. The zero value is nothing.
type ShareOwn struct {
	Weight     uint32  // 0: 1
	MaxClaimed uint32  // 0: as Limits say
	Gap        int64   // nanoseconds between its takes; 0: as Limits say
	Rest       int64   // until when it gives nothing, in milliseconds of the steady clock
	Due        TakeDue // of that gap where it is of a slow rate; zero: at rest
}

// share is one share of a queue. It exists while it has packets; the empty one always.
type share struct {
	lanes      // those of the empty one are the queue's
	name       string
	num        uint32 // its place in sharing.all
	unfinished uint32 // packets that are Ready, Delayed or Claimed
	weight     uint32
	pos        uint32 // place in its heap plus 1; 0: not in one
	wake       uint32 // place in sharing.wakes plus 1; 0: not there
	stop       stop   // it is in the heap of those that this stops
	ownRate    bool   // it goes by ShareOwn.Gap
	charged    bool   // it is in Index.charged
	resting    bool   // it counts in sharing.resting

	gate
	pass  uint64
	turn  uint64 // when it was made or served last
	twins *lanes // nil: none, see strict.go
}

func (s *share) number() uint32 {
	if s == nil {
		return 0
	}
	return s.num
}

// lanesOf returns the lanes of a share of the queue, nil for the empty one.
func (u *queue) lanesOf(s *share) *lanes {
	if s == nil || s.num == 0 {
		return &u.lanes
	}
	return &s.lanes
}

// sharing is what a queue that is shared out has beside its lanes.
type sharing struct {
	rule    *ShareRule // nil: all packets go back to the empty share
	resting int        // shares that count to MaxResting
	all     []*share   // by number; the first is the empty one, and nil where the number is free
	free    []uint32   // numbers
	byName  map[string]*share
	own     map[string]ShareOwn
	lanes   int            // of all shares, but for the default one
	most    int            // MaxShareLanes
	sets    map[string]int // lanes by tags, without what says the share

	heaps [stops]shareHeap // of those with packets that can be selected
	wakes tree.Heap[wake, *wake]
	clock uint64 // see turns.go
	turns uint64 // counts what share.turn names

	begins  gate // of a share that comes, and has no rate of its own
	charged bool // such a share is in Index.charged

	keepsWorst bool
	worst      laneHeap // of all lanes, as a laneSet has it
	bands      [len(BandStarts)]int
	scratch    []byte // tags on their way to the rule
	key, tags  []byte // of a packet that follows a change of shape

	ownLimits int // of own, those that have such, or rest
}

// SetShare says what one share of a queue has of its own from now on, whether it exists or not. It
// is forgotten when the queue is no longer shared out; of one that is not, nothing changes.
func (x *Index) SetShare(q QueueID, name string, own ShareOwn) {
	if !x.hasQueue(q) || x.queues.At(uint32(q)).shares == nil {
		return
	}
	u := x.queues.At(uint32(q))
	sh := u.shares
	s, had := sh.byName[name], sh.own[name]
	if s == nil && sh.rule != nil && (own.Rest > 0 || had.Gap == 0 && sh.begins.due > x.clock) {
		s = x.addShare(u, name) // it is there to tell when that is over
		s.pass = sh.clock + oneTurn/uint64(own.weight())
	}
	if sh.keepOwn(name, own); s == nil {
		return
	}
	if x.setOwn(u, s, own); own.Gap > 0 && had.Gap != own.Gap { // its due may be what the queue's rate said
		x.note(u, s)
	}
	if x.followLimits(u, s); s.num != 0 && s.isEmpty() {
		x.leaveShare(u, s)
	}
}

func (sh *sharing) keepOwn(name string, own ShareOwn) {
	sh.ownLimits += own.limits() - sh.own[name].limits()
	if own == (ShareOwn{}) {
		delete(sh.own, name)
		return
	}
	if sh.own == nil {
		sh.own = make(map[string]ShareOwn)
	}
	sh.own[name] = own
}

// setOwn gives a share what it has of its own. Its place in the heaps follows.
func (x *Index) setOwn(u *queue, s *share, own ShareOwn) {
	s.weight, s.rest, s.ownRate = own.weight(), own.Rest*1_000_000, own.Gap > 0
	x.followShare(u, s)
}

// limits is 1 for a limit, a rate or a rest.
func (o ShareOwn) limits() int {
	if o.MaxClaimed == 0 && o.Gap == 0 && o.Rest == 0 {
		return 0
	}
	return 1
}

func (o ShareOwn) weight() uint32 { return max(1, o.Weight) }

// Shares is how many shares a queue has, 0 if it is not shared out.
func (x *Index) Shares(q QueueID) int {
	if !x.hasQueue(q) || x.queues.At(uint32(q)).shares == nil {
		return 0
	}
	sh := x.queues.At(uint32(q)).shares
	return len(sh.all) - len(sh.free)
}

// NextShare is the share of a queue that is behind others, by its number: from is 0, or next of the
// one before. A share keeps its number until it goes.
func (x *Index) NextShare(q QueueID, from uint32) (name string, next uint32, ok bool) {
	if !x.hasQueue(q) || x.queues.At(uint32(q)).shares == nil {
		return "", 0, false
	}
	for all := x.queues.At(uint32(q)).shares.all; int(from) < len(all); from++ {
		if s := all[from]; s != nil {
			return s.name, from + 1, true
		}
	}
	return "", 0, false
}

// ShareCounts is how many packets of a share can be selected, and how many are claimed. It costs
// O(lanes), of which it says how many there are.
func (x *Index) ShareCounts(q QueueID, name string) (ready, claimed, lanes int) {
	s, of := x.shareNamed(q, name)
	if s == nil {
		return 0, 0, 0
	}
	if of.home != 0 {
		ready, lanes = int(x.lanes.At(uint32(of.home)).tree.Count), 1
	}
	if of.set != nil {
		for _, id := range of.set.byKey {
			ready += int(x.lanes.At(uint32(id)).tree.Count)
			lanes++
		}
	}
	return ready, int(s.claimed), lanes
}

// shareNamed is a share of a queue with its lanes; nil and nil if there is none.
func (x *Index) shareNamed(q QueueID, name string) (*share, *lanes) {
	if !x.hasQueue(q) || x.queues.At(uint32(q)).shares == nil {
		return nil, nil
	}
	u := x.queues.At(uint32(q))
	s := u.shares.byName[name]
	if s == nil {
		return nil, nil
	}
	return s, u.lanesOf(s)
}

// HasLane says that a packet with this key and these tags needs no new lane.
func (x *Index) HasLane(q QueueID, key, tags []byte, wide bool) bool {
	u := x.queues.At(uint32(q))
	if u.shares == nil {
		return x.laneIn(&u.lanes, tags, wide) != 0
	}
	s, known := u.shares.find(key, tags)
	return known && x.laneIn(u.lanesOf(s), tags, wide) != 0
}

// HasLaneFor says that a packet of another queue needs no new lane in this one.
func (x *Index) HasLaneFor(q QueueID, id ID) bool {
	e := x.entry(id)
	if e == nil {
		return false
	}
	key, _ := x.Key(id, nil)
	l := x.lanes.At(uint32(e.lane))
	return x.HasLane(q, key, []byte(l.tags), l.wide)
}

// Shared says in which share of a queue a packet is that comes.
type Shared struct {
	Name       string
	Number     uint32 // as Packet.Share; of one that comes new it is 0
	Unfinished int    // packets of it that are Ready, Delayed or Claimed
}

// ShareOf says in which share of a queue a packet with this key and these tags would be; false if
// the queue is not shared out.
func (x *Index) ShareOf(q QueueID, key, tags []byte) (of Shared, ok bool) {
	sh := x.queues.At(uint32(q)).shares
	if sh == nil {
		return of, false
	}
	of.Name = string(sh.name(key, tags))
	if s := sh.byName[of.Name]; s != nil {
		of.Number, of.Unfinished = s.num, int(s.unfinished)
	}
	return of, true
}

// ShareFor is ShareOf for a packet that is held.
func (x *Index) ShareFor(q QueueID, id ID) (of Shared, ok bool) {
	e := x.entry(id)
	if e == nil {
		return of, false
	}
	key, _ := x.Key(id, nil)
	return x.ShareOf(q, key, []byte(x.lanes.At(uint32(e.lane)).tags))
}

// of returns the share of a lane.
func (sh *sharing) of(l *lane) *share {
	if l.share != nil {
		return l.share
	}
	return sh.all[0]
}

// at is the share with a number; nil if there is none.
func (sh *sharing) at(number uint32) *share {
	if sh == nil || int(number) >= len(sh.all) {
		return nil
	}
	return sh.all[number]
}

// each gives all shares in the order of their numbers.
func (sh *sharing) each() iter.Seq[*share] {
	return func(yield func(*share) bool) {
		for _, s := range sh.all {
			if s != nil && !yield(s) {
				return
			}
		}
	}
}

// behind gives the shares from a number on, but for the empty one, and with a name only that share.
func (sh *sharing) behind(number uint32, name []byte) iter.Seq[*share] {
	return func(yield func(*share) bool) {
		if name != nil {
			if s := sh.byName[string(name)]; s != nil && s.num >= max(1, number) {
				yield(s)
			}
			return
		}
		for _, s := range sh.all[min(max(1, int(number)), len(sh.all)):] {
			if s != nil && !yield(s) {
				return
			}
		}
	}
}

// addShare makes a share.
func (x *Index) addShare(u *queue, name string) *share {
	sh := u.shares
	sh.turns++
	s := &share{name: name, turn: sh.turns, num: uint32(len(sh.all)), gate: sh.begins}
	if own := sh.own[name]; own.Gap > 0 {
		s.gate = gate{rate: u.rateOf(own.Gap)} // at rest, while the share is not there
	}
	x.setOwn(u, s, sh.own[name])
	s.pass = sh.clock + oneTurn/uint64(s.weight)
	if last := len(sh.free) - 1; last >= 0 {
		s.num, sh.free = sh.free[last], sh.free[:last]
		sh.all[s.num] = s
	} else {
		sh.all = append(sh.all, s)
	}
	sh.byName[name] = s
	return s
}

// forget ends a share without packets.
func (sh *sharing) forget(s *share) {
	delete(sh.byName, s.name)
	sh.all[s.num] = nil
	sh.free = append(sh.free, s.num)
	if len(sh.free) == len(sh.all)-1 { // only the empty one is left: give the memory back
		sh.all, sh.free, sh.byName = []*share{sh.all[0]}, nil, map[string]*share{"": sh.all[0]}
		for i := range sh.heaps {
			sh.heaps[i] = slices.Clone(sh.heaps[i])
		}
		sh.wakes = slices.Clone(sh.wakes)
	}
}

// inShare says that a lane of a queue is of the share with a name. With a nil name any is; without
// shares all are of the empty one.
func (x *Index) inShare(u *queue, l *lane, name []byte) bool {
	if name == nil || u.shares == nil {
		return len(name) == 0
	}
	return u.shares.of(l).name == string(name)
}

// find returns the share of a packet, nil for the empty one; false if it does not exist.
func (sh *sharing) find(key, tags []byte) (s *share, ok bool) {
	name := sh.name(key, tags)
	if len(name) == 0 {
		return nil, true
	}
	s, ok = sh.byName[string(name)]
	return s, ok
}

func (sh *sharing) name(key, tags []byte) (name []byte) {
	switch {
	case sh.rule == nil:
		return nil
	case sh.rule.Name == nil:
		name = key
	case len(tags) > 0:
		sh.scratch = append(sh.scratch[:0], tags...) // so those of the caller do not escape
		name = sh.rule.Name(sh.scratch)
	}
	if len(name) > MaxShareName {
		return nil
	}
	return name
}

// shareFor returns the share of a packet of a queue, a new one if there is none; nil for the empty
// one, also if the queue has no place for another lane.
func (x *Index) shareFor(q QueueID, key, tags []byte, wide bool) *share {
	sh := x.queues.At(uint32(q)).shares
	if sh == nil || sh.lanes >= sh.most && !x.HasLane(q, key, tags, wide) {
		return nil
	}
	s, ok := sh.find(key, tags)
	if !ok {
		u := x.queues.At(uint32(q))
		s = x.addShare(u, string(sh.name(key, tags)))
		x.followLimits(u, s)
	}
	return s
}

// changeLane makes a packet that is not linked one of a share of a queue. tags are its own.
func (x *Index) changeLane(e *entry, to QueueID, s *share, tags []byte) {
	lane := x.laneFor(to, s, tags, x.lanes.At(uint32(e.lane)).wide)
	x.leaveLane(e)
	x.joinLane(e, lane)
}

func (sh *sharing) rest(tags []byte) []byte {
	if sh.rule == nil || sh.rule.Rest == nil || len(tags) == 0 {
		return tags
	}
	return sh.rule.Rest(tags)
}

// tagSets is TagSets. Without further tags packets are of lanes, too, but of no set.
func (sh *sharing) tagSets(tags []byte) (n int, has bool) {
	n = len(sh.sets)
	if sh.sets[""] > 0 {
		n--
	}
	rest := sh.rest(tags)
	return n, len(rest) == 0 || sh.sets[string(rest)] > 0
}

// countLane notes that a lane comes, or goes.
func (sh *sharing) countLane(l *lane, by int) {
	sh.lanes += by
	rest := sh.rest([]byte(l.tags))
	if n := sh.sets[string(rest)] + by; n > 0 {
		sh.sets[string(rest)] = n
	} else {
		delete(sh.sets, string(rest))
	}
}

// countShare notes that a packet of a lane has been linked by its state, or unlinked.
func (x *Index) countShare(u *queue, l *lane, e *entry, by int) {
	sh := u.shares
	s := sh.of(l)
	if e.state <= Claimed {
		s.unfinished += uint32(by)
	}
	switch {
	case e.selectable():
		sh.bands[band(e.priority)] += by
	case e.state == Claimed:
		s.claimed += uint32(by)
	case e.state != Ready: // priority 0 may have had a turn
		return
	}
	x.followLimits(u, s)
}
