package index

import (
	"math"
	"slices"

	"github.com/holdfast-queue/holdfast/index/tree"
)

// A packet without a key is in no group, so the ring fields of its entry are free: they hold the
// hash of its value. The first search of a long queue makes a tree of its packets by hash, in
// slices if it is asked to. The tree is kept up to date as long as the queue has selectable
// packets, also while none of them is in it because all have keys.
//
// The place of a packet in that tree is the upper half of its hash and its sequence. So equal
// values stand in the order of their sequences, and a search stops when it has found enough.

// searchedByWalk is the most packets of a queue that are searched one by one: a tree would cost
// more than it saves. The model's test changes it.
var searchedByWalk = 32

// MaxSorted is the most packets with one hash that are found in a queue of several priorities.
const MaxSorted = 1 << 14

// hash is the hash of the packet's value; 0 if it has a key or the hash is unknown.
func (e *entry) hash() uint64 {
	if e.group != 0 {
		return 0
	}
	return uint64(e.prev)<<32 | uint64(e.next)
}

func (e *entry) setHash(hash uint64) { e.next, e.prev = uint32(hash), uint32(hash>>32) }

// valuePlace is the packet's place in the tree of values of its queue.
func (e *entry) valuePlace() tree.Place { return tree.Place{Priority: e.prev, Seq: e.seqNumber()} }

// valueBuild is the queue whose tree of values is being made, and how far that is.
type valueBuild struct {
	queue *queue // nil: none
	built uint32 // packets with a lower number are in the tree
}

// reached says that a packet belongs into the tree of values that its queue has.
func (b *valueBuild) reached(u *queue, id uint32) bool { return u != b.queue || id < b.built }

// unsearchable stands in place of the tree of a queue that can have none: in a damaged folder two
// packets may have one sequence, and if they have one value too, they have one place. Searches
// walk.
var unsearchable = new(tree.Tree)

// Unsearched is how many packets a search of the queue would bring into its tree of values at once:
// 0 if it needs none or has it.
func (x *Index) Unsearched(q QueueID) int {
	if !x.hasQueue(q) {
		return 0
	}
	u := x.queues.At(uint32(q))
	if u.values == nil && u.ready > searchedByWalk || u == x.values.queue {
		return u.ready
	}
	return 0
}

// BuildValues does a part of the tree of values that a search of the queue needs: all of at most n
// packets, or n numbers of packets. It returns how many that were, and true if there may be more to
// do. One long tree is made at a time: the search that comes first goes on first.
func (x *Index) BuildValues(q QueueID, n int) (built int, more bool) {
	ready := x.Unsearched(q)
	if ready == 0 {
		return 0, false
	}
	u, b := x.queues.At(uint32(q)), &x.values
	switch {
	case u.values == nil && ready <= n:
		x.addValues(u)
		return ready, false
	case b.queue == nil:
		u.values = new(tree.Tree)
		*b = valueBuild{u, 1}
	}
	of := b.queue
	for ; built < n && b.built < x.entries.Used; built++ {
		id := b.built
		b.built++
		x.forest.Passed += passedBuild
		if e := x.entries.At(id); e.state != 0 && x.queueOf(e) == of {
			x.linkValue(of, id, e)
		}
	}
	if b.built >= x.entries.Used {
		*b = valueBuild{}
	}
	return built, x.Unsearched(q) > 0
}

// FindValue appends to dst the selectable packets of a queue that have this hash: at most max, or
// all if that is 0 or less. They come in the order of Next at the newest end, behind a place, or
// with Oldest in the reverse of that, from a place on; one of priority 0 leaves none out. The first
// search of a long queue costs O(n log n), any other O(log n + packets found) if the queue has one
// priority. If it has several, all packets with the hash are found and sorted first: ok is false if
// they are more than MaxSorted.
func (x *Index) FindValue(q QueueID, hash uint64, end End, from Place, max int, dst []Packet) (found []Packet, ok bool) {
	if !x.hasQueue(q) || hash == 0 || end > Oldest {
		return dst, true
	}
	if from.Priority == 0 && end == Oldest {
		from = Place{Priority: math.MaxUint32}
	}
	u := x.queues.At(uint32(q))
	if x.Unsearched(q) > 0 {
		x.addValues(u)
	}
	if max <= 0 {
		max = u.ready
	}
	known := u.values != nil && u.values != unsearchable
	if only, one := x.onlyPriority(u); known && one {
		switch {
		case from.Priority < only:
			from.Seq = math.MaxUint64
		case from.Priority > only:
			from.Seq = 0
		}
		return x.findInOrder(u.values, hash, end, from.Seq, max, dst), true
	}
	first := len(dst)
	if known {
		dst = x.findInOrder(u.values, hash, Oldest, 0, MaxSorted+1, dst)
	} else {
		dst = x.findByWalk(u, hash, dst)
	}
	x.forest.Passed += passedSort * len(dst[first:])
	if len(dst[first:]) > MaxSorted {
		return dst[:first], false
	}
	all := slices.DeleteFunc(dst[first:], func(p Packet) bool {
		return Newest.Earlier(tree.Place{Priority: from.Priority, Seq: from.Seq}, tree.Place{Priority: p.Priority, Seq: p.Seq}) != (end == Newest)
	})
	slices.SortFunc(all, func(a, b Packet) int {
		if Newest.Earlier(tree.Place{Priority: a.Priority, Seq: a.Seq}, tree.Place{Priority: b.Priority, Seq: b.Seq}) == (end == Newest) {
			return -1
		}
		return 1
	})
	return dst[:first+min(len(all), max)], true
}

// findInOrder appends at most max packets with a hash: with Newest those before a sequence, the
// last first, with Oldest those from it on.
func (x *Index) findInOrder(t *tree.Tree, hash uint64, end End, seq uint64, max int, dst []Packet) []Packet {
	group := uint32(hash >> 32)
	from, ok := tree.Place{Priority: group, Seq: seq}, true
	if end == Newest {
		from, ok = end.Behind(from)
	}
	if !ok {
		return dst
	}
	w := x.forest.WalkFrom(t, from, end)
	for ; max > 0 && !w.Done(); w.Next() {
		k, id := w.At()
		if k.Priority != group {
			break
		}
		if e := x.entries.At(id); e.hash() == hash {
			dst = append(dst, x.packet(id, e))
			max--
		}
	}
	return dst
}

// findByWalk appends all packets of a queue with a hash.
func (x *Index) findByWalk(u *queue, hash uint64, dst []Packet) []Packet {
	for l := range x.filled(u) {
		for w := x.forest.Walk(&l.tree, Oldest); !w.Done(); w.Next() {
			_, id := w.At()
			if e := x.entries.At(id); e.hash() == hash {
				dst = append(dst, x.packet(id, e))
			}
		}
	}
	return dst
}

// linkValue puts a packet into the tree of values that its queue has, if it belongs there.
func (x *Index) linkValue(u *queue, id uint32, e *entry) {
	if e.selectable() && e.hash() != 0 && u.values != unsearchable && !x.forest.Insert(u.values, e.valuePlace(), id) {
		x.dropValues(u)
		u.values = unsearchable
	}
}

// unlinkValue is the reverse of linkValue.
func (x *Index) unlinkValue(u *queue, e *entry) {
	if e.selectable() && e.hash() != 0 && u.values != unsearchable {
		x.forest.Remove(u.values, e.valuePlace())
	}
}

// dropValues ends the tree of values of a queue.
func (x *Index) dropValues(u *queue) {
	if u == x.values.queue {
		x.values = valueBuild{}
	}
	if u.values != nil && u.values != unsearchable {
		x.forest.Clear(u.values)
	}
	u.values = nil
}

// addValues makes the tree of values of a queue at once.
func (x *Index) addValues(u *queue) {
	x.dropValues(u)
	u.values = new(tree.Tree)
	for l := range x.filled(u) {
		for w := x.forest.Walk(&l.tree, Oldest); !w.Done() && u.values != unsearchable; w.Next() {
			_, id := w.At()
			x.forest.Passed += passedBuild
			x.linkValue(u, id, x.entries.At(id))
		}
	}
}
