package client

import (
	"context"
	"maps"
	"time"

	"github.com/holdfast-queue/holdfast/netproto/words"
)

// Stats says what a queue holds, and what it has done since it was made. The first fields are in
// the order of words.QueueFigures.
type Stats struct {
	// How many packets are in each state now. Hidden ones are ready, with priority 0. Bytes counts the
	// bytes of all packets.
	Ready, Hidden, Delayed, Claimed, Dead, Done, Damaged, Bytes int64

	// How many packets there were, ever.
	Pushed, Popped, Acked, Nacked, Expired, Died, Dropped, Cancelled int64

	PausedIn, PausedOut bool // a gate is closed: pushes are refused or wait, or nothing is taken
	Full                bool // it holds all that its bound allows, or a push found no room lately
	Closed              bool // nothing will ever be pushed again
	Overdue             bool // its oldest ready packet is older than the setting alert-age
	Held                bool // a consumer that has made no call for ten minutes holds a packet
	AtLimit             bool // all is claimed that the setting max-claimed allows

	// How much is held back now. The first two count shares with packets to give: those of which as
	// many packets are claimed as may be, and those that wait for their rate or rest. The last counts
	// ready packets that wait for another one of their key, in a queue with strict order.
	SharesAtLimit, SharesNotDue, PacketsBehind int64

	DiedElsewhere int64 // packets that died in another queue, whose dead-letter queue this is

	Bands    []Band        // the ready packets by priority
	Age      time.Duration // since the oldest ready packet was pushed; 0 if there is none
	Producer string        // who has the role, if the queue has an exclusive producer
	Consumer string        // who has it, if the queue has an exclusive consumer
	Taken    time.Time     // when packets were last popped or claimed, or the start of the server if that is later
}

// Band is how many packets are ready in a range of priorities.
type Band struct {
	From, To uint32
	Packets  int64
}

// Stats returns the figures of a queue, or ErrNoQueue.
func (c *Client) Stats(ctx context.Context, queue string) (Stats, error) {
	v, err := c.do(ctx, "QSTAT", queue)
	if err != nil {
		return Stats{}, err
	}
	m := maps.Collect(fields(v))
	s := Stats{
		Bands: list(m["priorities"], band), Age: time.Duration(number(m["age"])) * time.Millisecond,
		Producer: text(m["producer"]), Consumer: text(m["consumer"]), Taken: moment(m["taken"]),
	}
	for i, f := range words.QueueFigures {
		read(fieldAt(&s, i), m[f.Name])
	}
	return s, nil
}

// Figure returns the figure at a place in words.QueueFigures. That of a flag is 1 or 0.
func (s *Stats) Figure(i int) int64 {
	switch f := fieldAt(s, i).(type) {
	case *int64:
		return *f
	case *bool:
		if *f {
			return 1
		}
	}
	return 0
}

func band(v any) Band {
	m := maps.Collect(fields(v))
	return Band{uint32(number(m["from"])), uint32(number(m["to"])), number(m["packets"])}
}
