package broker

import (
	"slices"

	"github.com/holdfast-queue/holdfast/recovery"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// Garbage is what no call finds any more, and whose records are still on disk: dropped queues, the
// fields of hashes, all that a Flush drops, and what had expired at a start. Work deletes it in
// slices. A start finds what was left of it, and finds records that lost what they belong to.

// sweepSlice is how many records go, or are looked at, before others have their turn.
const sweepSlice = 512

// garbage is some of it.
type garbage interface {
	// sweep deletes some of its records, about n at most. It returns how many it looked at, and
	// whether nothing is left.
	sweep(m *Machine, n int) (looked int, over bool)
}

// sweep deletes a slice of the garbage. It takes half of the open batch: the rest is for others.
// When all is deleted that a Flush dropped, the record of that goes. It is a part of Work.
func (m *Machine) sweep() (more bool) {
	for n := min(sweepSlice, m.limits.MaxOps/4); n > 0 && len(m.garbage) > 0 && m.maySweep(); {
		last := len(m.garbage) - 1 // so that the list of what a Flush has dropped stays short
		looked, over := m.garbage[last].sweep(m, n)
		if n -= looked; over {
			m.garbage = slices.Delete(m.garbage, last, last+1)
		}
	}
	if len(m.garbage) > 0 {
		return m.maySweep()
	}
	m.garbage = nil
	if m.flush != (content.Flush{}) && !m.open.full(m.limits) {
		m.flush = content.Flush{}
		m.open.ops.SetFlush(m.flush)
	}
	return false
}

func (m *Machine) maySweep() bool {
	return !m.refusesDelivery() && m.open.ops.Len() < m.limits.MaxOps/2
}

// pile is garbage of one kind. remove deletes a record of x, and returns true if that has more.
type pile[T any] struct {
	left   []T
	remove func(m *Machine, x T) (more bool)
}

func (p *pile[T]) sweep(m *Machine, n int) (looked int, over bool) {
	for ; looked < n && len(p.left) > 0; looked++ {
		if last := len(p.left) - 1; !p.remove(m, p.left[last]) {
			p.left = p.left[:last]
		}
	}
	return looked, len(p.left) == 0
}

// discard makes garbage of one kind.
func discard[T any](m *Machine, all []T, remove func(m *Machine, x T) (more bool)) {
	if len(all) > 0 {
		m.garbage = append(m.garbage, &pile[T]{all, remove})
	}
}

// loadGarbage gives Work what a start has found.
func (m *Machine) loadGarbage(state *recovery.State) {
	for _, q := range m.queues.all {
		if q != nil && len(settingsOf(q).ShareBy) == 0 {
			m.endRests(q)
		}
	}
	for _, r := range state.Dropped {
		q := &queue{id: r.ID, ix: r.Index, defined: true, dropped: true}
		m.queues.add(q)
		m.garbage = append(m.garbage, q)
	}
	discard(m, state.Leftovers, (*Machine).removeKey)
	discard(m, state.Orphans, func(m *Machine, o content.Removed) (more bool) {
		m.open.ops.DeleteDelivery(o.Identity, o.Stored)
		return false
	})
	discard(m, state.EndedShares, func(m *Machine, id content.ShareID) (more bool) {
		m.open.ops.DeleteShare(id)
		return false
	})
	discard(m, state.EndedUniques, func(m *Machine, id content.UniqueID) (more bool) {
		m.open.ops.DeleteUnique(id)
		return false
	})
	m.loadExpired(state) // last, so that it goes first: what belongs to a packet outlives it
}

// endRests has Work end the rests of the shares of a queue that is not shared out: nobody would
// tell their ends. One that has begun since stays.
func (m *Machine) endRests(q *queue) {
	discard(m, slices.Clone(q.shares.all), func(m *Machine, was *Share) (more bool) {
		now := q.shares.byName[string(was.Name)]
		if now != nil && now.HeldUntil != 0 && now.HeldUntil == was.HeldUntil {
			its := *now
			its.HeldUntil = 0
			m.keepShare(q, &its)
		}
		return false
	})
}
