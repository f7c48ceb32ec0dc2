package dump

import (
	"fmt"
	"math"

	"github.com/holdfast-queue/holdfast/storage"
)

func newSettings(s *storage.Settings) *settingsRecord {
	if s == nil {
		return nil
	}
	r := &settingsRecord{
		MaxAttempts: uint64(s.MaxAttempts), Lease: millis(s.Lease), BackoffMin: millis(s.BackoffMin), BackoffMax: millis(s.BackoffMax),
		DeadLetter: s.DeadLetter, Retain: millis(s.Retain),
		Bound: uint64(s.Bound), BoundBytes: uint64(s.BoundBytes), ExclusiveProducer: s.ExclusiveProducer, ExclusiveConsumer: s.ExclusiveConsumer,
		PauseIn: s.PauseIn, PauseOut: s.PauseOut, Closed: s.Closed,
	}
	if s.Full != storage.FullReject {
		r.Full = s.Full.String()
	}
	for _, o := range s.Orders {
		list := [][]byte{[]byte(o.Tag)}
		for _, v := range o.Values {
			list = append(list, []byte(v))
		}
		r.Enum = append(r.Enum, list)
	}
	return r
}

// settings checks those of the record, which may be nil.
func (r *settingsRecord) settings() (*storage.Settings, error) {
	if r == nil {
		return nil, nil
	}
	least, most := min(r.Lease, r.BackoffMin, r.BackoffMax, r.Retain), max(r.Lease, r.BackoffMin, r.BackoffMax, r.Retain)
	switch {
	case r.MaxAttempts > math.MaxUint32 || least < 0 || most > maxSetting || len(r.DeadLetter) > storage.MaxName:
		return nil, fmt.Errorf("max_attempts is at most %d, a time 0 to %d, and dead_letter has at most %d bytes",
			uint32(math.MaxUint32), int64(maxSetting), storage.MaxName)
	case max(r.Bound, r.BoundBytes) > maxSetting:
		return nil, fmt.Errorf("bound and bound_bytes are at most %d", int64(maxSetting))
	}
	s := &storage.Settings{
		MaxAttempts: uint32(r.MaxAttempts), Lease: int64(r.Lease), BackoffMin: int64(r.BackoffMin), BackoffMax: int64(r.BackoffMax),
		DeadLetter: r.DeadLetter, Retain: int64(r.Retain),
		Bound: int64(r.Bound), BoundBytes: int64(r.BoundBytes), ExclusiveProducer: r.ExclusiveProducer, ExclusiveConsumer: r.ExclusiveConsumer,
		PauseIn: r.PauseIn, PauseOut: r.PauseOut, Closed: r.Closed,
	}
	for r.Full != "" && r.Full != s.Full.String() {
		if s.Full == storage.FullDrop {
			return nil, fmt.Errorf("full is %q: expected reject, block or drop", r.Full)
		}
		s.Full++
	}
	for _, list := range r.Enum {
		var o storage.Order
		for i, text := range list {
			if i == 0 {
				o.Tag = string(text)
			} else {
				o.Values = append(o.Values, string(text))
			}
		}
		s.Orders = append(s.Orders, o)
	}
	if err := storage.CheckOrders(s.Orders); err != nil {
		return nil, fmt.Errorf("enum: %w", err)
	}
	return s, nil
}
