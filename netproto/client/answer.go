package client

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/redis/go-redis/v9"
)

// ack is the request that ends a packet.
func ack(p *Packet) []any { return cost(p, "QACK", p.Queue, p.ID, p.Token) }

// cost adds what the work was worth to an answer.
func cost(p *Packet, args ...any) []any {
	if p.Cost > 1 {
		args = append(args, "COST", p.Cost)
	}
	return args
}

// nack is the request that returns a packet.
func nack(p *Packet, v *verdict) []any {
	args := []any{"QNACK", p.Queue, p.ID, p.Token}
	if v != nil {
		args = append(args, "REASON", cut(v.reason))
	}
	switch {
	case v == nil || !v.said:
	case v.dead:
		args = append(args, "DEAD")
	case v.hold > 0:
		args = append(args, "HOLD", milliseconds(v.hold))
	default:
		if v.uncounted {
			args = append(args, "UNCOUNTED")
		}
		args = append(args, "DELAY", milliseconds(max(v.after, 0)))
	}
	return cost(p, args...)
}

// plain is an answer of a handler with the reason alone, which the server takes of any claim.
func plain(answer []any) []any {
	if answer[0] == "QACK" {
		return answer[:4]
	}
	return answer[:6]
}

// answer is the request that ends a claim after its handler. One that was interrupted has not
// failed: others may take its packet at once.
func (w *consumer) answer(p *Packet, v *verdict) []any {
	switch {
	case v == nil:
		return ack(p)
	case w.handling.Err() != nil && !v.said:
		v = &verdict{reason: v.reason, said: true, uncounted: true}
	}
	return nack(p, v)
}

// sendAnswers sends what handlers have answered. Those that come while some are on their way go
// together.
func (w *consumer) sendAnswers(claiming context.Context) {
	for j := range w.answers {
		batch := []*job{j}
		// Handlers that are about to end come along.
		for runtime.Gosched(); len(w.answers) > 0; runtime.Gosched() {
			batch = append(batch, <-w.answers)
		}
		batch = w.send(batch, claiming.Err() == nil && w.size == 0 && w.turn.TryLock())
		for b := backoff(0); len(batch) > 0; batch = w.send(batch, false) {
			b.sleep(context.Background())
		}
	}
}

// send sends answers, and claims for their slots and free ones if it has the turn, which it ends.
// It returns what must be sent again: what has no reply, and a lease that is not over.
func (w *consumer) send(batch []*job, claims bool) (again []*job) {
	asked, jobs, slots := time.Now(), batch, 0
	if claims {
		slots = w.reserve(len(batch))
		jobs = append(jobs, &job{answer: w.claims(slots)})
	}
	errs, v := w.pipeline(context.Background(), jobs, func(j *job) []any { return j.answer })
	if claims {
		packets, _ := w.c.packets(v, errs[len(batch)]) // an error comes again with the next claim
		w.begin(packets, slots, asked)
		w.turn.Unlock()
	}
	for i, j := range batch {
		switch err := errs[i]; {
		case err == nil:
			j.p.answered.Store(true)
		case passing(err) && w.stillClaimed(j):
			j.repeated = true
			again = append(again, j)
			continue
		case errors.Is(err, ErrInvalid) && len(plain(j.answer)) < len(j.answer) && w.stillClaimed(j):
			j.p.log().Warn("the answer was refused: it is sent again with no cost, and with the error's text alone", "answer", j.answer[0], "error", err)
			j.answer = plain(j.answer)
			again = append(again, j)
			continue
		case j.cancelled.Load(): // it went with its lease
		case j.repeated && errors.Is(err, ErrStale):
			j.p.log().Info("the answer had to be repeated: the first one has arrived, or the lease had ended", "answer", j.answer[0])
		default:
			j.p.log().Warn("the answer was not taken: the packet may be delivered again", "answer", j.answer[0], "error", err)
		}
		w.settle(j)
	}
	return again
}

// pipeline sends a request for each job, once, and returns their errors and the last value.
func (w *consumer) pipeline(ctx context.Context, jobs []*job, request func(j *job) []any) (errs []error, last any) {
	pipe, all := w.rdb.Pipeline(), make([]once, len(jobs))
	for i, j := range jobs {
		all[i] = once{redis.NewCmd(ctx, request(j)...)}
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
