package broker

import (
	"github.com/holdfast-queue/holdfast/storage/content"
)

// What a queue does with packets that come and with those that are claimed, the table of all that
// is known of each setting, and what a queue has done since it was made.
type (
	Settings = content.Settings
	Setting  = content.Setting
	Order    = content.Order
	Full     = content.Full
	Choice   = content.Choice
	Counters = content.Counters
)

// SettingsTable has a row for each setting.
func SettingsTable() []Setting { return content.SettingsTable }

// SettingOrders is the kind of settings whose value is all that follows.
const SettingOrders = content.SettingOrders

// CheckOrders says what was expected of the orders of a queue, if no queue can have these.
func CheckOrders(orders []Order) error { return content.CheckOrders(orders) }

// CheckRate says what was expected, if a text that is not empty is no rate.
func CheckRate(text []byte) error {
	_, err := content.ParseRate(text)
	return err
}

// What becomes of a push to a queue that holds as much as its bound allows: it is refused, it
// waits, or the worst packets go.
const (
	FullReject = content.FullReject
	FullBlock  = content.FullBlock
	FullDrop   = content.FullDrop
)

// DeadHolds of Settings.OnDead: a dead packet holds its key.
const DeadHolds = content.DeadHolds

// DefaultSettings returns the settings of a queue that has none of its own.
func DefaultSettings() Settings { return content.DefaultSettings() }

// settingsOf returns the settings of a queue, which are not to be changed.
func settingsOf(q *queue) *Settings { return orDefaults(q.settings) }

// orDefaults returns settings, and DefaultSettings for nil.
func orDefaults(s *Settings) *Settings {
	if s != nil {
		return s
	}
	return &defaultSettings
}

var defaultSettings = DefaultSettings()
