package broker

import (
	"sort"

	"github.com/holdfast-queue/holdfast/recovery"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// pushTimes tell when packets were pushed, by index.End, without their records: those may have to
// be read from the disk. The packets of a second share a time. What is long ago is known to one
// part in ageParts, so that the times stay few.
type pushTimes [2][]recovery.PushTime

const (
	pushSecond   = 1000 // milliseconds
	ageParts     = 128
	maxPushTimes = 4096 // more than seconds of a year, thinned out
)

// note notes that the packets to come are pushed now or later.
func (t *pushTimes) note(m content.Marks, now int64) {
	for _, next := range [...]uint64{m.NextSeq, m.LowSeq} {
		end, number := recovery.PushNumber(next)
		times := t[end]
		last := len(times) - 1
		switch {
		case last >= 0 && times[last].Number == number:
			times[last].At = now
		case last < 0 || now-times[last].At >= pushSecond || now < times[last].At: // the clock may step back
			t[end] = append(thinned(times, now), recovery.PushTime{Number: number, At: now})
		}
	}
}

// thinned leaves out times that the one before can stand for, if there are very many.
func thinned(times []recovery.PushTime, now int64) []recovery.PushTime {
	if len(times) < maxPushTimes {
		return times
	}
	kept := times[:1]
	for i := 1; i < len(times); i++ {
		before := kept[len(kept)-1].At
		if i == len(times)-1 || times[i+1].At-before > (now-before)/ageParts {
			kept = append(kept, times[i])
		}
	}
	return kept
}

// at is when a packet was pushed, in Unix milliseconds, or a little before. For one that came
// before all that is known it is a time after that.
func (t *pushTimes) at(identity uint64) int64 {
	end, number := recovery.PushNumber(identity)
	times := t[end]
	i := sort.Search(len(times), func(i int) bool { return times[i].Number > number })
	return times[max(0, i-1)].At
}
