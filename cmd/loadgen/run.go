package loadgen

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// run is the state of one Run that all its connections share.
type run struct {
	spec   *Spec
	groups []*group
	begin  time.Time     // set before the first request, read-only afterwards
	open   atomic.Int32  // groups that have a Count and have not reached it
	over   atomic.Bool   // set once: by the last such group, a failure, ctx or the limit
	ended  chan struct{} // closed together with over

	mu    sync.Mutex
	err   error         // first failure; under mu
	total time.Duration // time of the end; under mu until over, read-only afterwards
	all   []*stats      // one per group of each worker; under mu, read when the workers are gone
}

// group is the part of a Group's state that its connections share.
type group struct {
	Group
	run *run

	next     atomic.Uint64 // number of the next request
	budget   atomic.Int64  // requests that may still be begun; not used when Count is 0
	packets  atomic.Int64
	finished atomic.Int64 // nanoseconds from begin to the moment Count was reached, 0 before
}

// stats counts for one group on one worker, without sharing; see worker.
type stats struct {
	group           *group
	requests, empty int64
	latency         Histogram
}

// worker is a goroutine's view of the run: the connections it serves count in
// stats that only it touches while the run lasts.
type worker []*stats

func newRun(spec *Spec) *run {
	r := &run{spec: spec, ended: make(chan struct{})}
	for _, g := range spec.Groups {
		state := &group{Group: g, run: r}
		state.budget.Store(g.Count)
		if g.Count > 0 {
			r.open.Add(1)
		}
		r.groups = append(r.groups, state)
	}
	return r
}

// newWorker makes the stats of one more goroutine.
func (r *run) newWorker() worker {
	w := make(worker, len(r.groups))
	for i, g := range r.groups {
		w[i] = &stats{group: g}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, w...)
	return w
}

// dialed is an open connection that no request was sent on yet.
type dialed struct {
	socket *net.TCPConn
	group  int // index into run.groups
}

// dial opens the connections of all groups, or none.
func (r *run) dial(ctx context.Context) ([]dialed, error) {
	var conns []dialed
	dialer := net.Dialer{Timeout: dialTimeout}
	for i, g := range r.groups {
		for range g.Conns {
			socket, err := dialer.DialContext(ctx, "tcp", r.spec.Addr)
			if err != nil {
				closeAll(conns)
				return nil, fmt.Errorf("connection %d of group %q to %s failed: %w", len(conns)+1, g.Name, r.spec.Addr, err)
			}
			conns = append(conns, dialed{socket.(*net.TCPConn), i})
		}
	}
	return conns, nil
}

func closeAll(conns []dialed) {
	for _, c := range conns {
		_ = c.socket.Close() // nothing was sent that could be lost
	}
}

// serve has the engine drive the connections until the run is over and close
// them, and returns why it ended if that was not by count or time.
func (r *run) serve(ctx context.Context, conns []dialed, engine func(*run, []dialed)) error {
	r.begin = time.Now()
	limit := time.AfterFunc(r.spec.Limit, func() { r.end(nil) })
	defer limit.Stop()
	stop := context.AfterFunc(ctx, func() { r.end(ctx.Err()) })
	defer stop()

	engine(r, conns)

	// The engine returns only when the run is over; r.err is settled.
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// end ends the run; only the first call counts.
func (r *run) end(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over.Load() {
		return
	}
	r.err = err
	r.total = time.Since(r.begin)
	r.over.Store(true)
	close(r.ended)
}

// result collects what the workers counted; none of them may be running.
func (r *run) result() Result {
	result := Result{Elapsed: r.total, Groups: make([]GroupResult, len(r.groups))}
	for i, g := range r.groups {
		to := &result.Groups[i]
		to.Name, to.Packets, to.Elapsed = g.Name, g.packets.Load(), r.total
		if at := g.finished.Load(); at > 0 {
			to.Finished, to.Elapsed = true, time.Duration(at)
		}
		for _, s := range r.all {
			if s.group == g {
				to.Requests += s.requests
				to.Empty += s.empty
				to.Latency.Merge(&s.latency)
			}
		}
	}
	return result
}

// take reserves the numbers of up to depth requests. It returns none when all
// that Count allows are under way or answered; a connection that gets none may
// rest for good, because a request that comes back empty-handed returns its
// place on a connection that then asks again itself.
func (g *group) take() (first uint64, n int) {
	if g.Count == 0 {
		return g.next.Add(uint64(g.Depth)) - uint64(g.Depth), g.Depth
	}
	for {
		left := g.budget.Load()
		n := min(left, int64(g.Depth))
		if n <= 0 {
			return 0, 0
		}
		if g.budget.CompareAndSwap(left, left-n) {
			return g.next.Add(uint64(n)) - uint64(n), int(n)
		}
	}
}

// settle notes answered requests and ends the run with the last group.
func (g *group) settle(p Progress) {
	packets := g.packets.Add(int64(p.Packets))
	if g.Count == 0 {
		return
	}
	if back := p.Done - p.Packets; back != 0 {
		g.budget.Add(int64(back))
	}
	if packets >= g.Count && packets-int64(p.Packets) < g.Count {
		g.finished.Store(max(1, int64(time.Since(g.run.begin))))
		if g.run.open.Add(-1) == 0 {
			g.run.end(nil)
		}
	}
}

// conn is one connection's window, apart from the socket: an engine moves the
// bytes. It is used by one goroutine.
type conn struct {
	stats   *stats
	proto   Protocol
	in      []byte // read buffer; the first held bytes wait for the rest of a reply
	held    int
	out     []byte // bytes to be written
	waiting int    // requests of the window that are not answered
	sent    time.Time
}

func newConn(s *stats) *conn {
	return &conn{stats: s, proto: s.group.New(), in: make([]byte, readBuffer)}
}

// request appends the next window to out if the last one is complete.
func (c *conn) request(now time.Time) {
	if c.waiting > 0 {
		return
	}
	first, n := c.stats.group.take()
	if n > 0 {
		c.out = c.proto.Append(c.out, first, n)
		c.waiting = n
		c.sent = now
	}
}

// reply takes the n bytes that were read to in[held:].
func (c *conn) reply(n int, now time.Time) error {
	c.held += n
	out, p, err := c.proto.Consume(c.out, c.in[:c.held])
	c.out = out
	if err != nil {
		return err
	}
	c.held = copy(c.in, c.in[p.Used:c.held])
	if p.Done > c.waiting {
		return fmt.Errorf("the server sent %d replies more than there were requests", p.Done-c.waiting)
	}
	if p.Done > 0 {
		c.waiting -= p.Done
		c.stats.requests += int64(p.Done)
		c.stats.empty += int64(p.Empty)
		c.stats.latency.Add(now.Sub(c.sent), uint64(p.Done))
	}
	c.stats.group.settle(p)
	return nil
}

// failed is the error of a connection whose socket gave err.
func (c *conn) failed(err error) error {
	return fmt.Errorf("a connection of group %q failed with %d requests unanswered: %w", c.stats.group.Name, c.waiting, err)
}

var errHungUp = errors.New("the server closed it")
