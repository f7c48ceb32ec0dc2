package broker

import (
	"errors"
	"fmt"

	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/storage"
)

// What a queue does with packets that come and with those that are claimed, the table of all that
// is known of each setting, and what a queue has done since it was made.
type (
	Settings = storage.Settings
	Setting  = storage.Setting
	Order    = storage.Order
	Full     = storage.Full
	Counters = storage.Counters
)

// SettingsTable has a row for each setting.
func SettingsTable() []Setting { return storage.SettingsTable }

// SettingOrders is the kind of the setting whose value is all that follows.
const SettingOrders = storage.SettingOrders

// CheckOrders says what was expected of the orders of a queue, if no queue can have these.
func CheckOrders(orders []Order) error { return storage.CheckOrders(orders) }

// What becomes of a push to a queue that holds as much as its bound allows: it is refused, it
// waits, or the worst packets go.
const (
	FullReject = storage.FullReject
	FullBlock  = storage.FullBlock
	FullDrop   = storage.FullDrop
)

// ErrOwnDeadLetter: a queue names itself as its dead-letter queue.
var ErrOwnDeadLetter = errors.New("a queue cannot be its own dead-letter queue: packets that die stay in it anyway")

// DefaultSettings are those of a queue that has none of its own.
func DefaultSettings() Settings { return storage.DefaultSettings() }

// settingsOf returns the settings of a queue, which are not to be changed.
func settingsOf(q *queue) *Settings {
	if q.settings != nil {
		return q.settings
	}
	return &defaultSettings
}

var defaultSettings = DefaultSettings()

// Settings returns the settings of a queue, the defaults if it has none of its own; what they point
// to is not to be changed. ok is false if nothing is called so.
func (tx *Tx) Settings(name []byte) (s Settings, ok bool, err error) {
	q, err := tx.open(name, looks)
	if err != nil || q == nil || !tx.m.exists(q) {
		return DefaultSettings(), false, err
	}
	return *settingsOf(q), true, nil
}

// SetSettings gives a queue settings of its own, and makes the queue if nothing is called so. It
// lasts from then on, also when it is empty, until it is deleted (Delete).
func (tx *Tx) SetSettings(name []byte, s Settings) error {
	m := tx.m
	if err := tx.CanStore(); err != nil {
		return err
	}
	if string(s.DeadLetter) == string(name) {
		return ErrOwnDeadLetter
	}
	if err := m.checkName(s.DeadLetter, 0); err != nil {
		return fmt.Errorf("dead-letter queue: %w", err)
	}
	q, err := m.makeQueue(name)
	if err != nil {
		return err
	}
	var only *roleHolder
	if s.ExclusiveConsumer {
		if only, err = m.onlyConsumer(q, q); err != nil {
			return err
		}
	}
	redates := s.RetainDead != settingsOf(q).RetainDead
	m.setSettings(q, s.Clone())
	if redates {
		m.redated = append(m.redated, redated{queue: q})
		m.redate()
	}
	q.grantRole(consumerRole, only)
	q.stale = true
	m.define(q)
	m.changed(q)
	m.ix.Refresh(q.ix)
	return nil
}

// setSettings gives a queue settings.
func (m *Machine) setSettings(q *queue, s *Settings) {
	m.queues.setSettings(q, s)
	m.ix.KeepDead(q.ix, s.RetainDead)
}

// redated is a queue whose retain-dead has changed: its dead packets up to a place follow that.
type redated struct {
	queue *queue
	place index.Place
}

// redateSlice is how many dead packets follow before others have their turn: some milliseconds.
const redateSlice = 10_000

// redate has dead packets follow a retain-dead that has changed. It is a part
// of Work.
func (m *Machine) redate() (more bool) {
	if len(m.redated) == 0 {
		return false
	}
	r := &m.redated[0]
	if m.queues.has(r.queue) {
		if r.place, more = m.ix.RescheduleDead(r.queue.ix, r.place, redateSlice); more {
			return true
		}
	}
	m.redated = m.redated[1:]
	return len(m.redated) > 0
}
