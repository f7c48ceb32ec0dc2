package client

import (
	"context"
	"maps"
	"time"
)

// Stats is what a queue holds, and what it has done since it was made.
type Stats struct {
	// How many packets are in each state now. Hidden ones are ready, with priority 0. Bytes are
	// those of all packets.
	Ready, Hidden, Delayed, Claimed, Dead, Done, Damaged, Bytes int64

	// How many packets there were, ever.
	Pushed, Popped, Acked, Nacked, Expired, Died, Dropped int64

	Bands    []Band        // the ready packets by priority
	Age      time.Duration // since the oldest ready packet was pushed; 0 if there is none
	Producer string        // who has the role, if the queue has an exclusive producer
	Consumer string        // who has it, if the queue has an exclusive consumer
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
	n := func(name string) int64 { return number(m[name]) }
	return Stats{
		Ready: n("ready"), Hidden: n("hidden"), Delayed: n("delayed"), Claimed: n("claimed"), Dead: n("dead"), Done: n("done"), Damaged: n("damaged"), Bytes: n("bytes"),
		Pushed: n("pushed"), Popped: n("popped"), Acked: n("acked"), Nacked: n("nacked"), Expired: n("expired"), Died: n("died"), Dropped: n("dropped"),
		Bands: list(m["priorities"], band), Age: time.Duration(n("age")) * time.Millisecond, Producer: text(m["producer"]), Consumer: text(m["consumer"]),
	}, nil
}

func band(v any) Band {
	m := maps.Collect(fields(v))
	return Band{uint32(number(m["from"])), uint32(number(m["to"])), number(m["packets"])}
}
