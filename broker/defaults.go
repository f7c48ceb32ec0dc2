package broker

import (
	"github.com/holdfast-queue/holdfast/index"
)

// Defaults returns the settings of a name's queue that has none of its own; nil for
// DefaultSettings. They are not stored. Names of the same settings get the same pointer, and what
// it points to never changes.
type Defaults func(name string) *Settings

// defaultsSlice is how many queues follow new defaults before others have their turn: some
// milliseconds, with many patterns and long names. Where packets move, it is MaxMoves of these.
const defaultsSlice = 256

// SetDefaults replaces the defaults. The first queues follow them at once, the others within the
// next turns. A queue that subscribers share stays theirs if it is to have one consumer. One with
// more than MaxMoves packets keeps the shape that it has.
func (tx *Tx) SetDefaults(d Defaults) {
	m := tx.m
	m.defaults, m.unfollowed, m.kept = d, len(m.queues.all), 0
	m.followDefaults()
}

// followDefaults has queues follow new defaults. It is a part of Work.
func (m *Machine) followDefaults() (more bool) {
	if m.unfollowed == 0 {
		return false
	}
	m.unfollowed, m.moved = min(m.unfollowed, len(m.queues.all)), 0
	for n := 0; m.unfollowed > 0 && n < defaultsSlice; n++ {
		q := m.queues.all[m.unfollowed-1]
		if q != nil && !m.isFlushed(q) {
			if m.moved > 0 && m.moved+m.ix.Counts(q.ix).Len() > MaxMoves {
				return true
			}
			if m.follow(q) {
				m.listIdle(q)
				m.mark(q.waiters)
			}
			if q.keeps {
				m.kept, m.keeper = m.kept+1, q.entry.Name()
			}
		}
		m.unfollowed--
	}
	if m.unfollowed == 0 && m.kept > 0 {
		m.tellServer(Event{Kind: EventShape, Queue: m.keeper, Queues: m.kept})
	}
	return m.unfollowed > 0
}

// setSettings gives a queue settings of its own, nil for none.
func (m *Machine) setSettings(q *queue, s *Settings) {
	q.own = s
	m.follow(q)
}

// follow has the settings of a queue in force that are so now. It returns false if these were.
func (m *Machine) follow(q *queue) (changed bool) {
	s := q.own
	if q.keeps = false; s == nil && !q.dropped {
		s, q.keeps = m.keepShape(q, m.defaultsOf(q.entry.Name()))
	}
	if s == q.settings {
		return false
	}
	was := settingsOf(q)
	q.settings, q.orders = s, ordersOf(s)
	q.endRoles()
	m.keepRole(q)
	if q.own == nil && len(settingsOf(q).DeadLetter) == 0 {
		delete(m.queues.origins, q.id)
	} else {
		if m.queues.origins == nil {
			m.queues.origins = make(map[uint32]*queue)
		}
		m.queues.origins[q.id] = q
	}
	m.ix.SetAlarm(q.ix, endOfPause(settingsOf(q)))
	if settingsOf(q).AlertAge > 0 {
		m.alert(q)
	}
	if now := settingsOf(q); was.PauseOut && !now.PauseOut || len(was.Orders)+len(now.Orders) > 0 {
		m.ix.Refresh(q.ix) // filters may take what they did not
	}
	if !q.dropped {
		m.reshape(q, was)
	}
	if l, old := limitsOf(settingsOf(q)), limitsOf(was); l != old {
		m.ix.SetLimits(q.ix, l)
		if l.ShareGap != old.ShareGap || l.Burst != old.Burst {
			m.setFrom(q, 0)
		}
	}
	if keep := settingsOf(q).RetainDead; keep != was.RetainDead {
		m.ix.KeepDead(q.ix, keep)
		if m.ix.Counts(q.ix).Dead > 0 {
			m.redated[q] = index.Place{}
		}
	}
	return true
}

// dueOfOld is a share that an earlier version has written the due of its queue's rate of. While the
// record has it, each start takes the moment of the shares for unknown.
type dueOfOld struct {
	queue *queue
	share string
}

// spendRates lets the rates of all queues begin with their burst spent: it is the first turn. Work
// writes the moments that are new: they must not move with each start.
func (m *Machine) spendRates() {
	var moved []*queue
	var old []dueOfOld
	for _, q := range m.queues.all {
		if q == nil {
			continue
		}
		if from := m.ix.Spend(q.ix, m.ended, q.due, q.from); from != q.from {
			q.from, q.stale = from, true
			moved = append(moved, q)
		}
		for _, s := range q.shares.all {
			if s.Due != 0 && len(s.Rate) == 0 {
				old = append(old, dueOfOld{q, string(s.Name)})
			}
		}
	}
	discard(m, moved, func(m *Machine, q *queue) (more bool) {
		if !m.isGone(q) {
			m.define(q)
		}
		return false
	})
	discard(m, old, func(m *Machine, o dueOfOld) (more bool) {
		if was := o.queue.shares.byName[o.share]; !m.isGone(o.queue) && was != nil && len(was.Rate) == 0 {
			s := *was
			s.Due, s.DueGap = 0, 0
			m.keepShare(o.queue, &s)
		}
		return false
	})
}

// endOfPause is when the first pause of a queue ends, 0 for never.
func endOfPause(s *Settings) int64 {
	if s.PauseInUntil == 0 || s.PauseOutUntil == 0 {
		return s.PauseInUntil + s.PauseOutUntil
	}
	return min(s.PauseInUntil, s.PauseOutUntil)
}

// endPauses ends the pauses of a queue whose moment has come.
func (m *Machine) endPauses(q *queue) {
	if q.own == nil { // it was flushed
		return
	}
	s := q.own.Clone()
	if s.PauseInUntil != 0 && s.PauseInUntil <= m.tx.now {
		s.PauseIn, s.PauseInUntil = false, 0
	}
	if s.PauseOutUntil != 0 && s.PauseOutUntil <= m.tx.now {
		s.PauseOut, s.PauseOutUntil = false, 0
	}
	m.setSettings(q, s)
	q.stale = true
	m.define(q)
	m.changed(q)
}

// defaultsOf returns the defaults of a name, nil for DefaultSettings.
func (m *Machine) defaultsOf(name string) *Settings {
	if m.defaults == nil {
		return nil
	}
	return withoutItself(m.defaults(name), name)
}

// withoutItself returns the settings of a name with no dead-letter queue, where they make the queue
// its own.
func withoutItself(s *Settings, name string) *Settings {
	if s == nil || string(s.DeadLetter) != name {
		return s
	}
	own := *s
	own.DeadLetter = nil
	return &own
}
