package index

import (
	"math"

	"github.com/holdfast-queue/holdfast/index/tree"
)

// Index is the order of all queues, see the package comment.
type Index struct {
	entries     tree.Slab[entry, *entry]
	forest      tree.Forest
	keys        keyTable
	largeGroups tree.Slab[largeGroup, *largeGroup]
	timers      timers
	deliveries  tree.Slab[delivery, *delivery]
	identities  identities
	values      valueBuild
	uniques     uniques
	byStates    tree.Slab[byState, *byState]
	lanes       tree.Slab[lane, *lane]
	queues      tree.Slab[queue, *queue]
	held        heldWalks
	mostResting int            // MaxResting
	strays      map[uint32]int // packets by their Delivery.Origin, if that is not 0
	freed       []uint32       // origins that no packet names any more, and FreedOrigins has yet to tell
	charged     []charged      // that Charged has yet to tell
	progress    func()         // as of OnProgress; nil: none
	clock       int64          // as SetClock has said, in nanoseconds
}

// New returns an index without queues.
func New() *Index {
	return &Index{mostResting: MaxResting, keys: newKeyTable(), uniques: uniques{ids: newKeyTable()}}
}

// HasRoom says whether that number of packets can still be added.
func (x *Index) HasRoom(packets int) bool { return int(x.entries.Live)+packets < math.MaxUint32 }

// FreeBytes returns how many bytes packets and queues have left that are gone: those that come get
// them. They are given back when nothing of their kind is left.
func (x *Index) FreeBytes() int64 {
	return x.queues.FreeBytes() + x.byStates.FreeBytes() + x.lanes.FreeBytes() + x.largeGroups.FreeBytes() +
		x.entries.FreeBytes() + x.forest.FreeBytes() + x.timers.FreeBytes() + x.deliveries.FreeBytes() +
		x.keys.groups.FreeBytes() + x.keys.blocks.FreeBytes() + x.uniques.ids.groups.FreeBytes() + x.uniques.ids.blocks.FreeBytes()
}

// Push adds a packet and returns its number. It returns 0 and adds nothing when the queue or the
// state is unknown, the key or the id is longer than MaxKey, or HasRoom says no.
//
// A packet that has expired is added all the same: the next Advance reports it, so that its record
// can go too.
func (x *Index) Push(e Entry, now int64) ID {
	if !x.hasQueue(e.Queue) || e.State > Damaged || max(len(e.Key), len(e.Unique)) > MaxKey || !x.HasRoom(1) {
		return 0
	}
	id := x.entries.Alloc()
	p := x.entries.At(id)
	if e.Key != nil {
		p.group = x.keys.findOrAdd(e.Queue, e.Key)
	} else {
		p.setHash(e.Hash)
	}
	if len(e.Unique) > 0 {
		x.setUnique(id, p, e.Queue, e.Unique)
		if e.UntilClaim {
			p.rare |= rareUntilClaim
		}
	}
	p.setSeq(e.Seq)
	if e.Identity != 0 {
		x.setIdentity(id, p, e.Identity)
	}
	p.priority, p.size, p.tagBytes = e.Priority, e.Size, packTagBytes(e.TagBytes)
	p.ref, p.flags = e.Ref, e.Flags
	p.state = max(e.State, Ready)
	if p.state == Ready && e.Until > max(now, 0) {
		p.state = Delayed
	}
	if e.Expiry > 0 {
		x.timer(id, p).expiry = split64(e.Expiry)
	}
	x.setUntil(id, p, e.Until)
	x.setDelivery(id, p, e.Delivery)
	x.joinLane(p, x.laneFor(e.Queue, x.shareFor(e.Queue, e.Key, e.Tags, e.Wide), e.Tags, e.Wide))
	x.schedule(p)
	x.link(id, p)
	x.followKey(p)
	x.addIdentity(id, p)
	x.linkUnique(id, p)
	return ID(id)
}

// Get returns a packet; false when the number is not in use.
func (x *Index) Get(id ID) (Packet, bool) {
	e := x.entry(id)
	if e == nil {
		return Packet{}, false
	}
	return x.packet(uint32(id), e), true
}

// Key appends the key of a packet to dst; false when it has none or the number is not in use.
func (x *Index) Key(id ID, dst []byte) ([]byte, bool) {
	e := x.entry(id)
	if e == nil || e.group == 0 {
		return dst, false
	}
	return x.keys.appendKey(dst, e.group), true
}

// Only returns the packet of a queue with this key when there is just one, in any state but Done. n
// is how many there are, 2 for two or more. A nil key is an empty key here.
func (x *Index) Only(q QueueID, key []byte) (p Packet, n int) {
	if !x.hasQueue(q) {
		return Packet{}, 0
	}
	g := x.keys.find(q, key)
	if g == 0 {
		return Packet{}, 0
	}
	id, n := x.onlyMember(x.keys.groups.At(g))
	if n == 1 {
		p = x.packet(id, x.entries.At(id))
	}
	return p, n
}

// Remove removes a packet, in any state; false when the number is not in use.
func (x *Index) Remove(id ID) bool {
	e := x.entry(id)
	if e == nil {
		return false
	}
	x.remove(uint32(id), e)
	return true
}

// Replace adds a packet in the place of another one. A share that has no other keeps its turn.
func (x *Index) Replace(id ID, e Entry, now int64) ID {
	stay := entry{lane: x.entry(id).lane}
	x.lanes.At(uint32(stay.lane)).packets++
	x.Remove(id)
	put := x.Push(e, now)
	x.leaveLane(&stay)
	return put
}

// Move gives a packet, in any state, the queue, the place, the expiry and the flags that p has. It
// keeps all else. False when its number is not in use, or there is no such queue. The sequence must
// be unique as for Push.
func (x *Index) Move(p Packet) bool {
	e, id := x.entry(p.ID), uint32(p.ID)
	if e == nil || !x.hasQueue(p.Queue) {
		return false
	}
	identity := x.identity(id, e)
	x.unlink(id, e)
	if x.lanes.At(uint32(e.lane)).queue != p.Queue {
		x.changeQueue(id, e, p.Queue)
	}
	e.priority, e.flags = p.Priority, p.Flags
	e.setSeq(p.Seq)
	x.setIdentity(id, e, identity)
	if e.timer != 0 || p.Expiry > 0 {
		x.timer(id, e).expiry = split64(p.Expiry)
		x.freeTimerIfEmpty(e)
	}
	x.schedule(e) // also of a dead packet: RescheduleDead, under way, may be past its new place
	x.link(id, e)
	x.followKey(e)
	return true
}

// changeQueue brings a packet that is not linked to another queue, with its tags, key and id.
func (x *Index) changeQueue(id uint32, e *entry, to QueueID) {
	var key []byte
	if group := e.group; group != 0 {
		key = x.keys.appendKey(nil, group)
		e.group = x.keys.findOrAdd(to, key)
		x.follow(x.queueOf(e), group)
		x.freeGroupIfEmpty(group)
	}
	if unique, ok := x.Unique(ID(id), nil); ok {
		untilClaim := e.rare & rareUntilClaim
		x.unlinkUnique(id, e)
		x.freeUnique(id, e)
		x.setUnique(id, e, to, unique)
		e.rare |= untilClaim
		x.linkUnique(id, e)
	}
	tags := []byte(x.lanes.At(uint32(e.lane)).tags)
	x.changeLane(e, to, x.shareFor(to, key, tags, x.lanes.At(uint32(e.lane)).wide), tags)
}

// SetRef sets the caller's reference if the packet with this number still has this sequence. So a
// number that was kept for too long does no harm.
func (x *Index) SetRef(id ID, seq uint64, ref uint32) bool {
	e := x.entry(id)
	if e == nil || e.seqNumber() != seq {
		return false
	}
	e.ref = ref
	return true
}

// entry returns the slot of a packet, nil when it is free.
func (x *Index) entry(id ID) *entry {
	if !x.entries.Has(uint32(id)) {
		return nil
	}
	e := x.entries.At(uint32(id))
	if e.state == 0 {
		return nil
	}
	return e
}

// queueOf returns the queue of a packet.
func (x *Index) queueOf(e *entry) *queue {
	return x.queues.At(uint32(x.lanes.At(uint32(e.lane)).queue))
}

func (x *Index) packet(id uint32, e *entry) Packet {
	l := x.lanes.At(uint32(e.lane))
	p := Packet{
		ID: ID(id), Queue: l.queue, Share: l.share.number(), Lane: e.lane, Priority: e.priority, Seq: e.seqNumber(),
		Identity: x.identity(id, e), Size: e.size, TagBytes: unpackTagBytes(e.tagBytes), Flags: e.flags,
		State: e.state, Ref: e.ref, HasUnique: e.rare&rareUnique != 0, UntilClaim: e.rare&rareUntilClaim != 0,
	}
	if e.timer == 0 {
		return p
	}
	t := x.timers.At(e.timer)
	p.Expiry, p.Until = join64(t.expiry), join64(t.until)
	if t.delivery != 0 {
		d := x.deliveries.At(t.delivery)
		p.Stored, p.Consumer = d.Stored, d.Consumer
	}
	return p
}

// link puts a packet, by its state, into the order or into its tree by state, and into its group.
func (x *Index) link(id uint32, e *entry) {
	l := x.lanes.At(uint32(e.lane))
	u := x.queues.At(uint32(l.queue))
	u.strays += x.stray(e)
	if e.group != 0 {
		x.addToGroup(id, e)
	}
	if u.rules != nil && u.rules.strict != nil {
		x.joinOrder(u, id, e)
	}
	if !e.selectable() {
		x.linkByState(u, id, e)
		if u.shares != nil {
			x.countShare(u, l, e, 1)
		}
		return
	}
	u.ready++
	u.priorities -= int32(l.tree.Priorities)
	x.mustInsert(&l.tree, e.place(), id)
	u.priorities += int32(l.tree.Priorities)
	x.updateHeads(l)
	if u.values != nil && x.values.reached(u, id) {
		x.linkValue(u, id, e)
	}
	if u.fresh != nil && !u.inOrder() {
		x.came(u, e.lane)
	}
	if u.shares != nil {
		x.countShare(u, l, e, 1)
	}
}

// unlink is the reverse of link.
func (x *Index) unlink(id uint32, e *entry) {
	l := x.lanes.At(uint32(e.lane))
	u := x.queues.At(uint32(l.queue))
	u.strays -= x.stray(e)
	if e.group != 0 {
		x.removeFromGroup(id, e)
	}
	if e.rare&(rareGives|rareHolds) != 0 {
		x.leaveOrder(u, e)
	}
	if !e.selectable() {
		x.unlinkByState(u, e)
		if u.shares != nil {
			x.countShare(u, l, e, -1)
		}
		return
	}
	u.ready--
	u.priorities -= int32(l.tree.Priorities)
	x.forest.Remove(&l.tree, e.place())
	u.priorities += int32(l.tree.Priorities)
	x.updateHeads(l)
	if u.values != nil && x.values.reached(u, id) {
		x.unlinkValue(u, e)
	}
	if u.values != nil && u.ready == 0 {
		x.dropValues(u)
	}
	if u.shares != nil {
		x.countShare(u, l, e, -1)
	}
}

// remove removes a packet and what nothing else needs then: its timer, its group, its lane.
func (x *Index) remove(id uint32, e *entry) {
	x.unlinkUnique(id, e)
	x.freeUnique(id, e)
	x.removeIdentity(id, e)
	x.unlink(id, e)
	x.followKey(e)
	if e.timer != 0 {
		if d := x.timers.At(e.timer).delivery; d != 0 {
			x.countOrigin(x.deliveries.At(d).Origin, 0)
			x.deliveries.Free(d)
		}
		x.timers.schedule(e.timer, e.state.clock(), 0)
		x.timers.Free(e.timer)
	}
	x.freeGroupIfEmpty(e.group)
	x.leaveLane(e)
	x.entries.Free(id)
}

// freeGroupIfEmpty ends a group, if it is one, that has no member.
func (x *Index) freeGroupIfEmpty(group uint32) {
	if group != 0 && x.keys.groups.At(group).head == 0 {
		x.keys.remove(group)
	}
}

// mustInsert adds a packet to a tree. It panics if the place is taken.
func (x *Index) mustInsert(t *tree.Tree, k tree.Place, id uint32) {
	if !x.forest.Insert(t, k, id) {
		panic("index: two packets of one queue have the same priority and sequence: the caller must keep them unique")
	}
}
