package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/workshop/loadgen"
)

// bench is what the cases share: the folder, the number of rounds, and the servers that must not
// outlive it. It belongs to one goroutine.
type bench struct {
	dir     string // made by newBench, deleted by close
	parent  string // deleted by close if it is empty then; "" if it was named by the user
	rounds  int
	turns   bool          // whether turns of Holdfast's loop are measured
	quick   bool          // whether it is a look, not a measurement
	limit   time.Duration // of a measurement that has no limit of its own
	servers []*server
	failed  []string // what went wrong, a line each
}

const fillLimit = 10 * time.Minute

// newBench makes a folder for the run inside dir; "" means .bench.
func newBench(dir string, rounds int, limit time.Duration) (*bench, error) {
	parent := ""
	if dir == "" {
		dir, parent = ".bench", ".bench"
	}
	dir, err := filepath.Abs(dir)
	if err == nil {
		err = os.MkdirAll(dir, 0o711) // PostgreSQL may run as another user
	}
	if err == nil {
		dir, err = os.MkdirTemp(dir, "workshop-")
	}
	if err != nil {
		return nil, fmt.Errorf("no folder for the data of the servers: %w", err)
	}
	return &bench{dir: dir, parent: parent, rounds: rounds, limit: limit}, nil
}

// close kills what still runs and deletes everything.
func (b *bench) close() {
	b.killAll()
	if err := os.RemoveAll(b.dir); err != nil {
		fmt.Fprintf(os.Stderr, "workshop: the folder %s cannot be deleted: %v\n", b.dir, err)
	}
	if b.parent != "" {
		_ = os.Remove(b.parent) // fails if something else is in it, as it should
	}
}

// measureSync returns the median time of a synced append of 4 KiB in microseconds. Every figure of
// every server depends on it.
func (b *bench) measureSync() (float64, error) {
	f, err := os.Create(filepath.Join(b.dir, "sync"))
	if err != nil {
		return 0, fmt.Errorf("the disk cannot be measured: %w", err)
	}
	defer f.Close()
	block := make([]byte, 4096)
	var samples []float64
	for range 101 {
		began := time.Now()
		_, err := f.Write(block)
		if err == nil {
			err = f.Sync()
		}
		if err != nil {
			return 0, fmt.Errorf("the disk cannot be measured: %w", err)
		}
		samples = append(samples, float64(time.Since(began).Microseconds()))
	}
	return median(samples), nil
}

// each measures every peer once in every round, so that changes on the machine meet all of them. A
// peer that fails is noted and left out of further rounds. The only error is that ctx ended.
func (b *bench) each(ctx context.Context, c *benchCase, rounds int, measure func(round, peer int) error) error {
	out := make([]bool, len(c.peers))
	for round := range rounds {
		for i, p := range c.peers {
			if out[i] {
				continue
			}
			progress("\r\x1b[K%s: %s, round %d of %d", c.name, p.label, round+1, rounds)
			err := measure(round, i)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				b.failed = append(b.failed, fmt.Sprintf("%s, %s, round %d: %v", c.name, p.label, round+1, err))
				b.killAll()
				out[i] = true
			}
		}
	}
	progress("\r\x1b[K")
	return nil
}

// progress writes to standard error if that is a terminal.
func progress(format string, args ...any) {
	if info, err := os.Stderr.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
		fmt.Fprintf(os.Stderr, format, args...)
	}
}

// killAll ends every server that still runs. The data stays until close.
func (b *bench) killAll() {
	for _, s := range b.servers {
		s.kill()
	}
}

// filled returns a running server with what it is filled with.
func (b *bench) filled(ctx context.Context, p *peer, fills ...filling) (*server, error) {
	s, err := b.newServer(p)
	if err != nil {
		return nil, err
	}
	fast := len(fills) > 0 && p.fillArgs != nil
	args := p.args
	if fast {
		args = p.fillArgs
	}
	if _, err := s.start(ctx, args, unusedQueue, anyAnswer); err != nil {
		return nil, err
	}
	for _, f := range fills {
		if err := s.fill(ctx, f); err != nil {
			return nil, err
		}
	}
	if fast {
		s.kill()
		return s, s.serve(ctx)
	}
	return s, nil
}

// queueTarget is a queue, "" for the one that is measured, and a board that is not sized yet.
func queueTarget(queue string, base int) target {
	queue = cmp.Or(queue, queueName)
	return target{
		Packets: loadgen.Packets{Queue: queue, Size: payloadSize, Base: uint64(base)},
		items:   loadgen.Items{Queue: queue},
	}
}

func (s *server) fill(ctx context.Context, f filling) error {
	t := queueTarget(f.queue, f.base)
	t.items.Live, t.items.InOrder = f.count, true
	return s.make(ctx, t, f.ask, f.count)
}

// make makes n packets or items and waits until the server is at rest.
func (s *server) make(ctx context.Context, t target, ask string, n int) error {
	groups := s.peer.groups(t, load{ask, 16, 64, n})
	result, err := loadgen.Run(ctx, loadgen.Spec{Addr: s.addr, Limit: fillLimit, Groups: groups})
	if err != nil {
		return fmt.Errorf("filling failed: %w; the server's log says: %s", err, s.log())
	}
	if !result.Groups[0].Finished {
		return fmt.Errorf("only %d of %d packets or items were filled in within %v", result.Packets(), n, fillLimit)
	}
	return s.atRest(ctx)
}

// result is what a run measured.
type result struct {
	loadgen.Result
	Server time.Duration // processor time of the server, from the first request until it was at rest
	busy   time.Duration // that until the last reply
	times  times         // of Holdfast's turns and syncs, where they are measured
}

// atRest waits until the server has done all that requests left to do, which counts, too. Holdfast
// makes tables of its journal a second after the last batch, and five after the last tables. A look
// does not wait for that.
func (s *server) atRest(ctx context.Context) error {
	if s.quick {
		return s.rest(ctx)
	}
	quiet := time.Second
	if s.peer.program == "holdfast" {
		quiet = 7 * time.Second
	}
	return s.settle(ctx, quiet, 30*time.Second)
}

// load runs the groups against the server.
func (s *server) load(ctx context.Context, groups []loadgen.Group, limit time.Duration) (loadgen.Result, error) {
	r, err := loadgen.Run(ctx, loadgen.Spec{Addr: s.addr, Limit: limit, Groups: groups})
	if err != nil {
		err = fmt.Errorf("%w; the server's log says: %s", err, s.log())
	}
	return r, err
}

// run is load that measures the server until it is at rest.
func (s *server) run(ctx context.Context, groups []loadgen.Group, limit time.Duration) (r result, err error) {
	before, err := loadgen.ReadUsage(s.cmd.Process.Pid)
	var were times
	if err == nil {
		were, err = s.times(ctx)
	}
	if err == nil {
		r.Result, err = s.load(ctx, groups, limit)
	}
	used := func(cpu *time.Duration) {
		after, fails := loadgen.ReadUsage(s.cmd.Process.Pid)
		*cpu, err = after.CPU-before.CPU, fails
	}
	if err == nil {
		used(&r.busy)
	}
	if err == nil {
		err = s.atRest(ctx)
	}
	if err == nil {
		used(&r.Server)
	}
	if err == nil {
		r.times, err = s.times(ctx)
		r.times.add(were, -1)
	}
	return r, err
}

// measure adds what a run gives to a row. A packet counts as so many operations.
func (s *server) measure(
	ctx context.Context, r *row, operations float64, limit time.Duration, groups []loadgen.Group,
) (result, error) {
	measured, err := s.run(ctx, groups, limit)
	if err != nil {
		return measured, err
	}
	r.addResult(&measured, operations)
	return measured, r.addMemory(s)
}

// discard removes a server that is no longer needed.
func (b *bench) discard(s *server) error {
	b.servers = slices.DeleteFunc(b.servers, func(o *server) bool { return o == s })
	return s.remove()
}
