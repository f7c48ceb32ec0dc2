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
func (w *consumer) sendAnswers(claiming context.Context) {
	for j := range w.answers {
		for n := -1; n < len(w.answers); { // handlers that are about to end come along
			n = len(w.answers)
			runtime.Gosched()
		}
		batch := []*job{j}
		for more := len(w.answers); more > 0; more-- {
			batch = append(batch, <-w.answers)
		}
		slots := 0
		if claiming.Err() == nil && w.turn.TryLock() {
			slots = w.reserve(len(batch))
		}
		batch = w.send(batch, slots)
		for b := backoff(0); len(batch) > 0; batch = w.send(batch, 0) {
			b.sleep(context.Background())
		}
	}
}

// send sends answers, and a claim for slots if there are any. It returns the answers that must be
// sent again: those without a reply whose lease is not over.
func (w *consumer) send(batch []*job, slots int) (again []*job) {
	var claim [][]any
	if slots > 0 {
		claim = append(claim, w.claims(slots))
	}
	asked := time.Now()
	errs, v := w.pipeline(context.Background(), batch, func(j *job) []any { return j.answer }, claim...)
	if slots > 0 {
		packets, _ := w.c.packets(v, errs[len(batch)]) // an error comes again with the next claim
		w.begin(packets, slots, asked)
		w.turn.Unlock()
	}
	for i, j := range batch {
		if passing(errs[i]) && w.stillClaimed(j) {
			j.repeated = true
			again = append(again, j)
		} else {
			w.ended(j, errs[i])
		}
	}
	return again
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

// pipeline sends a request for each job, and more, once. It returns their errors and the last value.
func (w *consumer) pipeline(ctx context.Context, jobs []*job, request func(j *job) []any, more ...[]any) (errs []error, last any) {
	pipe, all := w.rdb.Pipeline(), make([]once, len(jobs)+len(more))
	for i := range all {
		if i < len(jobs) {
			all[i] = once{redis.NewCmd(ctx, request(jobs[i])...)}
		} else {
			all[i] = once{redis.NewCmd(ctx, more[i-len(jobs)]...)}
		}
		_ = pipe.Process(ctx, all[i])
	}
	_, _ = pipe.Exec(ctx)
	for _, cmd := range all {
		errs, last = append(errs, refusal(cmd.Err())), cmd.Val()
	}
	return errs, last
}

// passing says whether an error may be over soon: the server is away, or short of something.
func passing(err error) bool {
	if err == nil || errors.Is(err, redis.ErrClosed) {
		return false
	}
	return !isReply(err) || errors.Is(err, ErrNoSpace) || errors.Is(err, ErrTooMany)
}
