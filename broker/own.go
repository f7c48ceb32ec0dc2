package broker

import (
	"cmp"
	"slices"

	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/recovery"
	"github.com/holdfast-queue/holdfast/storage/content"
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
	was := all.byName[string(s.Name)]
	all.limits += limitsOwn(s) - limitsOwn(was)
	all.rests += restsOnly(s) - restsOnly(was)
	all.byName[string(s.Name)] = s
}

// putShare notes what one share of a queue has of its own. fresh says that the queue knew nothing
// of it.
func (m *Machine) putShare(q *queue, s *Share, fresh bool) {
	q.shares.put(s)
	record := *s
	for _, until := range [...]*int64{&record.HeldUntil, &record.Due} {
		if *until != 0 {
			*until += m.tx.now - m.tx.steady // on the wall clock
		}
	}
	m.open.ops.PutShare(&record, fresh)
	m.ix.SetShare(q.ix, string(s.Name), recovery.ShareOwn(s))
}

// keepShare notes what one share of a queue has of its own from now on, which may be nothing.
func (m *Machine) keepShare(q *queue, s *Share) {
	was := q.shares.byName[string(s.Name)]
	if s.HeldUntil == 0 {
		s.HeldBy = ""
	}
	switch {
	case was != nil && s.Empty():
		q.shares.forget(was)
		m.open.ops.DeleteShare(was.ShareID)
		m.ix.SetShare(q.ix, string(s.Name), index.ShareOwn{})
	case !s.Empty():
		s.ShareID = content.ShareID{Queue: q.id}
		if was != nil {
			s.ShareID = was.ShareID
		}
		m.putShare(q, s, was == nil)
	}
}

// endRest notes that the rest of a share is over.
func (m *Machine) endRest(q *queue, name string) {
	if was := q.shares.byName[name]; was != nil {
		s := *was
		s.HeldUntil = 0
		m.keepShare(q, &s)
	}
}

// find is where the share with a number is, or the first one behind it.
func (all *shares) find(number uint64) (at int, there bool) {
	return slices.BinarySearchFunc(all.all, number, func(s *Share, number uint64) int { return cmp.Compare(s.Number, number) })
}

func (all *shares) forget(s *Share) {
	all.limits -= limitsOwn(s)
	all.rests -= restsOnly(s)
	delete(all.byName, string(s.Name))
	*s = Share{ShareID: s.ShareID}
	if len(all.byName) < len(all.all)/2 { // each for itself would move all behind it
		all.all = slices.DeleteFunc(all.all, (*Share).Empty)
	}
	if len(all.byName) == 0 {
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

// restsOnly is 1 for a share that rests and has nothing besides.
func restsOnly(s *Share) int {
	if s == nil || !s.OnlyRests() {
		return 0
	}
	return 1
}
