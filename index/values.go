package index

import "slices"

// A packet without a key is in no group, so the ring fields of its entry are free: they hold the
// hash of its value. The first search of a long queue makes a tree of its packets by hash, in
// slices if it is asked to. The tree is kept up to date until the queue has nothing left to find.
//
// The place of a packet in that tree is the upper half of its hash and its sequence. So equal
// values stand in the order of their sequences, and a search stops when it has found enough.

// searchedByWalk is the most packets of a queue that are searched one by one: a tree would cost
// more than it saves.
const searchedByWalk = 32

// hash is the hash of the packet's value; 0 if it has a key or the hash is unknown.
func (e *entry) hash() uint64 {
	if e.group != 0 {
		return 0
	}
	return uint64(e.prev)<<32 | uint64(e.next)
}

func (e *entry) setHash(hash uint64) { e.next, e.prev = uint32(hash), uint32(hash>>32) }

// Hash is the hash of a packet's value; 0 if it has a key, the hash is unknown or the number is not
// in use.
func (x *Index) Hash(id ID) uint64 {
	e := x.entry(id)
	if e == nil {
		return 0
	}
	return e.hash()
}

// valuePlace is the packet's place in the tree of values of its queue.
func (e *entry) valuePlace() place { return place{e.prev, e.seqNumber()} }

// valueBuild is the queue whose tree of values is being made, and how far that is.
type valueBuild struct {
	queue *queue // nil: none
	built uint32 // packets with a lower number are in the tree
}

// reached says that a packet belongs into the tree of values that its queue has.
func (b *valueBuild) reached(u *queue, id uint32) bool { return u != b.queue || id < b.built }

// BuildValues goes on with the tree of values that a search of the queue needs, by at most n
// numbers of packets. It returns true if there is more to do. One tree is made at a time: the
// search that comes first goes on first.
func (x *Index) BuildValues(q QueueID, n uint32) (more bool) {
	if !x.hasQueue(q) {
		return false
	}
	u, b := x.queues.at(uint32(q)), &x.values
	switch {
	case u.values == nil && u.ready <= searchedByWalk, u.values != nil && u != b.queue:
		return false
	case u.values == nil && u.ready <= int(n):
		x.addValues(u)
		return false
	case b.queue == nil:
		u.values = new(tree)
		*b = valueBuild{u, 1}
	}
	of := b.queue
	for ; n > 0 && b.built < x.entries.used && of.values != nil; n-- {
		if e := x.entries.at(b.built); e.state != 0 && x.queues.at(uint32(x.lanes.at(uint32(e.lane)).queue)) == of {
			x.linkValue(of, b.built, e)
		}
		b.built++
	}
	if b.built < x.entries.used && of.values != nil {
		return true
	}
	x.endValues(of)
	return u != of && x.BuildValues(q, 0)
}

// endValues ends the making of a tree of values, if it is that of the queue. The tree goes if it is
// empty: the queue may be dropped.
func (x *Index) endValues(u *queue) {
	if u == x.values.queue {
		x.values = valueBuild{}
	}
	if u.values != nil && u.values.count == 0 {
		u.values = nil
	}
}

// FindValue appends to dst the selectable packets of a queue that have this hash: at most max, or
// all if that is 0 or less. They come in the order of Next at the newest end, or with Oldest in the
// reverse of that, from the last packet on. The first search of a long queue costs O(n log n), any
// other O(log n + packets found) if the queue has one priority. If it has several, all packets with
// the hash are found and sorted first.
func (x *Index) FindValue(q QueueID, hash uint64, end End, max int, dst []Packet) []Packet {
	if !x.hasQueue(q) || hash == 0 || end > Oldest {
		return dst
	}
	u := x.queues.at(uint32(q))
	for x.BuildValues(q, x.entries.used) {
	}
	if max <= 0 {
		max = u.ready
	}
	if u.values != nil && x.hasOnePriority(u) {
		return x.findInOrder(u.values, hash, end, max, dst)
	}
	first := len(dst)
	if u.values != nil {
		dst = x.findInOrder(u.values, hash, end, u.ready, dst)
	} else {
		dst = x.findByWalk(u, hash, dst)
	}
	slices.SortFunc(dst[first:], func(a, b Packet) int {
		if Newest.earlier(place{a.Priority, a.Seq}, place{b.Priority, b.Seq}) == (end == Newest) {
			return -1
		}
		return 1
	})
	return dst[:min(len(dst), first+max)]
}

// findInOrder appends at most max packets with a hash, by their sequence from an end on.
func (x *Index) findInOrder(t *tree, hash uint64, end End, max int, dst []Packet) []Packet {
	group := uint32(hash >> 32)
	w := x.forest.walkPriority(t, group, end)
	for ; max > 0 && !w.done(); w.next() {
		k, id := w.at()
		if k.priority != group {
			break
		}
		if e := x.entries.at(id); e.hash() == hash {
			dst = append(dst, x.packet(id, e))
			max--
		}
	}
	return dst
}

// findByWalk appends all packets of a queue with a hash.
func (x *Index) findByWalk(u *queue, hash uint64, dst []Packet) []Packet {
	for t := range x.trees(u, false) {
		for w := x.forest.walk(t, Oldest); !w.done(); w.next() {
			_, id := w.at()
			if e := x.entries.at(id); e.hash() == hash {
				dst = append(dst, x.packet(id, e))
			}
		}
	}
	return dst
}

// linkValue puts a packet into the tree of values that its queue has, if it belongs there. In a
// damaged folder two packets may have one sequence. If they have one value too, the tree goes, and
// searches walk.
func (x *Index) linkValue(u *queue, id uint32, e *entry) {
	if e.selectable() && e.hash() != 0 && !x.forest.insert(u.values, e.valuePlace(), id) {
		x.forest.clear(u.values)
		u.values = nil
	}
}

// unlinkValue is the reverse of linkValue.
func (x *Index) unlinkValue(u *queue, e *entry) {
	if e.selectable() && e.hash() != 0 {
		if x.forest.remove(u.values, e.valuePlace()); u.values.count == 0 {
			x.endValues(u)
		}
	}
}

// addValues makes the tree of values of a queue at once.
func (x *Index) addValues(u *queue) {
	u.values = new(tree)
	for t := range x.trees(u, false) {
		for w := x.forest.walk(t, Oldest); !w.done() && u.values != nil; w.next() {
			_, id := w.at()
			x.linkValue(u, id, x.entries.at(id))
		}
	}
	x.endValues(u)
}
