package broker

import (
	"cmp"
	"slices"

	"github.com/holdfast-queue/holdfast/recovery"
)

// put keeps what a share has. A new one, without a number, gets the next.
func (all *shares) put(s *Share) {
	if all.byName == nil {
		all.byName = make(map[string]*Share)
	}
	if s.Number == 0 {
		s.Number = all.last + 1
	}
	all.last = max(all.last, s.Number)
	if at, there := all.find(s.Number); there {
		all.all[at] = s
	} else {
		all.all = append(all.all, s)
	}
	all.limits += limitsOwn(s) - limitsOwn(all.byName[string(s.Name)])
	all.byName[string(s.Name)] = s
}

// putShare notes what one share of a queue has of its own. fresh says that the queue knew nothing
// of it.
func (m *Machine) putShare(q *queue, s *Share, fresh bool) {
	q.shares.put(s)
	m.open.ops.PutShare(s, fresh)
	m.ix.SetShare(q.ix, string(s.Name), recovery.ShareOwn(s))
}

// find is where the share with a number is, or the first one behind it.
func (all *shares) find(number uint64) (at int, there bool) {
	return slices.BinarySearchFunc(all.all, number, func(s *Share, number uint64) int { return cmp.Compare(s.Number, number) })
}

func (all *shares) forget(s *Share) {
	at, _ := all.find(s.Number)
	all.limits -= limitsOwn(s)
	all.all = slices.Delete(all.all, at, at+1)
	if delete(all.byName, string(s.Name)); len(all.all) == 0 {
		*all = shares{last: all.last}
	}
}

// limitsOwn is 1 for a share with a limit of its own.
func limitsOwn(s *Share) int {
	if s == nil || s.MaxClaimed == 0 {
		return 0
	}
	return 1
}
