package client

import (
	"context"
	"errors"
	"time"
)

// errAway: no renewal of a lease was answered in its time.
var errAway = errors.New("the lease is over: the server did not answer in time")

// renew looks at the leases twelve times in the time of one, and renews a lease once a third of it
// is over. A handler whose lease cannot be renewed any more is told before it ends.
func (w *consumer) renew() {
	step := max(w.request.lease/12, time.Millisecond)
	tick := time.NewTicker(step)
	defer tick.Stop()
	for {
		select {
		case <-w.done:
			return
		case <-tick.C:
			w.extend(w.due(step), 2*step)
		}
	}
}

// due returns the packets whose leases are to be renewed. Those that it is too late for are lost: a
// renewal may take two steps, and the third is for the handler.
func (w *consumer) due(step time.Duration) (due []*job) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for j := range w.held {
		switch age := time.Since(j.renewed); {
		case j.p.answered.Load(), j.cancelled.Load():
		case age >= w.request.lease-3*step:
			w.lose(j, errAway)
		case age >= w.request.lease/3:
			due = append(due, j)
		}
	}
	return due
}

// prolong asks for leases that begin now, and returns when it asked.
func (w *consumer) prolong(jobs []*job, patience time.Duration) (asked time.Time, errs []error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	asked, lease := time.Now(), milliseconds(w.request.lease)
	errs, _ = w.pipeline(ctx, jobs, func(j *job) []any {
		return []any{"QEXTEND", j.p.Queue, j.p.ID, j.p.Token, lease}
	})
	return asked, errs
}

// extend renews leases. What the server does not answer in time is tried again with the next step.
func (w *consumer) extend(due []*job, patience time.Duration) {
	if len(due) == 0 {
		return
	}
	asked, errs := w.prolong(due, patience)
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, j := range due {
		switch err := errs[i]; {
		case err == nil:
			j.renewed = asked
		case errors.Is(err, ErrCancelled): // its answer ends the packet before the lease does
			j.cancelled.Store(true)
			j.cancel(err)
		case !passing(err):
			w.lose(j, err)
		}
	}
}

// lose ends the context of a handler whose packet is not its own any more. The caller holds the
// lock.
func (w *consumer) lose(j *job, cause error) {
	if _, holds := w.held[j]; holds && !j.finished {
		j.p.log().Warn("a lease is lost", "error", cause)
	}
	delete(w.held, j)
	j.cancel(cause)
}
