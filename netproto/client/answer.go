package client

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/redis/go-redis/v9"
)

// ack is the request that ends a packet.
func ack(p *Packet) []any { return []any{"QACK", p.Queue, p.ID, p.Token} }

// nack is the request that returns a packet.
func nack(p *Packet, why error) []any {
	args := []any{"QNACK", p.Queue, p.ID, p.Token}
	if why == nil {
		return args
	}
	args = append(args, "REASON", cut(why.Error()))
	var v *verdict
	switch {
	case !errors.As(why, &v):
		return args
	case v.dead:
		return append(args, "DEAD")
	}
	return append(args, "DELAY", milliseconds(max(v.after, 0)))
}

// answer is the request that ends a claim after its handler. One that was interrupted has not
// failed: others may take its packet at once.
func (w *consumer) answer(p *Packet, err error) []any {
	var v *verdict
	switch {
	case err == nil:
		return ack(p)
	case w.handling.Err() != nil && !errors.As(err, &v):
		return nack(p, RetryIn(0, err))
	}
	return nack(p, err)
}

// sendAnswers sends what handlers have answered. Those that come while some are on their way go
// together.
func (w *consumer) sendAnswers() {
	for j := range w.answers {
		for n := -1; n < len(w.answers); { // handlers that are about to end come along
			n = len(w.answers)
			runtime.Gosched()
		}
		batch := []*job{j}
		for more := len(w.answers); more > 0; more-- {
			batch = append(batch, <-w.answers)
		}
		w.send(batch)
	}
}

// send sends answers until the server has replied to each, or its lease is over. The first time it
// claims for their slots in the same request, unless a claim waits for packets.
func (w *consumer) send(batch []*job) {
	claims := w.turn.TryLock()
	for b := backoff(0); ; b.sleep(context.Background()) {
		var requests [][]any
		for _, j := range batch {
			requests = append(requests, j.answer)
		}
		n := 0
		if claims {
			n = w.reserve(len(batch))
			requests = append(requests, w.claims(n))
		}
		asked := time.Now()
		replies := w.c.pipeline(context.Background(), requests)
		if claims {
			last := replies[len(batch)]
			packets, _ := w.c.packets(last.value, last.err) // an error comes again with the next claim
			w.begin(packets, n, asked)
			w.turn.Unlock()
			claims = false
		}
		var again []*job
		for i, j := range batch {
			if err := replies[i].err; passing(err) && w.stillClaimed(j) {
				j.repeated = true
				again = append(again, j)
			} else {
				w.ended(j, err)
			}
		}
		if batch = again; len(batch) == 0 {
			return
		}
	}
}

func (w *consumer) ended(j *job, err error) {
	switch {
	case err == nil:
		j.p.answered.Store(true)
	case j.repeated && errors.Is(err, ErrStale):
		w.c.log().Info("the answer had to be repeated: the first one has arrived, or the lease had ended", "queue", j.p.Queue, "id", j.p.ID)
	default:
		w.c.log().Warn("the answer was not taken: the packet may be delivered again", "queue", j.p.Queue, "id", j.p.ID, "error", err)
	}
	w.settle(j)
}

// pipeline sends requests together, once, and returns the replies.
func (c *Client) pipeline(ctx context.Context, requests [][]any) []reply {
	pipe := c.rdb.Pipeline()
	all, replies := make([]once, len(requests)), make([]reply, len(requests))
	for i, r := range requests {
		all[i] = once{redis.NewCmd(ctx, r...)}
		_ = pipe.Process(ctx, all[i])
	}
	_, _ = pipe.Exec(ctx)
	for i := range all {
		replies[i] = reply{all[i].Val(), refusal(all[i].Err())}
	}
	return replies
}

// passing says whether an error may be over soon: the server is away, or short of something.
func passing(err error) bool {
	if err == nil || errors.Is(err, redis.ErrClosed) {
		return false
	}
	return !isReply(err) || errors.Is(err, ErrNoSpace) || errors.Is(err, ErrTooMany)
}
