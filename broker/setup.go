package broker

import (
	"bytes"
	"errors"
	"fmt"
)

// ErrOwnDeadLetter: a queue names itself as its dead-letter queue.
var ErrOwnDeadLetter = errors.New("a queue cannot be its own dead-letter queue: packets that die stay in it anyway")

// Settings returns the settings of a queue, the defaults of its name if it has none of its own;
// what they point to is not to be changed. ok is false if nothing is called so.
func (tx *Tx) Settings(name []byte) (s Settings, ok bool, err error) {
	q, err := tx.open(name, looks)
	switch {
	case err != nil:
		return DefaultSettings(), false, err
	case q != nil:
		return *settingsOf(q), tx.m.exists(q), nil
	}
	if s := tx.m.defaultsOf(string(name)); s != nil {
		return *s, false, nil
	}
	return DefaultSettings(), false, nil
}

// HasOwnSettings says whether a queue has settings of its own.
func (tx *Tx) HasOwnSettings(name []byte) bool {
	q := tx.m.queueNamed(name)
	return q != nil && q.own != nil
}

// SetSettings gives a queue settings of its own, and makes the queue if nothing is called so. It
// lasts from then on, also when it is empty, until it is deleted (Delete). It is refused where more
// than MaxMoves packets would move, see shape.go.
func (tx *Tx) SetSettings(name []byte, s Settings) error {
	if err := tx.CanStore(); err != nil {
		return err
	}
	return tx.setSettings(name, s, false)
}

// ForceSettings is SetSettings where more than MaxMoves packets may move, up to MaxForced. Nobody
// is served meanwhile.
func (tx *Tx) ForceSettings(name []byte, s Settings) error {
	if err := tx.CanStore(); err != nil {
		return err
	}
	return tx.setSettings(name, s, true)
}

// setSettings is SetSettings, or with force ForceSettings, that asks for no room: what it writes is
// small.
func (tx *Tx) setSettings(name []byte, s Settings, force bool) error {
	m := tx.m
	if len(s.DeadLetter) > 0 && string(s.DeadLetter) == string(name) {
		return ErrOwnDeadLetter
	}
	if err := checkName(s.DeadLetter, 0); err != nil {
		return fmt.Errorf("dead-letter queue: %w", err)
	}
	q, err := m.makeQueue(name)
	if err != nil {
		return err
	}
	if err := m.checkShareBy(q, &s); err != nil {
		return err
	}
	if s.ExclusiveConsumer {
		if _, err = m.onlyConsumer(q.roles[consumerRole], q.waiters); err != nil {
			return err
		}
	}
	if err := tx.mayReshape(q, &s, force); err != nil {
		return err
	}
	m.setSettings(q, s.Clone())
	tx.lookedAtSettings(&s)
	q.stale = true
	m.define(q)
	m.changed(q)
	return nil
}

// Pause has a queue give nothing until a moment in Unix milliseconds, or with in take nothing. One
// that is not ahead ends the pause, and changes nothing where there is none. Otherwise it is as
// SetSettings.
func (tx *Tx) Pause(name []byte, in bool, until int64) error {
	may := tx.CanStore
	if until <= tx.now { // it ends one, so that packets can go
		may = tx.canTake
	}
	if err := may(); err != nil {
		return err
	}
	return tx.pause(name, in, until)
}

// pause is Pause that asks for no room.
func (tx *Tx) pause(name []byte, in bool, until int64) error {
	s, _, err := tx.Settings(name)
	if err != nil {
		return err
	}
	paused, end := &s.PauseOut, &s.PauseOutUntil
	if in {
		paused, end = &s.PauseIn, &s.PauseInUntil
	}
	was := *paused
	if *paused, *end = until > tx.now, until; !*paused {
		*end = 0
	}
	if !was && !*paused {
		return nil
	}
	return tx.setSettings(name, s, false)
}

// Share returns what one share of a queue has of its own, nothing if neither is known.
func (tx *Tx) Share(queue, name []byte) (Share, error) {
	q, err := tx.open(queue, looks)
	if err != nil || q == nil || q.shares.byName[string(name)] == nil {
		return Share{Name: name}, err
	}
	return *q.shares.byName[string(name)], nil
}

// SetShare says what one share of a queue has of its own, whether packets of it are there or not.
// That lasts until it is set to nothing, or the queue is deleted. The queue gets settings of its
// own by it, and is made if nothing is called so, as by SetSettings.
func (tx *Tx) SetShare(queue []byte, s Share) error {
	m := tx.m
	if err := tx.CanStore(); err != nil {
		return err
	}
	q, err := tx.open(queue, looks)
	if err != nil {
		return err
	}
	if s.HeldUntil <= tx.steady {
		s.HeldUntil = 0
	}
	var was *Share
	if q != nil {
		was = q.shares.byName[string(s.Name)]
	}
	if was != nil && len(s.Rate) > 0 {
		s.Due, s.DueGap = was.Due, was.DueGap
	}
	switch {
	case len(s.Name) > MaxShareName:
		return fmt.Errorf("%w: the name of a share has at most %d bytes, this one %d", ErrTooLarge, MaxShareName, len(s.Name))
	case was == nil && s.Empty():
		return nil
	case q != nil && restsOnly(&s) == 0 && (was == nil || was.OnlyRests()) && len(q.shares.byName)-q.shares.rests >= MaxShares:
		return fmt.Errorf("%d shares of the queue have something of their own, and no more can: reset some", MaxShares)
	case q.mayRest(&s, was) != nil:
		return q.mayRest(&s, was)
	case q == nil || q.own == nil:
		settings, _, err := tx.Settings(queue)
		if err == nil {
			err = tx.SetSettings(queue, settings)
		}
		if err != nil {
			return err
		}
		q = m.queueNamed(queue)
	}
	if len(settingsOf(q).ShareBy) == 0 { // nobody would tell its end
		s.HeldUntil = 0
	}
	if s.Weight == 1 {
		s.Weight = 0
	}
	s.Name, s.Rate = bytes.Clone(s.Name), bytes.Clone(s.Rate)
	if was != nil && len(was.Rate) > 0 && len(s.Rate) == 0 { // it may have given since
		m.setFrom(q, 0)
	}
	m.keepShare(q, &s)
	m.changed(q)
	return nil
}

// mayRest says whether a share may have a rest and nothing besides.
func (q *queue) mayRest(s, was *Share) error {
	if q != nil && restsOnly(s) > restsOnly(was) && q.shares.rests >= MaxRests {
		return fmt.Errorf("%d shares of the queue rest already, and no more can", MaxRests)
	}
	return nil
}

// redateSlice is how many dead packets follow before others have their turn: some milliseconds.
const redateSlice = 10_000

// redate has dead packets follow a retain-dead that has changed. It is a part
// of Work.
func (m *Machine) redate() (more bool) {
	for q, place := range m.redated { // one of them
		delete(m.redated, q)
		if m.queues.has(q) {
			if place, more = m.ix.RescheduleDead(q.ix, place, redateSlice); more {
				m.redated[q] = place
			}
		}
		break
	}
	return len(m.redated) > 0
}

// Close closes a queue for ever, and makes it if there is none. It returns false if it was closed
// before.
func (tx *Tx) Close(name []byte) (closed bool, err error) {
	s, _, err := tx.Settings(name)
	if err != nil || s.Closed {
		return false, err
	}
	s.Closed = true
	err = tx.SetSettings(name, s)
	return err == nil, err
}
