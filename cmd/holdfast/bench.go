package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/loadgen"
)

// benchCmd measures a running server.
type benchCmd struct {
	Mode        string        `arg:"" enum:"push,pop,update,next,mixed" default:"mixed" help:"push or pop (barbershop: update or next), or mixed: half of the connections do the one, half the other (default ${default})."`
	Protocol    string        `enum:"pinpriq,barbershop" default:"pinpriq" placeholder:"NAME" help:"pinpriq or barbershop (default ${default})."`
	Connections int           `default:"16" placeholder:"N" help:"Connections, 1 to 4096; mixed needs 2 (default ${default})."`
	Depth       int           `default:"64" placeholder:"N" help:"Requests that a connection sends before it waits for their answers, 1 to 4096 (default ${default})."`
	Size        int           `default:"128" placeholder:"BYTES" help:"Payload bytes, 16 to 65535; pinpriq (default ${default})."`
	Items       int           `default:"100000" placeholder:"N" help:"Items on the board, made before the measurement, 1 to 100000000; next and mixed make --count of them if that is more, so that none is missing; barbershop (default ${default})."`
	Count       int64         `default:"100000" placeholder:"N" help:"Packets to push, to pop, or both (barbershop: updates, items to take, or both); 0 goes on until the duration is over, but not for pop and next (default ${default})."`
	Duration    time.Duration `default:"1m" placeholder:"TIME" help:"Longest time of the measurement (default ${default})."`
	Keep        bool          `help:"Leave what was pushed and not popped where it is, and print the queue's name, instead of removing it (barbershop: leave the items that were not taken on the board, and print their numbers; the next bench refuses that board)."`
	JSON        bool          `help:"Print a JSON object."`

	server
	Barbershop string `default:"127.0.0.1:8002" placeholder:"HOST:PORT" help:"Address of the server's board (default ${default})."`
}

// Help is shown below the usage line.
func (c *benchCmd) Help() string {
	return `With pinpriq it works on a queue of its own with a random name, so that nobody's packets are touched. With barbershop there is only the one board, so it must be empty, and left alone until the end: the items that are left are taken off it then. When one of them is not of the measurement, it stops and says so. The updates are of random items among --items. A packet counts as pushed when it is proven to be on disk, by a barrier behind each window of --depth pushes. p50 and p99 are the time from sending a window to an answer of it; with --depth 1 that is the time of one request.

Examples:

    holdfast bench
    holdfast bench push --connections 64 --depth 1
    holdfast bench pop --count 1000000
    holdfast bench mixed --count 0 --duration 10s --json
    holdfast bench push --count 1000000 --keep
    holdfast bench update --protocol barbershop --items 1000000 --depth 16
    holdfast bench mixed --protocol barbershop --barbershop 127.0.0.1:8003`
}

// Validate is called with the parsed flags.
func (c *benchCmd) Validate() error {
	switch {
	case c.board() && (c.Mode == "push" || c.Mode == "pop"):
		return fmt.Errorf("%s is not of barbershop: expected update, next or mixed", c.Mode)
	case !c.board() && (c.Mode == "update" || c.Mode == "next"):
		return fmt.Errorf("%s is not of pinpriq: expected push, pop or mixed, or --protocol barbershop", c.Mode)
	case c.Items < 1 || c.Items > loadgen.MaxItems:
		return fmt.Errorf("--items %d: expected 1 to %d", c.Items, loadgen.MaxItems)
	case c.Connections < 1 || c.Connections > loadgen.MaxConns:
		return fmt.Errorf("--connections %d: expected 1 to %d", c.Connections, loadgen.MaxConns)
	case c.board() && c.Mode == "mixed" && c.Connections < 2:
		return errors.New("--connections 1: expected at least 2, one for updates and one for next")
	case c.Mode == "mixed" && c.Connections < 2:
		return errors.New("--connections 1: expected at least 2, one that pushes and one that pops")
	case c.Depth < 1 || c.Depth > loadgen.MaxDepth:
		return fmt.Errorf("--depth %d: expected 1 to %d", c.Depth, loadgen.MaxDepth)
	case c.Size < loadgen.MinSize || c.Size > loadgen.MaxSize:
		return fmt.Errorf("--size %d: expected %d to %d", c.Size, loadgen.MinSize, loadgen.MaxSize)
	case c.Count < 0 || c.Count == 0 && (c.Mode == "pop" || c.Mode == "next"):
		return fmt.Errorf("--count %d: expected more than 0 (push, update and mixed: or 0)", c.Count)
	case c.board() && c.liveItems() > loadgen.MaxItems:
		return fmt.Errorf("--count %d: expected at most %d, since next and mixed need as many items on the board", c.Count, loadgen.MaxItems)
	case c.Duration <= 0 || c.Duration > loadgen.MaxLimit:
		return fmt.Errorf("--duration %v: expected more than 0 and at most %v", c.Duration, loadgen.MaxLimit)
	}
	return cmp.Or(c.server.Validate(), checkAddress("--barbershop", c.Barbershop, "127.0.0.1:8002"))
}

// Run measures and prints.
func (c *benchCmd) Run(ctx context.Context, p *program) error {
	if c.board() {
		return c.runBoard(ctx, p)
	}
	conn, err := c.dial(ctx) // before the load: its error is the better sentence
	if err != nil {
		return err
	}
	_ = conn.Close()
	queue := benchQueue()
	result, err := c.measure(ctx, queue)
	if !c.Keep {
		err = errors.Join(err, c.clean(ctx, queue, c.cleanTime()))
	}
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	report := newBenchReport(c, &result)
	if c.Keep {
		report.Queue = queue
	}
	return report.print(p.stdout, c.JSON)
}

func benchQueue() string {
	var id [6]byte
	_, _ = rand.Read(id[:]) // never fails
	return "holdfast.bench." + hex.EncodeToString(id[:])
}

// measure runs the load; pop has its packets pushed beforehand, outside the measurement.
func (c *benchCmd) measure(ctx context.Context, queue string) (loadgen.Result, error) {
	packets := loadgen.Packets{Queue: queue, Size: c.Size}
	push := loadgen.Group{Name: "push", Depth: c.Depth, Count: c.Count, Conns: c.connectionsOf("push"),
		New: func() loadgen.Protocol { return loadgen.PinpriqPush(packets) }}
	pop := loadgen.Group{Name: "pop", Depth: c.Depth, Count: c.Count, Conns: c.connectionsOf("pop"),
		New: func() loadgen.Protocol { return loadgen.PinpriqPop(queue) }}
	groups := []loadgen.Group{push}
	switch c.Mode {
	case "mixed":
		groups = []loadgen.Group{push, pop}
	case "pop":
		filled, err := loadgen.Run(ctx, c.spec(push))
		if err != nil {
			return filled, err
		}
		if !filled.Groups[0].Finished {
			return filled, fmt.Errorf("only %d of %d packets could be pushed for it in %v: use a longer --duration",
				filled.Packets(), c.Count, c.Duration)
		}
		groups = []loadgen.Group{pop}
	}
	return loadgen.Run(ctx, c.spec(groups...))
}

func (c *benchCmd) spec(groups ...loadgen.Group) loadgen.Spec {
	addr := c.Pinpriq
	if c.board() {
		addr = c.Barbershop
	}
	return loadgen.Spec{Addr: addr, Groups: groups, Limit: c.Duration}
}

// cleanTime is how long the removal of what is left may take: making it took no longer than --duration.
func (c *benchCmd) cleanTime() time.Duration { return c.Duration + time.Minute }

// clean pops what is left of the bench's own queue, also after an interruption.
func (c *benchCmd) clean(ctx context.Context, queue string, atMost time.Duration) error {
	if err := c.empty(ctx, atMost, func() loadgen.Protocol { return loadgen.PinpriqPop(queue) }); err != nil {
		return fmt.Errorf("packets may be left in queue %q: %w", queue, err)
	}
	return nil
}

// empty takes until nothing is left. It goes on for some windows after the first empty reply: what the last
// connections had sent may still be coming in.
func (c *benchCmd) empty(ctx context.Context, atMost time.Duration, take func() loadgen.Protocol) error {
	const (
		window  = 512
		empties = 8 * window
	)
	spec := c.spec(loadgen.Group{
		Name: "clean", Conns: 1, Depth: window, Count: empties,
		New: func() loadgen.Protocol { return emptying{take()} },
	})
	spec.Limit = min(atMost, loadgen.MaxLimit)
	result, err := loadgen.Run(context.WithoutCancel(ctx), spec)
	if err == nil && !result.Groups[0].Finished {
		err = fmt.Errorf("they could not all be removed in %v", atMost)
	}
	return err
}

// emptying counts the pops that found nothing instead of the packets, so that a run of it ends when
// the queue is empty.
type emptying struct{ loadgen.Protocol }

// Consume implements loadgen.Protocol.
func (e emptying) Consume(dst, src []byte) ([]byte, loadgen.Progress, error) {
	dst, p, err := e.Protocol.Consume(dst, src)
	p.Packets = p.Empty
	return dst, p, err
}
