package netproto

import (
	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto/words"
)

// Figures returns the figures of a queue, by their places in words.QueueFigures.
func Figures(q *broker.QueueFigures) [words.Figures]int64 {
	return [words.Figures]int64{
		words.Ready:     int64(q.Ready),
		words.Hidden:    int64(q.Hidden),
		words.Delayed:   int64(q.Delayed),
		words.Claimed:   int64(q.Claimed),
		words.Dead:      int64(q.Dead),
		words.Done:      int64(q.Done),
		words.Damaged:   int64(q.Damaged),
		words.ByteSize:  q.Bytes,
		words.Pushed:    int64(q.Pushed),
		words.Popped:    int64(q.Popped),
		words.Acked:     int64(q.Acked),
		words.Nacked:    int64(q.Nacked),
		words.Expired:   int64(q.Expired),
		words.Died:      int64(q.Counters.Dead),
		words.Dropped:   int64(q.Dropped),
		words.Cancelled: int64(q.Cancelled),
		words.PausedIn:  flag(q.PausedIn),
		words.PausedOut: flag(q.PausedOut),
		words.Full:      flag(q.Full),
		words.Closed:    flag(q.Closed),
		words.Overdue:   flag(q.Overdue),
		words.Held:      flag(q.Held),
		words.AtLimit:   flag(q.AtLimit),

		words.SharesAtLimit: int64(q.SharesAtLimit),
		words.SharesNotDue:  int64(q.SharesNotDue),
		words.PacketsBehind: int64(q.PacketsBehind),
		words.DiedElsewhere: int64(q.Strays),
	}
}

func flag(is bool) int64 {
	if is {
		return 1
	}
	return 0
}
