package broker

import (
	"fmt"
	"time"

	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/recovery"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// The shape of a queue is its share-by, its strict order with what on-dead means for that, and the
// order of the worst, which full drop needs where there are shares. All packets of a queue follow a
// change in the turn that asks for it, so a rule is in force when the call returns.

const (
	// MaxMoves is how many packets follow a change of shape without leave: some 20 ms.
	MaxMoves = 10_000
	// MaxForced is how many follow with leave, which is ForceSettings: about a quarter of a minute.
	MaxForced = 10_000_000
	// moveLooks is what each of them costs, see MaxLooks, and each share, which follows limits, too.
	moveLooks = 16
	// moveTime is about how long one of them takes, where they have many shares.
	moveTime = 1500 * time.Nanosecond
)

// reshapes says that settings give a queue another shape.
func reshapes(was, now *Settings) bool {
	return string(was.ShareBy) != string(now.ShareBy) || was.Strict != now.Strict || now.Strict && was.HoldsDead() != now.HoldsDead() ||
		now.Full == FullDrop && was.Full != FullDrop && len(now.ShareBy) > 0
}

func limitsOf(s *Settings) index.Limits {
	gap, _ := content.ParseRate(s.Rate)
	shareGap, _ := content.ParseRate(s.ShareRate)
	return index.Limits{
		Claimed: uint32(s.MaxClaimed), ShareClaimed: uint32(s.ShareMaxClaimed),
		Gap: gap, ShareGap: shareGap, Burst: s.RateBurst,
	}
}

// moves is how many packets of a queue move by a change of its settings.
func (m *Machine) moves(q *queue, was, now *Settings) int {
	if !reshapes(was, now) {
		return 0
	}
	return m.ix.Counts(q.ix).Len()
}

// follows is how many packets and shares of a queue follow a change of its settings.
func (m *Machine) follows(q *queue, was, now *Settings) int {
	n := m.ix.Shares(q.ix) + len(q.shares.all)
	if n > 0 && !reshapes(was, now) && limitsOf(was) == limitsOf(now) {
		n = 0
	}
	return n + m.moves(q, was, now)
}

// mayReshape returns an error if a queue cannot get these settings in one call, and else notes what
// that costs. ErrTooManyLooks.
func (tx *Tx) mayReshape(q *queue, now *Settings, force bool) error {
	n, looks := tx.m.moves(q, settingsOf(q), now), moveLooks*tx.m.follows(q, settingsOf(q), now)
	switch {
	case n > MaxForced:
		return fmt.Errorf("%d packets would move at once, and at most %d can: stop the server, and start it with a configuration that has these settings", n, MaxForced)
	case force:
	case n > MaxMoves:
		return fmt.Errorf("%d packets would move at once, and nobody is served for about %v: FORCE lets them, outside of MULTI", n, (time.Duration(n) * moveTime).Round(10*time.Millisecond))
	case tx.atomic && !tx.mayPass(looks):
		return ErrTooManyLooks
	default:
		tx.looked += looks
	}
	return nil
}

// mayRename is mayReshape of a queue that gets the defaults of another name.
func (tx *Tx) mayRename(q *queue, now *Settings) error {
	if n := tx.m.moves(q, settingsOf(q), now); n > MaxMoves {
		strict := "no"
		if settingsOf(q).Strict {
			strict = "yes"
		}
		return fmt.Errorf("the defaults of the new name would move %d packets: QSET %.100q strict %s first, so that the queue keeps what it has", n, q.entry.Name(), strict)
	}
	return tx.mayReshape(q, now, false)
}

// keepShape returns the defaults that come in force for a queue. Where too many packets would move
// they have the shape that it has.
func (m *Machine) keepShape(q *queue, s *Settings) (of *Settings, keeps bool) {
	if m.begun == 0 || m.moves(q, settingsOf(q), orDefaults(s)) <= MaxMoves { // a start follows whatever they are
		return s, false
	}
	was, kept := settingsOf(q), *orDefaults(s)
	kept.ShareBy, kept.Strict, kept.OnDead = was.ShareBy, was.Strict, was.OnDead
	if kept.OnDead == DeadHolds {
		kept.DeadLetter = was.DeadLetter // the two go with each other
	}
	if kept.Full == FullDrop && len(kept.ShareBy) > 0 {
		kept.Full = was.Full
	}
	return &kept, true
}

// reshape has the packets of a queue follow its settings.
func (m *Machine) reshape(q *queue, was *Settings) {
	now := settingsOf(q)
	m.moved += m.follows(q, was, now)
	if string(now.ShareBy) != string(was.ShareBy) {
		m.shareBy(q)
	}
	if now.Strict != was.Strict || now.HoldsDead() != was.HoldsDead() {
		m.ix.SetStrict(q.ix, now.Strict, now.HoldsDead())
	}
	if now.Full == FullDrop {
		m.ix.KeepWorst(q.ix)
	}
}

// shareBy has a queue follow its share-by. The index knows what shares have of their own as long as
// packets are in shares; what does nothing but rest then has yet to be ended.
func (m *Machine) shareBy(q *queue) {
	known := m.sharedOut(q)
	m.ix.ShareBy(q.ix, recovery.ShareRule(settingsOf(q).ShareBy))
	if len(settingsOf(q).ShareBy) == 0 {
		m.endRests(q)
		m.setFrom(q, 0) // no share would know of it, if there are some again
	} else if !known {
		for _, own := range q.shares.all {
			if !own.Empty() && !own.OnlyRests() {
				m.ix.SetShare(q.ix, string(own.Name), recovery.ShareOwn(own))
			}
		}
	}
}
