package ask

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"text/tabwriter"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/cmd/workshop/loadgen"
)

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
