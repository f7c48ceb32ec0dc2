package broker

import (
	"bytes"
	"slices"

	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/recovery"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// Defaults returns the settings of a name's queue that has none of its own; nil for
// DefaultSettings. They are not stored. Names of the same settings get the same pointer, and what
// it points to never changes.
type Defaults func(name string) *Settings

// defaultsSlice is how many queues follow new defaults before others have their turn: some
// milliseconds, with many patterns and long names.
const defaultsSlice = 256

// SetDefaults replaces the defaults. The first queues follow them at once, the others within the
// next turns. A queue that subscribers share stays theirs if it is to have one consumer.
func (tx *Tx) SetDefaults(d Defaults) {
	m := tx.m
	m.defaults, m.unfollowed = d, len(m.queues.all)
	m.followDefaults()
}

// followDefaults has queues follow new defaults. It is a part of Work.
func (m *Machine) followDefaults() (more bool) {
	to := min(m.unfollowed, len(m.queues.all))
	m.unfollowed = max(0, to-defaultsSlice)
	for _, q := range m.queues.all[m.unfollowed:to] {
		if q == nil || m.isFlushed(q) || !m.follow(q) {
			continue
		}
		m.listIdle(q)
		m.mark(q.waiters)
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
	if s == nil && !q.dropped {
		if s = m.defaultsOf(q.entry.Name()); m.begun != 0 { // else recovery follows whatever they are
			s = m.keepShareBy(q, s)
		}
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
	if string(settingsOf(q).ShareBy) != string(was.ShareBy) && !q.dropped {
		m.shareBy(q)
	}
	if now := settingsOf(q); (now.Strict != was.Strict || now.HoldsDead() != was.HoldsDead()) && !q.dropped {
		m.ix.SetStrict(q.ix, now.Strict, now.HoldsDead())
		m.sortLater(q)
	}
	if l := limitsOf(settingsOf(q)); l != limitsOf(was) {
		m.ix.SetLimits(q.ix, l)
		m.sortLater(q)
	}
	if settingsOf(q).Full == FullDrop && m.ix.KeepWorst(q.ix) {
		m.sortLater(q)
	}
	if keep := settingsOf(q).RetainDead; keep != was.RetainDead {
		m.ix.KeepDead(q.ix, keep)
		if m.ix.Counts(q.ix).Dead > 0 {
			m.redated[q] = index.Place{}
		}
	}
	return true
}

// shareBy has a queue follow its share-by. The index knows what shares have of their own as long as
// packets are in shares; what does nothing but rest then has yet to be ended.
func (m *Machine) shareBy(q *queue) {
	known := m.sharedOut(q)
	m.ix.ShareBy(q.ix, recovery.ShareRule(settingsOf(q).ShareBy))
	if len(settingsOf(q).ShareBy) == 0 {
		m.endRests(q)
	} else if !known {
		for _, own := range q.shares.all {
			if !own.Empty() && !own.OnlyRests() {
				m.ix.SetShare(q.ix, string(own.Name), recovery.ShareOwn(own))
			}
		}
	}
	m.sortLater(q)
}

// sortLater has the shares of a queue follow a change, in slices.
func (m *Machine) sortLater(q *queue) {
	if !slices.Contains(m.sorted, q) {
		m.sorted = append(m.sorted, q)
	}
}

// keepShareBy returns the defaults that come in force for a queue. If it cannot follow a change of
// share-by, they have the one that it has.
func (m *Machine) keepShareBy(q *queue, s *Settings) *Settings {
	of := s
	if of == nil {
		of = &defaultSettings
	}
	err := m.checkShareBy(q, of)
	if err == nil {
		return s
	}
	kept := of.Clone()
	kept.ShareBy = settingsOf(q).ShareBy
	m.log.Warn("a queue keeps the share-by that it had, until its defaults change again", "queue", q.entry.Name(), "share_by", string(kept.ShareBy), "why", err)
	return kept
}

func limitsOf(s *Settings) index.Limits {
	gap, _ := content.ParseRate(s.Rate)
	shareGap, _ := content.ParseRate(s.ShareRate)
	return index.Limits{
		Claimed: uint32(s.MaxClaimed), ShareClaimed: uint32(s.ShareMaxClaimed),
		Gap: gap, ShareGap: shareGap, Burst: s.RateBurst,
	}
}

// spendRates lets the rates of all queues begin with their burst spent: it is the first turn.
func (m *Machine) spendRates() {
	for _, q := range m.queues.all {
		if q != nil {
			m.ix.Spend(q.ix, m.ended, q.due)
		}
	}
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

// defaultsOf returns the defaults of a name, nil for DefaultSettings. Where they make the queue its
// own dead-letter queue, it has none.
func (m *Machine) defaultsOf(name string) *Settings {
	if m.defaults == nil {
		return nil
	}
	s := m.defaults(name)
	if s != nil && bytes.Equal(s.DeadLetter, []byte(name)) {
		own := *s
		own.DeadLetter = nil
		return &own
	}
	return s
}
