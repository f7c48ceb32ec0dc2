package loadgen

import (
	"errors"
	"fmt"
	"time"
)

// run is the state of one Run. The goroutine that calls Run is the only one that uses it.
type run struct {
	spec   *Spec
	groups []*group
	begin  time.Time     // of the first request
	open   int           // groups that have a Count and have not reached it
	over   bool          // set when the last of them reaches its Count, or the limit is over
	total  time.Duration // from begin to the end
}

// group is a Group with its progress.
type group struct {
	Group
	run    *run
	result GroupResult
	next   uint64 // number of the next request
	budget int64  // packets of Count that no request under way can bring; not used when Count is 0
}

func newRun(spec *Spec) *run {
	r := &run{spec: spec}
	for _, g := range spec.Groups {
		state := &group{Group: g, run: r, budget: g.Count}
		state.result = GroupResult{Name: g.Name, latency: newLatency()}
		if g.Count > 0 {
			r.open++
		}
		r.groups = append(r.groups, state)
	}
	return r
}

// end notes the time of the end.
func (r *run) end(now time.Time) {
	r.over, r.total = true, now.Sub(r.begin)
}

func (r *run) result() Result {
	result := Result{Elapsed: r.total}
	for _, g := range r.groups {
		if !g.result.Finished {
			g.result.Elapsed = r.total
		}
		result.Groups = append(result.Groups, g.result)
	}
	return result
}

// take reserves the numbers of up to Depth requests. It returns none when the requests under way
// can bring all that is left of Count. A connection that gets none may rest for good: when a
// request comes back empty, its own connection asks again. It also returns none when the group is
// ahead of its Rate; the loop then asks again.
func (g *group) take(now time.Time) (first uint64, n int) {
	if g.Rate > 0 && float64(g.next) > now.Sub(g.run.begin).Seconds()*float64(g.Rate) {
		return g.next, 0
	}
	n = g.Depth
	if g.Count > 0 {
		n = int(min(max(g.budget, 0), int64(n)))
		g.budget -= int64(n)
	}
	first = g.next
	g.next += uint64(n)
	return first, n
}

// answered counts the answers to requests that were sent at the time sent. It ends the run when the
// last group reaches its Count.
func (g *group) answered(p Progress, sent, now time.Time) {
	to := &g.result
	if p.Done > 0 {
		to.Requests += int64(p.Done)
		to.Empty += int64(p.Empty)
		_ = to.latency.RecordValues(int64(now.Sub(sent)), int64(p.Done)) // fits: no run is longer than MaxLimit
	}
	to.Packets += int64(p.Packets)
	if g.Count == 0 {
		return
	}
	g.budget += int64(p.Done - p.Packets)
	if to.Packets >= g.Count && !to.Finished {
		to.Finished, to.Elapsed = true, now.Sub(g.run.begin)
		if g.run.open--; g.run.open == 0 {
			g.run.end(now)
		}
	}
}

// window is the requests of one connection that are under way, and the bytes that wait to be
// written or understood. It does not touch the socket.
type window struct {
	group   *group
	proto   Protocol
	in      []byte // read buffer; its first partial bytes are the beginning of a reply
	partial int
	out     []byte // bytes to write
	waiting int    // requests that are not answered
	sent    time.Time
}

const readBuffer = 64 << 10

func newWindow(g *group) *window {
	return &window{group: g, proto: g.New(), in: make([]byte, readBuffer)}
}

// fill appends the next requests to out if all earlier ones are answered.
func (w *window) fill(now time.Time) {
	if w.waiting > 0 {
		return
	}
	if first, n := w.group.take(now); n > 0 {
		w.out = w.proto.Append(w.out, first, n)
		w.waiting, w.sent = n, now
	}
}

// reply takes the n bytes that were read into in[partial:].
func (w *window) reply(n int, now time.Time) error {
	w.partial += n
	out, p, err := w.proto.Consume(w.out, w.in[:w.partial])
	w.out = out
	if err != nil {
		return err
	}
	w.partial = copy(w.in, w.in[p.Used:w.partial])
	if p.Done > w.waiting {
		return fmt.Errorf("the server sent %d replies more than there were requests", p.Done-w.waiting)
	}
	w.waiting -= p.Done
	w.group.answered(p, w.sent, now)
	return nil
}

// failed is the error of a connection whose socket gave err.
func (w *window) failed(err error) error {
	return fmt.Errorf("a connection of group %q failed with %d requests unanswered: %w", w.group.Name, w.waiting, err)
}

var errHungUp = errors.New("the server closed it")
