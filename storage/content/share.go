package content

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// ShareID names what one share of a queue has of its own: by the queue, and by a number, of which
// the records of a queue have different ones.
type ShareID struct {
	Queue  uint32
	Number uint64
}

// String names the record as every error and finding does.
func (id ShareID) String() string { return fmt.Sprintf("share %d/%d", id.Queue, id.Number) }

// Share is what one share of a queue has of its own: Settings.ShareBy.
type Share struct {
	ShareID
	Name   []byte // up to MaxShareName bytes; empty: the share of the packets without one
	Weight uint32 // 0: not set, which is 1
	// MaxClaimed is how many of its packets may be claimed at once; 0: Settings.ShareMaxClaimed.
	MaxClaimed uint32
	Rate       []byte // of its takes, as ParseRate has it; empty: Settings.ShareRate
	HeldUntil  int64  // until when it gives nothing, in Unix milliseconds; 0: it does
	HeldBy     string // the consumer that said so; empty: an operator
	// Due is when its next take is due by its Rate, if that is slow, without the burst, in Unix
	// milliseconds; 0: now. DueGap is how far apart takes are by that rate, in nanoseconds.
	Due, DueGap int64

	Rest Rest
}

const (
	// MaxShareName is how long the name of a share may be, in bytes.
	MaxShareName = 255
	// MaxWeight bounds the weight of a share.
	MaxWeight = 1000
	// MaxShares bounds the shares of a queue that have something of their own besides a rest.
	MaxShares = 10_000
	// MaxHold bounds a rest, in milliseconds: a day.
	MaxHold = 24 * 3600 * 1000
)

// Empty says that nothing is set, so that there is nothing to keep.
func (s *Share) Empty() bool { return s.HeldUntil == 0 && s.nothingSet() }

// OnlyRests says that it has a rest, and nothing besides.
func (s *Share) OnlyRests() bool { return !s.Empty() && s.nothingSet() }

func (s *Share) nothingSet() bool {
	return s.Weight <= 1 && s.MaxClaimed == 0 && len(s.Rate) == 0 && s.Rest.Fields == 0
}

// PutShare writes a record. New says that neither the store nor the batch has its key.
func (b *Batch) PutShare(s *Share, isNew bool) {
	var key [MaxKey]byte
	b.scratch = AppendShare(b.scratch[:0], s)
	b.putKey(AppendShareKey(key[:0], s.ShareID), known{stored: !isNew, unsure: true}, b.scratch, 0)
}

// DeleteShare deletes a record. Of one that is new in the batch nothing is left to write.
func (b *Batch) DeleteShare(id ShareID) {
	var key [MaxKey]byte
	b.deleteKey(AppendShareKey(key[:0], id), known{stored: true})
}

// AppendShareKey appends the key of what a share has of its own.
func AppendShareKey(dst []byte, id ShareID) []byte {
	dst = binary.BigEndian.AppendUint32(append(dst, SharePrefix...), id.Queue)
	return binary.BigEndian.AppendUint64(dst, id.Number)
}

// DecodeShareKey reads the key of what a share has of its own.
func DecodeShareKey(key []byte) (ShareID, error) {
	if len(key) != shareKeyLen || string(key[:len(SharePrefix)]) != SharePrefix {
		return ShareID{}, badKey(key, "what a share has of its own")
	}
	return ShareID{binary.BigEndian.Uint32(key[3:]), binary.BigEndian.Uint64(key[7:])}, nil
}

// AppendShare appends the record of s to dst.
func AppendShare(dst []byte, s *Share) []byte {
	w := newWriter(dst)
	w.bin(1, s.Name)
	w.uint(2, uint64(s.Weight))
	w.uint(3, uint64(s.MaxClaimed))
	w.int(4, s.HeldUntil)
	if len(s.Rate) > 0 {
		w.bin(5, s.Rate)
	}
	if s.Due != 0 {
		w.int(6, s.Due)
		w.int(7, s.DueGap)
	}
	if s.HeldBy != "" {
		w.bin(8, []byte(s.HeldBy))
	}
	w.rest(s.Rest)
	return w.end()
}

// DecodeShare reads a record into s. Nothing of it aliases rec. The error wraps ErrRecord.
func DecodeShare(rec []byte, s *Share) error {
	r := reader{b: rec}
	for r.next() {
		switch r.field {
		case 1:
			s.Name = bytes.Clone(r.bin())
		case 2:
			s.Weight = r.uint32()
		case 3:
			s.MaxClaimed = r.uint32()
		case 4:
			s.HeldUntil = r.int()
		case 5:
			s.Rate = bytes.Clone(r.bin())
		case 6:
			s.Due = r.int()
		case 7:
			s.DueGap = r.int()
		case 8:
			s.HeldBy = string(r.bin())
		default:
			r.keep(&s.Rest)
		}
	}
	r.check(len(s.Name) <= MaxShareName)
	return r.err()
}
