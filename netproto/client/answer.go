package client

import (
	"context"
	"errors"

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
		batch := []*job{j}
		for more := len(w.answers); more > 0; more-- {
			batch = append(batch, <-w.answers)
		}
		w.send(batch)
	}
}

// send sends answers until the server has replied to each, or its lease is over.
func (w *consumer) send(batch []*job) {
	for b := backoff(0); len(batch) > 0; b.sleep(context.Background()) {
		errs := w.c.pipeline(context.Background(), batch, func(j *job) []any { return j.answer })
		var again []*job
		for i, j := range batch {
			if passing(errs[i]) && w.stillClaimed(j) {
				j.repeated = true
				again = append(again, j)
				continue
			}
			w.ended(j, errs[i])
		}
		if batch = again; len(batch) == 0 {
			return
		}
	}
}

func (w *consumer) ended(j *job, err error) {
	log := w.c.log().With("queue", j.p.Queue, "id", j.p.ID, "answer", j.answer[0])
	switch {
	case err == nil:
		j.p.answered.Store(true)
	case j.repeated && errors.Is(err, ErrStale):
		log.Info("the answer had to be repeated: the first one has arrived, or the lease had ended")
	default:
		log.Warn("the answer was not taken: the packet may be delivered again", "error", err)
	}
	close(j.answered)
}

// pipeline sends a request for each job, once, and returns their errors.
func (c *Client) pipeline(ctx context.Context, jobs []*job, request func(j *job) []any) []error {
	pipe := c.rdb.Pipeline()
	all := make([]once, len(jobs))
	for i, j := range jobs {
		all[i] = once{redis.NewCmd(ctx, request(j)...)}
		_ = pipe.Process(ctx, all[i])
	}
	_, _ = pipe.Exec(ctx)
	errs := make([]error, len(jobs))
	for i := range all {
		errs[i] = refusal(all[i].Err())
	}
	return errs
}

// passing says whether an error may be over soon: the server is away, or short of something.
func passing(err error) bool {
	if err == nil || errors.Is(err, redis.ErrClosed) {
		return false
	}
	return !isReply(err) || errors.Is(err, ErrNoSpace) || errors.Is(err, ErrTooMany)
}
