package storage

import (
	"cmp"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"time"

	"github.com/holdfast-queue/holdfast/storage/content"
)

// SyncMode says when a batch is forced to the device. The zero value is SyncAlways.
type SyncMode struct {
	every time.Duration // 0: at once; below: never
}

// SyncAlways forces every batch to the device before Apply returns. Nothing acknowledged is lost in
// a power cut.
func SyncAlways() SyncMode { return SyncMode{} }

// SyncInterval forces batches to the device every d. A power cut loses the last d; a killed process
// loses nothing.
func SyncInterval(d time.Duration) SyncMode { return SyncMode{d} }

// SyncNever leaves it to the operating system. A power cut loses at most what is not in tables yet,
// mostly half a minute; a killed process loses nothing.
func SyncNever() SyncMode { return SyncMode{-1} }

// The range of SyncInterval.
const (
	minInterval = time.Millisecond
	maxInterval = time.Minute
)

// ParseSync reads "always", "interval:50ms" (1ms to 1m) or "never".
func ParseSync(s string) (SyncMode, error) {
	if every, ok := strings.CutPrefix(s, "interval:"); ok {
		d, err := time.ParseDuration(every)
		if err != nil || d < minInterval || d > maxInterval {
			return SyncMode{}, fmt.Errorf("sync interval %q is not a time from %s to %s, such as interval:50ms",
				every, minInterval, maxInterval)
		}
		return SyncInterval(d), nil
	}
	switch s {
	case "always":
		return SyncAlways(), nil
	case "never":
		return SyncNever(), nil
	}
	return SyncMode{}, fmt.Errorf("sync mode %q is not known: use always, interval:50ms or never", s)
}

// String returns what ParseSync reads.
func (m SyncMode) String() string {
	switch {
	case m.every > 0:
		return "interval:" + m.every.String()
	case m.every < 0:
		return "never"
	}
	return "always"
}

// Options of Open. The zero value is right for a server.
type Options struct {
	Sync SyncMode

	// Window is how many bytes may wait in memory and journal to become tables, for tests. 0 chooses
	// by the size of the file system.
	Window int64
	// MaxWindow is the largest that is chosen: some three of them are in memory. 0 is 64 MiB.
	MaxWindow int64

	// MaxPayload is the longest payload that batches bring, in bytes; 0 is 1 MiB. A small disk keeps
	// more room free for long ones.
	MaxPayload int64

	// Limits say when a batch is full. The zero value is 16,384 entries and 4 MiB.
	Limits content.Limits

	// Release is called when tables of the folder, on the device, have all batches up to one, and must
	// not wait for other machines. With it the store is one of several that have the same batches in
	// the order that was decided. It follows: each batch comes by Take, until Own. Sync counts nothing
	// then: the journal is only a cache, and what it loses in a power cut comes again.
	Release func(upto uint64)

	// Checked opens a folder whose files a Restoration of this process has kept, each byte against a
	// sum, or which this process had open: its tables are not checked again.
	Checked bool

	// AcceptLoss opens a store although acknowledged batches are missing (ErrLoss).
	AcceptLoss bool

	// Cut is up to which batch the log was cut, with Release and AcceptLoss. Damage of the journal
	// that begins before the end of this batch is passed over, however far it reaches. Any other ends
	// the journal, since the log has what comes behind.
	Cut uint64

	// Whole makes all batches one: they are in the folder once Keep was called, and without that
	// Close leaves it as it was, as a kill does. Sync counts nothing then. It is for a load.
	Whole bool

	// Stepped has no goroutine begun: what they would do Store.Step does, a piece at a time. It is
	// called where the store waits for that. It is for simulations.
	Stepped func()

	// Logger gets what the store has to say; nil is silence.
	Logger *slog.Logger

	tune tuning
}

// tuning holds what tests replace.
type tuning struct {
	stat func(path string) (free, total int64, err error)
	step func(bytes int64) // before a step of a merge comes in force, with the bytes that it made
}

// fill sets what was left out.
func (o *Options) fill() {
	if o.Whole || o.Release != nil {
		o.Sync = SyncNever()
	}
	if o.Release == nil {
		o.Cut = math.MaxUint64 // there is no log
	}
	o.Limits = cmp.Or(o.Limits, content.Limits{MaxOps: 1 << 14, MaxBytes: 4 << 20})
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.tune.stat == nil {
		o.tune.stat = DiskSpace
	}
	if o.tune.step == nil {
		o.tune.step = func(int64) {}
	}
}
