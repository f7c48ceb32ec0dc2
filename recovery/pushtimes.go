package recovery

import (
	"math/bits"
	"slices"

	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// PushTime says that packets with this number and those above were pushed at a moment in Unix
// milliseconds, or later.
type PushTime struct {
	Number uint64
	At     int64
}

// PushNumber numbers the packets that were pushed at one end, from 0 on, by their identities.
func PushNumber(identity uint64) (end index.End, number uint64) {
	if middle := content.FirstSeq; identity < middle {
		return index.Oldest, middle - 1 - identity
	}
	return index.Newest, identity - content.FirstSeq
}

// pushTimes notes the least number among packets of about one age. An age is known to one part in
// 64, so the times of any number of packets take little room.
type pushTimes [2][58 * 64]struct {
	PushTime
	known bool
}

func (t *pushTimes) add(identity uint64, at, now int64) {
	age := uint64(max(0, now-at))
	shift := max(0, bits.Len64(age)-7)
	end, number := PushNumber(identity)
	p := &t[end][shift*64+int(age>>shift)]
	if !p.known {
		p.known, p.PushTime = true, PushTime{number, at}
	}
	p.Number, p.At = min(p.Number, number), min(p.At, at)
}

// of returns the times of an end, by their numbers. A packet with a higher number than a younger
// one tells nothing: it was loaded from a dump.
func (t *pushTimes) of(end index.End) (times []PushTime) {
	for _, p := range &t[end] { // the youngest first
		if p.known && (len(times) == 0 || p.Number < times[len(times)-1].Number) {
			times = append(times, p.PushTime)
		}
	}
	slices.Reverse(times)
	return times
}
