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

// failure is the answer to the error of a handler. One that was interrupted has not failed: others
// may take its packet at once.
func (w *consumer) failure(p *Packet, err error) []any {
	var v *verdict
	if w.handling.Err() != nil && !errors.As(err, &v) {
		err = RetryIn(0, err)
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

// send sends answers until the server has replied to each, or its lease is over. If no slot is free
// but theirs, it claims for those in the same request.
func (w *consumer) send(batch []*job) {
	claims := 0
	w.mu.Lock()
	if !w.asks && w.slots >= 0 {
		claims = min(w.slots+len(batch), maxCount)
		w.slots = 0
	}
	w.mu.Unlock()
	for b := backoff(0); len(batch) > 0; b.sleep(context.Background()) {
		requests, jobs := requests(batch)
		if claims > 0 {
			requests = append(requests, w.claims(claims))
		}
		asked := time.Now()
		replies := w.c.pipeline(context.Background(), requests)
		extra := claims - len(batch)
		if claims > 0 { // an error comes again with the next claim
			last := replies[len(jobs)]
			packets, _ := w.c.packets(last.value, last.err)
			w.begin(packets, asked)
			w.release(extra - len(packets))
			claims = 0
		}
		var done []*job
		batch = nil
		for i, jobs := range jobs {
			for _, j := range jobs {
				if w.isDone(j, len(jobs), replies[i]) {
					done = append(done, j)
				} else {
					batch = append(batch, j)
				}
			}
		}
		w.settle(done...)
		if len(batch) == 0 {
			return
		}
	}
}

// maxReceipts is the most packets of one acknowledgement.
const maxReceipts = 1000

// requests are those for answers, and the jobs of each. Acknowledgements go together, but for those
// of another queue.
func requests(batch []*job) (requests [][]any, jobs [][]*job) {
	last := -1 // an acknowledgement that takes more
	for _, j := range batch {
		switch {
		case j.answer != nil:
			requests, jobs = append(requests, j.answer), append(jobs, []*job{j})
			continue
		case last >= 0 && !j.alone && jobs[last][0].p.Queue == j.p.Queue && len(jobs[last]) < maxReceipts:
			requests[last] = append(requests[last], &j.p.ID, &j.p.Token)
			jobs[last] = append(jobs[last], j)
			continue
		case !j.alone:
			last = len(requests)
		}
		requests, jobs = append(requests, ack(j.p)), append(jobs, []*job{j})
	}
	return requests, jobs
}

// isDone says whether the answer need not be sent again. An acknowledgement of several that was
// not good for each does not say for which: they are sent again one by one.
func (w *consumer) isDone(j *job, of int, r reply) bool {
	err := r.err
	if err == nil && of > 1 && number(r.value) < int64(of) {
		err = ErrStale
		j.repeated = j.repeated || number(r.value) > 0
	}
	passes := passing(err)
	if (passes || err != nil && of > 1) && w.stillClaimed(j) {
		j.alone = j.alone || !passes
		j.repeated = j.repeated || passes
		return false
	}
	switch {
	case err == nil:
		j.p.answered.Store(true)
	case j.repeated && errors.Is(err, ErrStale):
		w.c.log().Info("the answer had to be repeated: the first one has arrived, or the lease had ended", "queue", j.p.Queue, "id", j.p.ID)
	default:
		w.c.log().Warn("the answer was not taken: the packet may be delivered again", "queue", j.p.Queue, "id", j.p.ID, "error", err)
	}
	return true
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
