package storage

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/vmihailenco/msgpack/v5"
)

// Settings are what a queue does with packets that come and with those that are claimed. Times are
// in milliseconds.
type Settings struct {
	MaxAttempts uint32 // claims after which a packet that comes back is dead; 0: without end
	Lease       int64  // of a claim that asks for none
	BackoffMin  int64  // before the second attempt; doubled for each one after it
	BackoffMax  int64
	DeadLetter  []byte // the queue that dead packets move to; empty: they stay
	Retain      int64  // how long a packet that was acknowledged stays visible; 0: it goes at once

	Bound      int64 // the most packets that are ready, delayed or claimed; 0: as many as come
	BoundBytes int64 // the most bytes of their keys and payloads; 0: as many as come
	Full       Full  // what becomes of a push that goes beyond

	ExclusiveProducer bool // clients of one name push, and no others
	ExclusiveConsumer bool // clients of one name take, and no others
	PauseIn           bool // nothing may be pushed
	PauseOut          bool // nothing is taken
	Closed            bool // nothing will ever be pushed again

	Orders []Order // of the values of tags, sorted by the tags' names
}

// Full is what becomes of a push to a queue that holds as much as its bound allows.
type Full uint8

const (
	FullReject Full = iota // it is refused
	FullBlock              // it waits for room
	FullDrop               // the worst packets go, which may be the new ones
)

// String is the setting's value as people write it.
func (f Full) String() string { return [...]string{"reject", "block", "drop"}[min(f, FullDrop)] }

// Counters are what a queue has done since it was made. They do not run backwards over a restart
// but by what was counted in the second before a kill.
type Counters struct {
	Pushed, Popped, Acked, Nacked, Expired, Dead uint64

	Dropped uint64 // by a full queue
}

// Clone copies settings, which may be nil, with all that they point to.
func (s *Settings) Clone() *Settings {
	if s == nil {
		return nil
	}
	own := *s
	own.DeadLetter = bytes.Clone(s.DeadLetter)
	own.Orders = slices.Clone(s.Orders)
	for i, o := range own.Orders {
		own.Orders[i].Values = slices.Clone(o.Values)
	}
	return &own
}

// Room is at least what settings take in a definition.
func (s *Settings) Room() int {
	n := 96 + len(s.DeadLetter)
	for _, o := range s.Orders {
		n += 10 + len(o.Tag)
		for _, v := range o.Values {
			n += 5 + len(v)
		}
	}
	return n
}

func (s *Settings) encode(e *msgpack.Encoder) error {
	deadLetter := s.DeadLetter
	if deadLetter == nil {
		deadLetter = []byte{} // the library would write nil
	}
	err := errors.Join(
		e.EncodeUint(fieldMaxAttempts), e.EncodeUint(uint64(s.MaxAttempts)),
		e.EncodeUint(fieldLease), e.EncodeInt(s.Lease),
		e.EncodeUint(fieldBackoffMin), e.EncodeInt(s.BackoffMin),
		e.EncodeUint(fieldBackoffMax), e.EncodeInt(s.BackoffMax),
		e.EncodeUint(fieldDeadLetter), e.EncodeBytes(deadLetter),
		e.EncodeUint(fieldRetain), e.EncodeInt(s.Retain))
	if s.Bound != 0 {
		err = errors.Join(err, e.EncodeUint(fieldBound), e.EncodeInt(s.Bound))
	}
	if s.BoundBytes != 0 {
		err = errors.Join(err, e.EncodeUint(fieldBoundBytes), e.EncodeInt(s.BoundBytes))
	}
	if s.Full != 0 {
		err = errors.Join(err, e.EncodeUint(fieldFull), e.EncodeUint(uint64(s.Full)))
	}
	for i, on := range s.switches() {
		if *on {
			err = errors.Join(err, e.EncodeUint(fieldExclusiveProducer+uint64(i)), e.EncodeBool(true))
		}
	}
	if len(s.Orders) > 0 {
		err = errors.Join(err, e.EncodeUint(fieldOrders), encodeOrders(e, s.Orders))
	}
	return err
}

// switches returns those in the order of their fields.
func (s *Settings) switches() [5]*bool {
	return [...]*bool{&s.ExclusiveProducer, &s.ExclusiveConsumer, &s.PauseIn, &s.PauseOut, &s.Closed}
}

// fields counts those that encode writes.
func (s *Settings) fields() int {
	n := fieldRetain - fieldMaxAttempts + 1
	for _, written := range []bool{s.Bound != 0, s.BoundBytes != 0, s.Full != 0, len(s.Orders) > 0} {
		if written {
			n++
		}
	}
	for _, on := range s.switches() {
		if *on {
			n++
		}
	}
	return n
}

// decode reads the value of one field.
func (s *Settings) decode(field uint64, d *msgpack.Decoder) (err error) {
	switch field {
	case fieldMaxAttempts:
		s.MaxAttempts, err = d.DecodeUint32()
	case fieldLease:
		s.Lease, err = d.DecodeInt64()
	case fieldBackoffMin:
		s.BackoffMin, err = d.DecodeInt64()
	case fieldBackoffMax:
		s.BackoffMax, err = d.DecodeInt64()
	case fieldDeadLetter:
		s.DeadLetter, err = d.DecodeBytes()
	case fieldRetain:
		s.Retain, err = d.DecodeInt64()
	case fieldBound:
		s.Bound, err = d.DecodeInt64()
	case fieldBoundBytes:
		s.BoundBytes, err = d.DecodeInt64()
	case fieldFull:
		var full uint8
		full, err = d.DecodeUint8()
		s.Full = Full(full)
	case fieldOrders:
		s.Orders, err = decodeOrders(d)
	default:
		*s.switches()[field-fieldExclusiveProducer], err = d.DecodeBool()
	}
	return err
}

// all returns the counters of the field that has six, in its order.
func (c *Counters) all() [6]*uint64 {
	return [...]*uint64{&c.Pushed, &c.Popped, &c.Acked, &c.Nacked, &c.Expired, &c.Dead}
}

func (c *Counters) encode(e *msgpack.Encoder) error {
	all := c.all()
	err := errors.Join(e.EncodeUint(fieldCounters), e.EncodeArrayLen(len(all)))
	for _, v := range all {
		err = errors.Join(err, e.EncodeUint(*v))
	}
	return err
}

// six returns whether one of the counters of that field is not 0.
func (c Counters) six() bool {
	c.Dropped = 0
	return c != Counters{}
}

func (c *Counters) decode(d *msgpack.Decoder) error {
	n, err := d.DecodeArrayLen()
	all := c.all()
	if err == nil && n != len(all) {
		err = fmt.Errorf("%d counters instead of %d", n, len(all))
	}
	for i := 0; err == nil && i < n; i++ {
		*all[i], err = d.DecodeUint64()
	}
	return err
}
