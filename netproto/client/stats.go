package client

import (
	"context"
	"time"
)

// Stats is what a queue holds, and what it has done since it was made.
type Stats struct {
	// How many packets are in each state now. Hidden ones are ready, with priority 0. Bytes are
	// those of all packets.
	Ready, Hidden, Delayed, Claimed, Dead, Done, Bytes int64

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
	var s Stats
	figures := map[string]*int64{
		"ready": &s.Ready, "hidden": &s.Hidden, "delayed": &s.Delayed, "claimed": &s.Claimed,
		"dead": &s.Dead, "done": &s.Done, "bytes": &s.Bytes,
		"pushed": &s.Pushed, "popped": &s.Popped, "acked": &s.Acked, "nacked": &s.Nacked,
		"expired": &s.Expired, "died": &s.Died, "dropped": &s.Dropped,
	}
	for name, v := range fields(v) {
		switch name {
		case "age":
			s.Age = time.Duration(number(v)) * time.Millisecond
		case "producer":
			s.Producer = text(v)
		case "consumer":
			s.Consumer = text(v)
		case "priorities":
			s.Bands = bands(v)
		default:
			if n := figures[name]; n != nil {
				*n = number(v)
			}
		}
	}
	return s, nil
}

func bands(v any) []Band {
	list, _ := v.([]any)
	all := make([]Band, len(list))
	for i, v := range list {
		for name, v := range fields(v) {
			switch name {
			case "from":
				all[i].From = uint32(number(v))
			case "to":
				all[i].To = uint32(number(v))
			case "packets":
				all[i].Packets = number(v)
			}
		}
	}
	return all
}
