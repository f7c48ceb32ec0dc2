// Package loadgen sends traffic to a queue server over many connections and measures how the server
// keeps up. It speaks pinpriq and barbershop, and the protocols of the servers that Holdfast is
// compared with: Redis (sorted sets, lists, strings), beanstalkd, RabbitMQ and NATS (publishes).
//
// Each connection writes a window of requests in one write, waits until all of them are answered,
// and writes the next window. At depth 1 that is one request at a time. The generator often shares
// a machine with the server, so a request costs it as little as possible: frames come from
// templates, replies are counted but not decoded, nothing is allocated, and one thread serves all
// connections by epoll.
//
//	loadgen.go      what a run is and what it measures: Spec, Run, Result
//	ask.go          one request to a server that is starting
//	window.go       the requests of a group and of a connection that are under way
//	epoll_linux.go  the sockets: reads and writes for all windows; epoll_other.go refuses elsewhere
//	sealed_linux.go encryption on them
//	protocol.go     what a protocol must do, what drivers are made of, and text replies
//	traffic.go      which packets are pushed, and which items of a board are updated
//	pinpriq.go, barbershop.go, beanstalkd.go, redis.go, amqp.go, nats.go   one protocol each
//	work.go         packets that are pushed, claimed and acknowledged
//	usage.go        processor time and memory of a process
package loadgen

import (
	"context"
	"crypto/tls"
	"errors"
	"os"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Limits of one run. The caller keeps to them.
const (
	// MaxConns bounds the connections of all groups together. Each takes a descriptor and 100 kB.
	MaxConns = 4096
	// MaxDepth bounds a window. A window is written before any reply is read, so with a larger
	// one the server and the generator could wait for each other.
	MaxDepth = 4096
	// MaxLimit bounds the time of a run.
	MaxLimit = 24 * time.Hour
)

// Group is a set of connections that do the same.
type Group struct {
	Name  string // appears in the result
	Conns int    // 1 to MaxConns in all groups together
	Depth int    // requests of a window, 1 to MaxDepth
	// Count is how many packets the group pushes or takes. The group never asks for more, so a
	// group of pushes sends exactly Count packets. With 0 the group goes on until the other
	// groups are done or the time is up.
	Count int64
	// Rate is how many requests all connections of the group together send in a second, as whole
	// windows; 0 means as many as are answered.
	Rate int
	New  func() Protocol // makes the protocol of one connection
}

// Spec says what a run does.
type Spec struct {
	Addr   string        // host:port of the server
	Groups []Group       // at least one
	Limit  time.Duration // longest time of the run, more than 0 and at most MaxLimit

	TLS   *tls.Config     // encrypts the connections, for the name in it; nil for plain ones
	Login func() Protocol // makes the first request of a connection, before the run; nil for none
}

// Result is what a run measured.
type Result struct {
	Elapsed time.Duration // from the first request until all groups with a Count were done, or to the limit
	Groups  []GroupResult // in the order of Spec.Groups
	Client  time.Duration // processor time of this process, user and system, in steps of 10 ms
}

// GroupResult is what the connections of one group did together.
type GroupResult struct {
	Name     string
	Packets  int64         // acknowledged or received
	Requests int64         // answered
	Empty    int64         // answered requests that found nothing to take
	Elapsed  time.Duration // until Count was reached, or to the end of the run
	Finished bool          // whether Count was reached; false where Count is 0

	latency *hdrhistogram.Histogram // nanoseconds
}

// Packets is the number of packets of all groups.
func (r *Result) Packets() int64 {
	var n int64
	for i := range r.Groups {
		n += r.Groups[i].Packets
	}
	return n
}

// Rate is the number of packets a second, all groups together.
func (r *Result) Rate() float64 {
	if r.Elapsed <= 0 {
		return 0
	}
	return float64(r.Packets()) / r.Elapsed.Seconds()
}

// Quantile is the latency that a share q (0 to 1) of the requests of all groups did not exceed. It
// is at most 1 % too high, and 0 where no request was answered.
func (r *Result) Quantile(q float64) time.Duration {
	all := GroupResult{latency: newLatency()}
	for i := range r.Groups {
		all.latency.Merge(r.Groups[i].latency)
	}
	return all.Quantile(q)
}

// Quantile is the same for one group. The latency of a request is the time from the write of its
// window to its answer.
func (g *GroupResult) Quantile(q float64) time.Duration {
	return time.Duration(g.latency.ValueAtQuantile(q * 100))
}

// newLatency makes an empty histogram for every duration that a run can measure.
func newLatency() *hdrhistogram.Histogram { return hdrhistogram.New(1, int64(MaxLimit), 2) }

// Run opens all connections, does the work and closes them. It ends normally when every group with
// a Count has reached it, or when the limit is over. It ends with an error, and with the result so
// far, when ctx is done or a connection fails.
func Run(ctx context.Context, spec Spec) (Result, error) {
	r := newRun(&spec)
	l, err := dial(ctx, r)
	if err != nil {
		return Result{}, err
	}
	defer l.close()
	before, err := ReadUsage(os.Getpid())
	if err != nil {
		return Result{}, err
	}

	err = l.run(ctx)

	result := r.result()
	after, usageErr := ReadUsage(os.Getpid())
	if usageErr == nil {
		result.Client = after.CPU - before.CPU
	}
	return result, errors.Join(err, usageErr)
}
