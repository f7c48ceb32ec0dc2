package ask

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"text/tabwriter"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/connection"
	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/cmd/workshop/loadgen"
)

// Bench measures a running server.
type Bench struct {
	Mode        string        `arg:"" enum:"push,pop,update,next,mixed" default:"mixed" help:"What the connections do: push or pop (barbershop: update or next), or mixed, where half of them do one and half the other (default ${default})."`
	Protocol    string        `enum:"pinpriq,barbershop,redis" default:"pinpriq" placeholder:"NAME" help:"pinpriq, barbershop or redis (default ${default})."`
	Connections int           `default:"16" range:"1 4096" placeholder:"N" help:"Connections, 1 to 4096; mixed needs 2 (default ${default})."`
	Depth       int           `default:"64" range:"1 4096" placeholder:"N" help:"Requests that a connection sends before it waits for their answers, 1 to 4096 (default ${default})."`
	Size        int           `default:"128" range:"16 65535" placeholder:"BYTES" help:"Payload bytes of a packet, 16 to 65535; not with barbershop (default ${default})."`
	Items       int           `default:"100000" range:"1 100000000" placeholder:"N" help:"Items to put on the board before the measurement, 1 to 100000000; next and mixed put at least --count there; barbershop only (default ${default})."`
	Count       int64         `xor:"count" range:"1" placeholder:"N" help:"Packets to push or pop, or each of both (barbershop: updates or items taken) (default 100000)."`
	All         bool          `xor:"count" help:"As many as can be done until --duration is over; not for pop and next."`
	Duration    time.Duration `default:"1m" range:"1ms 1d" placeholder:"TIME" help:"Longest time of the measurement (default ${default})."`
	Keep        bool          `help:"Leave the packets or items that nobody took, and print the queue of the packets."`
	JSON        bool          `help:"Print a JSON object."`

	Pinpriq string        `default:"127.0.0.1:7070" address:"127.0.0.1:7070" placeholder:"HOST:PORT" help:"Address of the server (default ${default})."`
	Timeout time.Duration `default:"30s" range:"1ms 3650d" placeholder:"TIME" help:"How long to wait for the server (default ${default})."`

	connection.Encryption `group:"Connection"`
	connection.Login      `group:"Connection"`

	Barbershop string `default:"127.0.0.1:8002" address:"127.0.0.1:8002" placeholder:"HOST:PORT" help:"Address of the server's board (default ${default})."`
	Redis      string `default:"127.0.0.1:6379" address:"127.0.0.1:6379" placeholder:"HOST:PORT" help:"Address of the server for Redis clients (default ${default})."`
}

func (c *Bench) Help() string {
	return `With pinpriq and redis (LPUSH and RPOP), bench works on a queue of its own with a random name. With barbershop it works on the only board there is. The board must be empty, and nobody else may use it meanwhile: bench takes every item off it at the end. Updates go to random items among --items. Ctrl-C ends the measurement, prints what it has so far, and is an error.

A packet counts as pushed when it is proven to be on disk: with pinpriq a barrier follows each window of --depth pushes. p50 and p99 are the time from sending a window to each of its answers; with --depth 1 that is the time of one request.

Examples:

    holdfast bench
    holdfast bench push --connections 64 --depth 1
    holdfast bench pop --count 1000000
    holdfast bench mixed --all --duration 10s --json
    holdfast bench push --count 1000000 --keep
    holdfast bench --protocol redis --depth 1
    holdfast bench update --protocol barbershop --items 1000000 --depth 16
    holdfast bench mixed --protocol barbershop --barbershop 127.0.0.1:8003`
}

func (c *Bench) Validate() error {
	if !c.All {
		c.Count = cmp.Or(c.Count, 100_000)
	}
	switch {
	case c.board() && (c.Mode == "push" || c.Mode == "pop"):
		return fmt.Errorf("barbershop has no mode %s: expected update, next or mixed", c.Mode)
	case !c.board() && (c.Mode == "update" || c.Mode == "next"):
		return fmt.Errorf("%s has no mode %s: expected push, pop or mixed, or --protocol barbershop", c.Protocol, c.Mode)
	case c.Mode == "mixed" && c.Connections < 2:
		return fmt.Errorf("--connections %d: mixed needs at least 2", c.Connections)
	case c.All && (c.Mode == "pop" || c.Mode == "next"):
		return fmt.Errorf("--all: %s needs --count", c.Mode)
	case c.board() && c.itemCount() > loadgen.MaxItems:
		return fmt.Errorf("--count %d: expected at most %d, since next and mixed need as many items on the board", c.Count, loadgen.MaxItems)
	}
	return nil
}

// board tells whether the bench measures the board, and not a queue.
func (c *Bench) board() bool { return c.Protocol == "barbershop" }

// itemCount is how many items the board gets: enough that next never finds it empty.
func (c *Bench) itemCount() int64 {
	if c.Mode == "update" {
		return int64(c.Items)
	}
	return max(c.Count, int64(c.Items))
}

func (c *Bench) Run(ctx context.Context, p *terminal.Process) error {
	newWorkload := c.queueWorkload
	if c.board() {
		newWorkload = c.boardWorkload
	}
	w, err := newWorkload(ctx)
	if err != nil {
		return err
	}
	result, err := c.measure(ctx, w)
	if !c.Keep {
		if cleanErr := c.clean(ctx, w, c.Duration+time.Minute); err == nil {
			err = cleanErr
		} else if cleanErr != nil {
			err = fmt.Errorf("%w; %w", err, cleanErr)
		}
	}
	if err != nil {
		if ctx.Err() != nil && result.Packets() > 0 { // a signal ends the measurement, which was good until then
			_ = c.newReport(w, &result).print(p.Stdout, c.JSON)
		}
		return fmt.Errorf("bench: %w", err)
	}
	return c.newReport(w, &result).print(p.Stdout, c.JSON)
}

// benchReport is what a bench prints.
type benchReport struct {
	Mode    string       `json:"mode"`
	Size    int          `json:"size"`            // payload bytes
	Items   int          `json:"items,omitempty"` // on the board; the packets below are then updates and items taken
	Seconds float64      `json:"seconds"`         // of the measurement
	Packets int64        `json:"packets"`         // pushed and popped together
	Rate    float64      `json:"packets_per_s"`   // of those
	Queue   string       `json:"queue,omitempty"` // where packets were left
	Groups  []benchGroup `json:"groups"`
}

// benchGroup is what the connections that did the same measured.
type benchGroup struct {
	Name        string  `json:"name"`
	Connections int     `json:"connections"`
	Depth       int     `json:"depth"`
	Packets     int64   `json:"packets"`
	Empty       int64   `json:"empty"` // requests to take something that found nothing
	Rate        float64 `json:"packets_per_s"`
	P50         float64 `json:"p50_us"`
	P99         float64 `json:"p99_us"`
}

func (c *Bench) newReport(w *workload, result *loadgen.Result) *benchReport {
	r := w.report
	r.Mode, r.Seconds, r.Packets, r.Rate = c.Mode, result.Elapsed.Seconds(), result.Packets(), math.Round(result.Rate())
	if !c.Keep {
		r.Queue = ""
	}
	for i := range result.Groups {
		g := &result.Groups[i]
		r.Groups = append(r.Groups, benchGroup{
			Name:        g.Name,
			Connections: c.group(g.Name, nil).Conns,
			Depth:       c.Depth,
			Packets:     g.Packets,
			Empty:       g.Empty,
			Rate:        math.Round(float64(g.Packets) / max(g.Elapsed.Seconds(), 1e-9)),
			P50:         microseconds(g.Quantile(0.50)),
			P99:         microseconds(g.Quantile(0.99)),
		})
	}
	return &r
}

func microseconds(d time.Duration) float64 { return math.Round(float64(d.Nanoseconds())/1e2) / 10 }

func (r *benchReport) print(w io.Writer, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(r)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	what := "packets"
	if r.Items > 0 {
		what = "operations"
	}
	fmt.Fprintf(t, "\tconnections\tdepth\t%s\t%s/s\tp50\tp99\t\n", what, what)
	for _, g := range r.Groups {
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%.0f\t%.3f ms\t%.3f ms\t\n", g.Name, g.Connections, g.Depth, g.Packets, g.Rate, g.P50/1e3, g.P99/1e3)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	load := fmt.Sprintf("%d-byte payloads", r.Size)
	if r.Items > 0 {
		load = terminal.Plural(r.Items, "item")
	}
	notes := fmt.Sprintf("%.0f %s/s in all, %s, %.2f s\n", r.Rate, what, load, r.Seconds)
	for _, g := range r.Groups {
		if g.Empty > 0 {
			notes += fmt.Sprintf("%s of %s found nothing\n", terminal.Plural(int(g.Empty), "more request"), g.Name)
		}
	}
	if r.Queue != "" {
		notes += fmt.Sprintf("what nobody took is left in queue %s\n", r.Queue)
	}
	_, err := io.WriteString(w, notes)
	return err
}
