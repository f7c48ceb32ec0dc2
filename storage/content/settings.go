package content

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Settings are what a queue does with packets that come and with those that are claimed. Times are
// in milliseconds.
type Settings struct {
	MaxAttempts int64 // claims after which a packet that comes back is dead; 0: without end
	Lease       int64 // of a claim that asks for none
	BackoffMin  int64 // before the second attempt; doubled for each one after it
	BackoffMax  int64
	DeadLetter  []byte // the queue that dead packets move to; empty: they stay
	Retain      int64  // how long a packet that was acknowledged stays visible; 0: it goes at once
	RetainDead  int64  // how long a packet that died stays; 0: without end

	Bound      int64 // the most packets that are ready, delayed or claimed; 0: as many as come
	BoundBytes int64 // the most bytes of their keys, payloads and META; 0: as many as come
	Full       Full  // what becomes of a push that goes beyond

	ExclusiveProducer bool // clients of one name push, and no others
	ExclusiveConsumer bool // clients of one name take, and no others
	PauseIn           bool // nothing may be pushed
	PauseOut          bool // nothing is taken
	Closed            bool // nothing will ever be pushed again

	Orders Orders // of the values of tags, sorted by the tags' names

	AlertAge int64 // operators are told when the oldest ready packet is older than that; 0: never

	PauseInUntil, PauseOutUntil int64 // when a pause ends, in Unix milliseconds; 0: it does not

	ShareBy []byte // key, or ShareByTag and a tag's name; empty: the queue is not shared out

	MaxClaimed      int64 // the most packets that are claimed at once; 0: as many as are asked for
	ShareMaxClaimed int64 // of each share

	Rate, ShareRate []byte // of takes, as ParseRate has it; empty: any
	RateBurst       int64  // takes that may come at once; 0: one

	BoundShare int64 // the most packets of a share that are ready, delayed or claimed; 0: as many as come

	Strict bool   // packets with one key are taken one after the other
	OnDead Choice // of strict: what becomes of a key of which a packet is dead
}

// Setting is a row of SettingsTable: all that the store, dumps, protocols and commands know of one
// of the Settings.
type Setting struct {
	Name      string
	Kind      SettingKind
	Low, High int64    // of a number, of bytes or of a duration
	Default   int64    // where it is not 0, as above
	Words     []string // of a choice, in the order of their numbers
	By        string   // the command that changes it, and what that does; empty: QSET
	None      string   // what people write for an empty text, besides nothing
	Help      string   // a line for people

	field byte // of the definition (FORMAT.md)
	// At returns where the setting is: a *int64, *Choice, *bool, *[]byte or *Orders.
	At func(s *Settings) any
}

// SettingKind is how people write the value of a setting.
type SettingKind uint8

// The kinds.
const (
	SettingNumber   SettingKind = iota
	SettingBytes                // a number of bytes
	SettingDuration             // in milliseconds
	SettingMoment               // in Unix milliseconds; 0: none
	SettingChoice               // one of some words
	SettingFlag                 // yes or no
	SettingName                 // of a queue; empty: none
	SettingOrders               // the values of tags, a tag at a time
	SettingShareBy              // as CheckShareBy has it
	SettingRate                 // as ParseRate has it
)

const (
	// MaxTime bounds the times of settings, in milliseconds: ten years.
	MaxTime = 10 * 365 * 24 * 3600 * 1000
	// MaxMoment is the latest moment that a client names, in Unix milliseconds: in the year 2109.
	MaxMoment = 1<<42 - 1
	// MaxShareTag bounds the name of the tag by which a queue is shared out, in bytes.
	MaxShareTag = 255
	// MaxBound bounds the bounds of a queue: JSON has no larger number.
	MaxBound = 1 << 53
	// MaxBurst bounds the burst of a rate.
	MaxBurst = 1_000_000
	// The longest and the shortest time between two takes of a rate in nanoseconds: 31 days, and a
	// millionth of a second.
	maxGap, minGap = 31 * 24 * 3600e9, 1000
	maxRateUnits   = 100_000
)

// SettingsTable has a row for each of the Settings, in the order of their fields. A new setting is
// a new row at its end.
var SettingsTable = []Setting{
	{Name: "max-attempts", High: math.MaxUint16, Default: 5, Help: "claims after which a packet that comes back is dead; 0: without end",
		field: 4, At: func(s *Settings) any { return &s.MaxAttempts }},
	{Name: "lease", Kind: SettingDuration, Low: 1, High: MaxTime, Default: 30_000, Help: "how long a claim lasts that asks for no time",
		field: 5, At: func(s *Settings) any { return &s.Lease }},
	{Name: "backoff-min", Kind: SettingDuration, High: MaxTime, Default: 1000, Help: "wait before the second attempt, doubled for each one after it",
		field: 6, At: func(s *Settings) any { return &s.BackoffMin }},
	{Name: "backoff-max", Kind: SettingDuration, High: MaxTime, Default: 600_000, Help: "the longest of these waits",
		field: 7, At: func(s *Settings) any { return &s.BackoffMax }},
	{Name: "dead-letter", Kind: SettingName, Help: "queue that dead packets move to; empty: they stay",
		field: 8, At: func(s *Settings) any { return &s.DeadLetter }},
	{Name: "retain", Kind: SettingDuration, High: MaxTime, Help: "how long an acknowledged packet stays, as done",
		field: 9, At: func(s *Settings) any { return &s.Retain }},
	{Name: "bound", High: MaxBound, Help: "the most packets that are ready, delayed or claimed; 0: as many as come",
		field: 11, At: func(s *Settings) any { return &s.Bound }},
	{Name: "bound-bytes", Kind: SettingBytes, High: MaxBound, Help: "the most bytes of their keys, payloads and META; 0: as many as come",
		field: 12, At: func(s *Settings) any { return &s.BoundBytes }},
	{Name: "full", Kind: SettingChoice, Words: []string{"reject", "block", "drop"}, Help: "what a full queue does with a push: reject, block or drop",
		field: 13, At: func(s *Settings) any { return &s.Full }},
	{Name: "exclusive-producer", Kind: SettingFlag, Help: "whether clients of one name push, and no others",
		field: 14, At: func(s *Settings) any { return &s.ExclusiveProducer }},
	{Name: "exclusive-consumer", Kind: SettingFlag, Help: "whether clients of one name take, and no others",
		field: 15, At: func(s *Settings) any { return &s.ExclusiveConsumer }},
	{Name: "pause-in", Kind: SettingFlag, Help: "whether pushes wait",
		field: 16, At: func(s *Settings) any { return &s.PauseIn }},
	{Name: "pause-out", Kind: SettingFlag, Help: "whether takes wait",
		field: 17, At: func(s *Settings) any { return &s.PauseOut }},
	{Name: "closed", Kind: SettingFlag, By: "QCLOSE, which closes a queue for ever", Help: "whether nothing will ever be pushed again",
		field: 18, At: func(s *Settings) any { return &s.Closed }},
	{Name: "enum", Kind: SettingOrders, Help: "order of the values of a tag, from the lowest to the highest",
		field: 19, At: func(s *Settings) any { return &s.Orders }},
	{Name: "retain-dead", Kind: SettingDuration, High: MaxTime, Help: "how long a dead packet stays; 0: until it is deleted or requeued",
		field: 21, At: func(s *Settings) any { return &s.RetainDead }},
	{Name: "alert-age", Kind: SettingDuration, High: MaxTime, Help: "age of the oldest ready packet beyond which operators are told; 0: they are not",
		field: 24, At: func(s *Settings) any { return &s.AlertAge }},
	{Name: "pause-in-until", Kind: SettingMoment, High: MaxMoment, By: "QPAUSE, which says when a pause ends", Help: "when the pause of pushes ends; 0: it does not, or there is none",
		field: 25, At: func(s *Settings) any { return &s.PauseInUntil }},
	{Name: "pause-out-until", Kind: SettingMoment, High: MaxMoment, By: "QPAUSE, which says when a pause ends", Help: "when the pause of takes ends; 0: it does not, or there is none",
		field: 26, At: func(s *Settings) any { return &s.PauseOutUntil }},
	{Name: "share-by", Kind: SettingShareBy, None: "no", Help: "what has fair turns: key, or tag:NAME for the values of a tag; no: packets come by priority and age alone",
		field: 27, At: func(s *Settings) any { return &s.ShareBy }},
	{Name: "max-claimed", High: math.MaxUint32, Help: "the most packets that are claimed at once; 0: as many as are asked for",
		field: 28, At: func(s *Settings) any { return &s.MaxClaimed }},
	{Name: "share-max-claimed", High: math.MaxUint32, Help: "the most packets of one share that are claimed at once; 0: as many as are asked for",
		field: 29, At: func(s *Settings) any { return &s.ShareMaxClaimed }},
	{Name: "rate", Kind: SettingRate, None: "no", Help: "how many packets are taken in a time at most, such as 100/1s or 10/1m; no: as many as are asked for",
		field: 31, At: func(s *Settings) any { return &s.Rate }},
	{Name: "share-rate", Kind: SettingRate, None: "no", Help: "the same of each share",
		field: 32, At: func(s *Settings) any { return &s.ShareRate }},
	{Name: "rate-burst", High: MaxBurst, Help: "how many packets these rates let pass at once, after a rest; 0: one",
		field: 33, At: func(s *Settings) any { return &s.RateBurst }},
	{Name: "bound-share", High: MaxBound, Help: "the most packets of one share that are ready, delayed or claimed; 0: as many as come",
		field: 34, At: func(s *Settings) any { return &s.BoundShare }},
	{Name: "strict", Kind: SettingFlag, Help: "whether packets with one key come one after the other, and never two at once",
		field: 35, At: func(s *Settings) any { return &s.Strict }},
	{Name: "on-dead", Kind: SettingChoice, Words: []string{"go-on", "hold"}, Help: "of strict: whether those behind a dead packet of their key go on, or are held until somebody looks",
		field: 36, At: func(s *Settings) any { return &s.OnDead }},
}

// DefaultSettings returns the settings of a queue that has none of its own.
func DefaultSettings() (s Settings) {
	for i := range SettingsTable {
		if at, ok := SettingsTable[i].At(&s).(*int64); ok {
			*at = SettingsTable[i].Default
		}
	}
	return s
}

// ShareByTag begins a ShareBy that names a tag.
const ShareByTag = "tag:"

// CheckShareBy says what was expected, if a text that is not empty is no ShareBy.
func CheckShareBy(text []byte) error {
	if tag, ok := bytes.CutPrefix(text, []byte(ShareByTag)); ok && len(tag) > 0 && len(tag) <= MaxShareTag || string(text) == "key" {
		return nil
	}
	return fmt.Errorf("expected no, key, or %sNAME with a tag's name of at most %d bytes", ShareByTag, MaxShareTag)
}

// rateUnits are the units of the time of a rate, in nanoseconds.
var rateUnits = map[string]int64{"ms": 1e6, "s": 1e9, "m": 60e9, "h": 3600e9, "d": 24 * 3600e9}

// ParseRate reads a rate, such as 100/1s: it returns the nanoseconds between two takes, rounded up.
// No text is no rate. The error says what was expected.
func ParseRate(text []byte) (gap int64, err error) {
	if len(text) == 0 {
		return 0, nil
	}
	n, period, _ := strings.Cut(string(text), "/")
	unit := strings.TrimLeft(period, "0123456789")
	takes, _ := strconv.ParseUint(n, 10, 32)
	units, _ := strconv.ParseUint(period[:len(period)-len(unit)], 10, 32)
	if takes > 0 && units <= maxRateUnits {
		gap = (int64(units)*rateUnits[unit] + int64(takes) - 1) / int64(takes)
	}
	if gap < minGap || gap > maxGap {
		return 0, errors.New("expected no, or a number of packets and a time, such as 100/1s or 10/1m, between 1/31d and 1000000/1s")
	}
	return gap, nil
}

// Check says what was expected, if a text that is not empty is no value of the setting.
func (k *Setting) Check(text []byte) (err error) {
	switch k.Kind {
	case SettingShareBy:
		err = CheckShareBy(text)
	case SettingRate:
		_, err = ParseRate(text)
	}
	return err
}

// IsZero reports whether a setting is 0, false or empty.
func (k *Setting) IsZero(s *Settings) bool {
	v := reflect.ValueOf(k.At(s)).Elem()
	return v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0
}

// Choice is the number of one of some words.
type Choice uint8

// Full says what becomes of a push to a queue that is at its bound.
type Full = Choice

const (
	FullReject Full = iota // it is refused
	FullBlock              // it waits for room
	FullDrop               // the worst packets go, which may be the new ones
)

// DeadHolds of Settings.OnDead: a dead packet holds its key.
const DeadHolds Choice = 1

// HoldsDead says that dead packets hold their keys. They do not beside a dead-letter queue: there
// they stay only where that cannot be used.
func (s *Settings) HoldsDead() bool { return s.OnDead == DeadHolds && len(s.DeadLetter) == 0 }

// Word is how people write a choice.
func (k *Setting) Word(c Choice) string { return k.Words[min(int(c), len(k.Words)-1)] }

// Clone copies settings, which may be nil, with all that they point to.
func (s *Settings) Clone() *Settings {
	if s == nil {
		return nil
	}
	own := *s
	own.DeadLetter, own.ShareBy = bytes.Clone(s.DeadLetter), bytes.Clone(s.ShareBy)
	own.Rate, own.ShareRate = bytes.Clone(s.Rate), bytes.Clone(s.ShareRate)
	own.Orders = slices.Clone(s.Orders)
	for i, o := range own.Orders {
		own.Orders[i].Values = slices.Clone(o.Values)
	}
	return &own
}

// lastKept is the number of the last field that a definition with settings always has: by these
// it is known.
const lastKept = 9

// write adds the settings, if they are any, whose fields are from one number up to another.
func (s *Settings) write(w *writer, from, to byte) {
	for i := range SettingsTable {
		k := &SettingsTable[i]
		if s == nil || k.field < from || k.field > to || k.field > lastKept && k.IsZero(s) {
			continue
		}
		switch at := k.At(s).(type) {
		case *int64:
			w.b = appendInt(w.field(k.field), *at)
		case *Choice:
			w.b = appendUint(w.field(k.field), uint64(*at))
		case *bool:
			w.b = appendBool(w.field(k.field), *at)
		case *[]byte:
			w.b = appendBin(w.field(k.field), *at)
		case *Orders:
			w.b = appendOrders(w.field(k.field), *at)
		}
	}
}

// readSetting reads the value of a field of a definition; false if it is no setting.
func (q *Queue) readSetting(r *reader) bool {
	i := slices.IndexFunc(SettingsTable, func(k Setting) bool { return uint64(k.field) == r.field })
	if i < 0 {
		return false
	}
	if q.Settings == nil {
		q.Settings = new(Settings)
	}
	switch at := SettingsTable[i].At(q.Settings).(type) {
	case *int64:
		*at = r.int()
	case *Choice:
		*at = Choice(r.uint())
	case *bool:
		*at = r.bool()
	case *[]byte:
		*at = bytes.Clone(r.bin())
	case *Orders:
		*at = r.orders()
	}
	return true
}
