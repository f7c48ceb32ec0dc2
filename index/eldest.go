package index

import "github.com/holdfast-queue/holdfast/index/tree"

// Eldest calls fn with ready packets, among which is the one that was pushed first if none was
// moved: of each priority the two next to seq, one on each side. Sequences grow away from there, at
// one end of the queue or at the other. It looks at no more than most priorities of all lanes, the
// worst ones of each, as those wait longest. It returns at how many it has looked. Packets of
// priority 0 are left out. Each costs O(log n).
func (x *Index) Eldest(q QueueID, seq uint64, most int, fn func(Packet)) (looked int) {
	if !x.hasQueue(q) {
		return 0
	}
	u := x.queues.At(uint32(q))
	if u.shares == nil {
		return x.eldestIn(&u.lanes, seq, most, fn)
	}
	for s := range u.shares.each() {
		if looked < most {
			looked += x.eldestIn(u.lanesOf(s), seq, most-looked, fn)
		}
	}
	return looked
}

// EldestOf is Eldest of one share.
func (x *Index) EldestOf(q QueueID, share string, seq uint64, most int, fn func(Packet)) (looked int) {
	if s, of := x.shareNamed(q, share); s != nil {
		looked = x.eldestIn(of, seq, most, fn)
	}
	return looked
}

// eldestIn is Eldest of some lanes.
func (x *Index) eldestIn(of *lanes, seq uint64, most int, fn func(Packet)) (looked int) {
	if of.set == nil {
		return x.eldestOf(of.home, seq, most, fn)
	}
	heads := of.set.heaps[Oldest]
	for i := 0; i < len(heads) && looked < most; i++ { // the first one has the best packet of all
		looked += x.eldestOf(heads[i].lane.id, seq, most-looked, fn)
	}
	return looked
}

// eldestOf is Eldest of one lane.
func (x *Index) eldestOf(l LaneID, seq uint64, most int, fn func(Packet)) (looked int) {
	f, t := &x.forest, &x.lanes.At(uint32(l)).tree
	tell := func(id uint32) { fn(x.packet(id, x.entries.At(id))) }
	f.Passed += passedLane
	for w := f.Walk(t, worst); !w.Done() && looked < most; looked++ {
		f.Passed += 2 * passedPaths
		priority := w.Place().Priority
		if w.Seek(tree.Place{Priority: priority, Seq: seq}) { // else it is at the last of all
			if k, id := w.At(); k.Priority == priority {
				tell(id)
			}
			w.Next()
		}
		if w.Done() {
			continue
		}
		if k, id := w.At(); k.Priority == priority {
			tell(id)
			w.Seek(tree.Place{Priority: priority})
			w.Next()
		}
	}
	return looked
}
