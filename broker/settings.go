package broker

import "github.com/holdfast-queue/holdfast/storage"

// Settings are what a queue does with packets that are claimed.
type Settings = storage.Settings

// Counters are what a queue has done since it was made.
type Counters = storage.Counters

// DefaultSettings are those of a queue that has none of its own.
func DefaultSettings() Settings { panic("not built") }

// Settings returns the settings of a queue, the defaults if it has none of its own. ok is false if
// nothing is called so.
func (tx *Tx) Settings(name []byte) (s Settings, ok bool, err error) { panic("not built") }

// SetSettings gives a queue settings of its own, and makes the queue if nothing is called so. It
// lasts from then on, also when it is empty, until it is deleted (Delete).
func (tx *Tx) SetSettings(name []byte, s Settings) error { panic("not built") }
