package client

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// DefaultLease is the lease of Consume, whatever the queue's settings say: it must know when to
// renew.
const DefaultLease = 30 * time.Second

// ErrShutdown is the cause of the end of a handler's context that Shutdown did not wait for.
var ErrShutdown = errors.New("the client is shut down")

// consumer is a call of Consume.
type consumer struct {
	c       *Client
	queue   string
	handler Handler
	request request

	handling context.Context         // of all handlers
	abandon  context.CancelCauseFunc // ends it
	stop     context.CancelFunc      // ends claiming
	done     chan struct{}           // closed at the end of Consume

	waiter  *waiter
	rdb     *redis.Client // waits for answers for as long as a lease leaves time to repeat them
	turn    sync.Mutex    // to claim: one claim is asked for at a time
	working sync.WaitGroup
	answers chan *job     // has room for all packets
	freed   chan struct{} // says that slots are free

	mu    sync.Mutex
	slots int               // how many more packets may be claimed
	held  map[*job]struct{} // those whose claim is good, as far as is known
}

// job is a packet that a handler works on.
type job struct {
	p        *Packet
	cancel   context.CancelCauseFunc
	renewed  time.Time // when its lease was asked for: it did not begin before; guarded by consumer.mu
	finished bool      // its answer is known; guarded by consumer.mu
	answer   []any
	repeated bool // the answer was sent before, and may have arrived

	cancelled atomic.Bool // the lease cannot be renewed, and the packet goes with the claim
}

// Consume claims packets and has the handler work on them: one at a time, or as many as Concurrency
// says, each in a goroutine. It renews their leases, of 30 s unless [Lease] is given. A claim whose
// answer came so late that its lease may be over is left to others. Consume takes the options of
// Claim but Block, Count and Group. A server that is away is waited for: see the package about what
// is done again then.
//
// It returns nil when the queue is closed and drained, and after Shutdown. When ctx ends, it
// returns the error of ctx, and the contexts of the handlers end, too. It returns any other refusal
// of the server. In each case it waits for the handlers. Where a queue has an exclusive consumer,
// all but one get ErrInUse: call Consume again after a while to stand by.
func (c *Client) Consume(ctx context.Context, queue string, handler Handler, options ...Option) error {
	w := &consumer{c: c, queue: queue, handler: handler, held: make(map[*job]struct{}),
		done: make(chan struct{}), freed: make(chan struct{}, 1)}
	w.request.concurrency = 1
	for _, o := range options {
		o.add(&w.request)
	}
	switch {
	case w.request.blocks:
		return fmt.Errorf("%w: Consume waits without Block", ErrInvalid)
	case w.request.concurrency < 1:
		return fmt.Errorf("%w: Concurrency: expected 1 or more, got %d", ErrInvalid, w.request.concurrency)
	case w.request.lease == 0:
		Lease(DefaultLease).add(&w.request)
	}
	w.waiter = &waiter{c: c, turn: takeTurn}
	defer w.waiter.close()
	w.rdb = c.rdb.WithTimeout(max(c.patience, w.request.lease/3))
	w.answers = make(chan *job, w.request.concurrency)
	w.release(w.request.concurrency)
	w.handling, w.abandon = context.WithCancelCause(ctx)
	defer w.abandon(nil)
	claiming, stop := context.WithCancel(ctx)
	defer stop()
	w.stop = stop
	if !c.enlist(w) {
		return nil
	}
	defer c.leave(w)
	var answering sync.WaitGroup
	answering.Go(func() { w.sendAnswers(claiming) }) // ends when answers is closed
	go w.renew()                                     // ends with done
	err := w.claim(claiming)
	w.working.Wait()
	close(w.answers)
	answering.Wait()
	if err == nil {
		err = ctx.Err()
	}
	return err
}

func (c *Client) enlist(w *consumer) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stopped {
		c.consumers[w] = struct{}{}
	}
	return !c.stopped
}

func (c *Client) leave(w *consumer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.consumers, w)
	close(w.done)
}

// maxCount is the most packets that the server gives at once.
const maxCount = 1000

// claim claims packets for free slots, and waits for some, until ctx ends or the queue is drained.
// After an error it keeps the turn, so that no answer claims what it may not.
func (w *consumer) claim(ctx context.Context) error {
	for b := backoff(0); ; {
		select {
		case <-w.freed:
			runtime.Gosched() // to the answers of quick handlers
		case <-ctx.Done():
			return nil
		}
		w.turn.Lock()
		n := w.reserve(0)
		if n == 0 {
			w.turn.Unlock()
			continue
		}
		packets, err := w.c.packets(w.waiter.ask(ctx, 0, w.claims(n)))
		w.begin(packets, n, w.waiter.asked)
		switch {
		case err == nil:
			b = 0
		case ctx.Err() != nil, errors.Is(err, ErrClosed):
			return nil
		case !passing(err):
			return err
		default:
			w.c.log().Warn("no packet could be claimed", "queue", w.queue, "error", err)
			b.sleep(ctx)
		}
		w.turn.Unlock()
	}
}

// claims is the request for n packets.
func (w *consumer) claims(n int) []any {
	return append(w.request.take("QCLAIM", w.queue), "COUNT", n)
}

// reserve takes the slots that are free, and the slots of packets that are about to be answered.
// There are less than none until these are answered.
func (w *consumer) reserve(answered int) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n = max(0, min(w.slots+answered, maxCount))
	w.slots -= n
	return n
}

// release frees slots.
func (w *consumer) release(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.slots += n; w.slots > 0 {
		select {
		case w.freed <- struct{}{}:
		default:
		}
	}
}

// begin has the handler work on the packets of a claim, and frees the slots that it leaves. If the
// answer to the claim came late the leases may be over, so they are renewed first; a packet whose
// lease is not is left to others.
func (w *consumer) begin(packets []*Packet, slots int, asked time.Time) {
	jobs, errs := make([]*job, len(packets)), make([]error, len(packets))
	for i, p := range packets {
		jobs[i] = &job{p: p}
	}
	third := w.request.lease / 3
	if len(jobs) > 0 && time.Since(asked) > third {
		asked, errs = w.prolong(jobs, third)
	}
	for i, j := range jobs {
		if errs[i] != nil {
			j.p.log().Warn("a claim came too late to begin with its packet", "error", errs[i])
			continue
		}
		slots--
		j.renewed = asked
		var ctx context.Context
		ctx, j.cancel = context.WithCancelCause(w.handling)
		w.mu.Lock()
		w.held[j] = struct{}{}
		w.mu.Unlock()
		w.working.Add(1)
		go w.handle(ctx, j) // ends with the handler
	}
	w.release(slots)
}

// handle has the handler work on a packet, and the answer sent that its end means, unless the
// packet is not held any more.
func (w *consumer) handle(ctx context.Context, j *job) {
	err := errors.New("the handler ended its goroutine")
	defer func() {
		if v := (*verdict)(nil); err != nil && !(errors.As(err, &v) && v.uncounted) && !j.cancelled.Load() {
			j.p.log().Warn("the handler failed", "attempt", j.p.Attempt, "error", err)
		}
		j.answer = w.answer(j.p, err)
		j.cancel(nil)
		if w.claimAnswer(j) {
			w.answers <- j
		} else {
			w.settle(j)
		}
	}()
	err = w.handler.run(ctx, j.p)
}

// settle ends the work on a packet.
func (w *consumer) settle(j *job) {
	w.mu.Lock()
	delete(w.held, j)
	w.mu.Unlock()
	w.release(1)
	w.working.Done()
}

// claimAnswer says whether the caller is to answer for a packet: only the first one is.
func (w *consumer) claimAnswer(j *job) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, holds := w.held[j]
	first := holds && !j.finished && !j.p.answered.Load()
	j.finished = true
	return first
}

func (w *consumer) stillClaimed(j *job) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, holds := w.held[j]
	return holds
}

// Shutdown ends every Consume of the client, now and later: they claim no more, and Shutdown waits
// for their handlers. When ctx ends before that, it ends the contexts of the handlers with the
// cause ErrShutdown, returns their packets to the queue for others to take at once, and returns the
// error of ctx. Such a claim does not count as an attempt.
func (c *Client) Shutdown(ctx context.Context) error {
	all := c.stop()
	errs := make([]error, len(all))
	var waiting sync.WaitGroup
	for i, w := range all {
		waiting.Go(func() {
			select {
			case <-w.done:
			case <-ctx.Done():
				errs[i] = w.giveBack(ctx.Err())
			}
		})
	}
	waiting.Wait()
	return errors.Join(errs...)
}

// StopClaiming is the first step of Shutdown alone: no more is asked for. It returns at once, while
// handlers go on. A claim that is on its way may still bring packets.
func (c *Client) StopClaiming() { c.stop() }

func (c *Client) stop() []*consumer {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
	all := make([]*consumer, 0, len(c.consumers))
	for w := range c.consumers {
		all = append(all, w)
		w.stop()
	}
	return all
}

// giveBack returns the packets that handlers still work on.
func (w *consumer) giveBack(cause error) error {
	w.abandon(ErrShutdown)
	var left []*job
	w.mu.Lock()
	for j := range w.held {
		if !j.finished && !j.p.answered.Load() {
			j.finished = true
			left = append(left, j)
		}
	}
	w.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), w.c.patience)
	defer cancel()
	errs, _ := w.pipeline(ctx, left, func(j *job) []any { return nack(j.p, Uncounted(0, ErrShutdown)) })
	return fmt.Errorf("%s: packets that were not finished: %d: %w", w.queue, len(left), errors.Join(append(errs, cause)...))
}

// backoff is how long to wait before the next attempt.
type backoff time.Duration

// sleep waits, longer from time to time, or until ctx ends.
func (b *backoff) sleep(ctx context.Context) {
	const first, most = backoff(50 * time.Millisecond), backoff(time.Second)
	*b = min(max(2**b, first), most)
	select {
	case <-time.After(time.Duration(*b)):
	case <-ctx.Done():
	}
}
