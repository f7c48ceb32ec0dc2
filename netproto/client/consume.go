package client

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
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
	size    int // of a batch; 0: packets are claimed as slots are free, and each is handled alone
	handler BatchHandler
	request request

	handling context.Context         // of all handlers
	abandon  context.CancelCauseFunc // ends it
	stop     context.CancelFunc      // ends claiming
	done     chan struct{}           // closed at the end of Consume

	waiter  waiter
	rdb     *redis.Client // waits for answers for as long as a lease leaves time to repeat them
	turn    sync.Mutex    // to claim: one claim is asked for at a time
	working sync.WaitGroup
	answers chan *job     // has room for all packets
	freed   chan struct{} // says that slots are free

	mu    sync.Mutex
	slots int               // how many more packets, or batches, may be claimed
	held  map[*job]struct{} // those whose claim is good, as far as is known
}

// job is a packet that a handler works on.
type job struct {
	p        *Packet
	work     *work
	renewed  time.Time // when its lease was asked for: it did not begin before; guarded by consumer.mu
	finished bool      // its answer is known; guarded by consumer.mu
	answer   []any
	repeated bool // the answer was sent before, and may have arrived

	cancelled atomic.Bool // the lease cannot be renewed, and the packet goes with the claim
}

// work is what a handler does with one packet, or those of a batch.
type work struct {
	cancel context.CancelCauseFunc // of the handler's context
	leases atomic.Int32            // how many packets are its own
	left   atomic.Int32            // how many are not answered
}

// cancel says that a packet is not the handler's any more.
func (j *job) cancel(cause error) {
	if j.work.leases.Add(-1) <= 0 {
		j.work.cancel(cause)
	}
}

// Consume claims packets and has the handler work on them: one at a time, or as many as Concurrency
// says, each in a goroutine. It renews their leases, of 30 s unless [Lease] is given. A claim whose
// answer came so late that its lease may be over is left to others. Consume takes the options of
// Claim but Block, Count and Group. A server that is away is waited for: see the package about what
// is done again then.
//
// It returns nil when the queue is closed and drained, after Shutdown, and as [Burst] says. When
// ctx ends, it returns the error of ctx, and the contexts of the handlers end, too. It returns any
// other refusal of the server. In each case it waits for the handlers. Where a queue has an
// exclusive consumer, all but one get ErrInUse: call Consume again after a while to stand by.
func (c *Client) Consume(ctx context.Context, queue string, handler Handler, options ...Option) error {
	alone := func(ctx context.Context, all []*Packet) error { return handler(ctx, all[0]) }
	return c.consume(ctx, &consumer{queue: queue, handler: alone}, options)
}

// BatchHandler works on packets that were claimed together. If it returns nil they are
// acknowledged; else they are returned, as the error of a [Handler] says. Those are left out that
// it has acknowledged or returned itself, by Ack and Nack.
//
// The context ends when the leases of all of them are lost.
type BatchHandler func(ctx context.Context, all []*Packet) error

// ConsumeBatch is [Client.Consume] for a handler that works on up to size packets at once, 1 to
// 1,000: it waits for so many, but once there is one no longer than fill. Concurrency is how many
// batches it works on at a time.
func (c *Client) ConsumeBatch(ctx context.Context, queue string, size int, fill time.Duration, handler BatchHandler, options ...Option) error {
	if size < 1 || size > maxCount || fill <= 0 {
		return fmt.Errorf("%w: a batch: expected 1 to %d packets and some time, got %d and %v", ErrInvalid, maxCount, size, fill)
	}
	w := &consumer{queue: queue, handler: handler, size: size}
	w.request.args = []any{"FILL", milliseconds(fill)}
	w.waiter.fill = fill
	return c.consume(ctx, w, options)
}

// consume does what Consume says.
func (c *Client) consume(ctx context.Context, w *consumer, options []Option) error {
	w.c, w.held, w.done, w.freed = c, make(map[*job]struct{}), make(chan struct{}), make(chan struct{}, 1)
	w.request.concurrency = 1
	for _, o := range options {
		o.add(&w.request)
	}
	switch {
	case w.request.blocks:
		return fmt.Errorf("%w: Consume waits without Block", ErrInvalid)
	case w.request.fill != 0:
		return fmt.Errorf("%w: Fill: use ConsumeBatch", ErrInvalid)
	case w.request.concurrency < 1:
		return fmt.Errorf("%w: Concurrency: expected 1 or more, got %d", ErrInvalid, w.request.concurrency)
	case w.request.lease == 0:
		Lease(DefaultLease).add(&w.request)
	}
	w.waiter.c, w.waiter.turn = c, takeTurn
	defer w.waiter.close()
	w.rdb = c.rdb.WithTimeout(max(c.patience, w.request.lease/3))
	w.answers = make(chan *job, w.request.concurrency*max(1, w.size))
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
	for b, idle := backoff(0), false; ; {
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
		packets, err := w.c.packets(w.askFor(ctx, n))
		w.begin(packets, n, w.waiter.asked)
		switch {
		case err == nil && w.request.burst && len(packets) == 0:
			if idle {
				return nil
			}
			w.working.Wait() // what handlers push or return may be there then
			b, idle = 0, true
		case err == nil:
			b, idle = 0, false
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

// askFor asks for n packets, or a batch, and waits for some, but not in a burst.
func (w *consumer) askFor(ctx context.Context, n int) (any, error) {
	if w.request.burst {
		return w.waiter.send(ctx, w.claims(n))
	}
	return w.waiter.ask(ctx, 0, w.claims(n))
}

// claims is the request for n packets, or a batch.
func (w *consumer) claims(n int) []any {
	if w.size > 0 {
		n = w.size
	}
	return append(w.request.take("QCLAIM", w.queue), "COUNT", n)
}

// reserve takes the slots that are free, and the slots of packets that are about to be answered.
// There are less than none until these are answered.
func (w *consumer) reserve(answered int) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	most := maxCount
	if w.size > 0 {
		most = 1
	}
	n = max(0, min(w.slots+answered, most))
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
	var good []*job
	for i, j := range jobs {
		if errs[i] != nil {
			j.p.log().Warn("a claim came too late to begin with its packet", "error", errs[i])
			continue
		}
		j.renewed = asked
		if good = append(good, j); w.size == 0 {
			w.start(good)
			good, slots = nil, slots-1
		}
	}
	if len(good) > 0 {
		w.start(good)
		slots--
	}
	w.release(slots)
}

// start has the handler work on packets together.
func (w *consumer) start(jobs []*job) {
	var ctx context.Context
	k := &work{}
	ctx, k.cancel = context.WithCancelCause(w.handling)
	k.leases.Store(int32(len(jobs)))
	k.left.Store(int32(len(jobs)))
	w.mu.Lock()
	for _, j := range jobs {
		j.work = k
		w.held[j] = struct{}{}
	}
	w.mu.Unlock()
	w.working.Add(len(jobs))
	go w.handle(ctx, jobs) // ends with the handler
}

// handle has the handler work on packets, and the answers sent that its end means, but for packets
// that are not held any more.
func (w *consumer) handle(ctx context.Context, jobs []*job) {
	v := &verdict{reason: "the handler ended its goroutine"}
	packets := make([]*Packet, len(jobs))
	for i, j := range jobs {
		packets[i] = j.p
	}
	defer func() {
		wanted := slices.ContainsFunc(jobs, func(j *job) bool { return !j.cancelled.Load() })
		if v != nil && !v.uncounted && wanted {
			log := packets[0].log()
			if w.size > 0 {
				log = log.With("packets", len(jobs))
			}
			log.Warn("the handler failed", "attempt", packets[0].Attempt, "error", v.reason)
		}
		for _, j := range jobs {
			j.answer = w.answer(j.p, v)
			j.cancel(nil)
			if w.claimAnswer(j) {
				w.answers <- j
			} else {
				w.settle(j)
			}
		}
	}()
	v = w.handler.run(ctx, packets)
}

// settle ends the work on a packet.
func (w *consumer) settle(j *job) {
	w.mu.Lock()
	delete(w.held, j)
	w.mu.Unlock()
	if j.work.left.Add(-1) == 0 {
		w.release(1)
	}
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
	errs, _ := w.pipeline(ctx, left, func(j *job) []any { return nack(j.p, judge(Uncounted(0, ErrShutdown))) })
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
