// Package loadgen drives a queue server with many connections and measures what it
// gets out of it. It knows pinpriq and barbershop, and the peers Holdfast is
// compared with: sorted sets and lists of Redis, and beanstalkd.
//
// Each connection is a closed loop: it writes a window of requests in one
// write, waits until all of them are answered, and writes the next window. At
// depth 1 that is one request at a time. The generator often shares a machine
// with the server, so it spends as little as it can on each request: frames are
// made from templates, replies are counted rather than decoded, nothing is
// allocated, and on Linux one thread serves all connections.
package loadgen

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"
)

// Limits of one run; Spec.check refuses what goes beyond.
const (
	// MaxConns bounds the connections of all groups together: each takes a
	// descriptor and about 100 kB.
	MaxConns = 4096
	// MaxDepth bounds a window: its requests are written before any reply is
	// read, so server and generator could otherwise wait for each other.
	MaxDepth = 4096
	// MaxLimit bounds the time of a run.
	MaxLimit = 24 * time.Hour

	dialTimeout = 10 * time.Second
	readBuffer  = 64 << 10
)

// Group is a set of connections that do the same.
type Group struct {
	Name  string // appears in the result
	Conns int    // 1 to MaxConns in all groups together
	Depth int    // requests of a window, 1 to MaxDepth
	// Count ends the group's work when so many packets are acknowledged or
	// received; 0 leaves the end to the other groups and to the time limit.
	// No more requests than that are under way or fruitful at any moment,
	// so a group of pushes sends exactly Count packets.
	Count int64
	New   func() Protocol // makes the protocol of one connection
}

// Spec says what a run does.
type Spec struct {
	Addr   string        // host:port of the server
	Groups []Group       // at least one
	Limit  time.Duration // the run ends after this time at the latest; 0 to MaxLimit, 0 excluded
	PID    int           // process whose processor time is measured (Linux only); 0 for none
}

// Result is what a run measured.
type Result struct {
	Elapsed time.Duration // from the first request to the end of the last group that has a Count, or to the limit
	Groups  []GroupResult // in the order of Spec.Groups
	Server  time.Duration // processor time of Spec.PID, user and system, in steps of 10 ms
	Client  time.Duration // processor time of this process, where it can be read
}

// GroupResult is what the connections of one group did together.
type GroupResult struct {
	Name     string
	Packets  int64         // acknowledged or received
	Requests int64         // answered
	Empty    int64         // of those, answered that there is nothing to take
	Elapsed  time.Duration // until Count was reached, or the end of the run
	Finished bool          // whether Count was reached; false where Count is 0
	// Latency is the time from the write of a window to the answer of each of
	// its requests. At depth 1 that is the latency of a request.
	Latency Histogram
}

// Packets is the number of packets of all groups.
func (r *Result) Packets() int64 {
	var n int64
	for i := range r.Groups {
		n += r.Groups[i].Packets
	}
	return n
}

// Rate is the packets of all groups per second of the run.
func (r *Result) Rate() float64 {
	if r.Elapsed <= 0 {
		return 0
	}
	return float64(r.Packets()) / r.Elapsed.Seconds()
}

// ServerPer1000 is the server's processor time for 1,000 packets, a push and a
// pop counting one each.
func (r *Result) ServerPer1000() time.Duration {
	if r.Packets() == 0 {
		return 0
	}
	return time.Duration(float64(r.Server) / float64(r.Packets()) * 1000)
}

// Run opens all connections, does the work and closes them. It returns when
// every group with a Count has reached it or the limit is over, both of which
// are a normal end; when ctx is done; or when a connection fails. In the last
// two cases the result so far comes with the error.
func Run(ctx context.Context, spec Spec) (Result, error) {
	if err := spec.check(); err != nil {
		return Result{}, err
	}
	r := newRun(&spec)
	conns, err := r.dial(ctx)
	if err != nil {
		return Result{}, err
	}
	var before Usage
	if spec.PID != 0 {
		if before, err = ReadUsage(spec.PID); err != nil {
			closeAll(conns)
			return Result{}, err
		}
	}
	self, selfErr := ReadUsage(os.Getpid())

	err = r.serve(ctx, conns, (*run).drive)

	result := r.result()
	if spec.PID != 0 {
		after, usageErr := ReadUsage(spec.PID)
		result.Server = after.CPU - before.CPU
		err = errors.Join(err, usageErr)
	}
	if after, afterErr := ReadUsage(os.Getpid()); selfErr == nil && afterErr == nil {
		result.Client = after.CPU - self.CPU
	}
	return result, err
}

// Ask sends one request on a connection of its own and waits for its answer. It
// is how a starting server is asked whether it serves yet.
func Ask(ctx context.Context, addr string, p Protocol) (Progress, error) {
	dialer := net.Dialer{Timeout: dialTimeout}
	socket, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return Progress{}, fmt.Errorf("no connection to %s: %w", addr, err)
	}
	defer socket.Close()
	stop := context.AfterFunc(ctx, func() { _ = socket.SetDeadline(time.Unix(1, 0)) })
	defer stop()

	var total Progress
	out, in, held := p.Append(nil, 0, 1), make([]byte, readBuffer), 0
	for total.Done == 0 && total.Packets == 0 {
		if _, err := socket.Write(out); err != nil {
			return total, askError(ctx, addr, err)
		}
		n, err := socket.Read(in[held:])
		if err != nil {
			return total, askError(ctx, addr, err)
		}
		held += n
		var progress Progress
		if out, progress, err = p.Consume(out[:0], in[:held]); err != nil {
			return total, err
		}
		held = copy(in, in[progress.Used:held])
		total.add(progress)
	}
	return total, nil
}

func askError(ctx context.Context, addr string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("the connection to %s failed before the answer: %w", addr, err)
}

func (s *Spec) check() error {
	if len(s.Groups) == 0 {
		return errors.New("the load has no group, expected at least one")
	}
	if s.Limit <= 0 || s.Limit > MaxLimit {
		return fmt.Errorf("the time limit is %v, expected more than 0 and at most %v", s.Limit, MaxLimit)
	}
	conns := 0
	for _, g := range s.Groups {
		switch {
		case g.Conns < 1 || g.Conns > MaxConns:
			return fmt.Errorf("group %q has %d connections, expected 1 to %d", g.Name, g.Conns, MaxConns)
		case g.Depth < 1 || g.Depth > MaxDepth:
			return fmt.Errorf("group %q has depth %d, expected 1 to %d", g.Name, g.Depth, MaxDepth)
		case g.Count < 0:
			return fmt.Errorf("group %q has a count of %d, expected 0 or more", g.Name, g.Count)
		case g.New == nil:
			return fmt.Errorf("group %q has no protocol, expected a function that makes one", g.Name)
		}
		conns += g.Conns
	}
	if conns > MaxConns {
		return fmt.Errorf("the groups have %d connections together, expected at most %d", conns, MaxConns)
	}
	return nil
}
