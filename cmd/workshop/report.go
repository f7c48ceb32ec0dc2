package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/workshop/loadgen"
)

// row is one line of the table: one server in one case. Each list has an element for every round in
// which the figure was measured.
type row struct {
	Case    string
	Server  string
	Unit    string
	Samples []float64
	P50     []float64 // milliseconds, as is all below but RSS
	P99     []float64
	CPU     []float64 // of the server, for 1000 operations
	Client  []float64 // the same of the generator
	RSS     []float64 // MB
	Times   times     // of all rounds together, where they are measured
	Ratio   float64   // Holdfast's median divided by this one; 0 where Holdfast is not in the case
}

// report is the outcome of a run.
type report struct {
	Processors int
	SyncMicros float64 // a synced append
	LoadBefore string  // load average of the last minute
	Rounds     int
	Quick      bool
	Servers    []string
	Skipped    []string
	Failed     []string
	Rows       []*row
	Seconds    float64
}

// newRows makes a row for each peer of a case.
func newRows(c *benchCase, name, unit string) []*row {
	rows := make([]*row, len(c.peers))
	for i, p := range c.peers {
		rows[i] = &row{Case: name, Server: p.label, Unit: unit}
	}
	return rows
}

// addResult adds a round's rate, latency and processor time. A packet counts as so many operations.
func (r *row) addResult(result *result, operations float64) {
	r.Samples = append(r.Samples, result.Rate()*operations)
	r.P50 = append(r.P50, millis(result.Quantile(0.50)))
	r.P99 = append(r.P99, millis(result.Quantile(0.99)))
	if packets := float64(result.Packets()) * operations; packets > 0 {
		if result.Server > 0 { // of a cell it is not known
			r.CPU = append(r.CPU, millis(result.Server)*1000/packets)
		}
		r.Client = append(r.Client, millis(result.Client)*1000/packets)
	}
	r.Times.add(result.times, 1)
}

// addMemory adds the memory of a running server.
func (r *row) addMemory(s *server) error {
	usage, err := loadgen.ReadUsage(s.cmd.Process.Pid)
	if err != nil {
		return err
	}
	r.RSS = append(r.RSS, float64(usage.RSS)/1e6)
	return nil
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// describe notes the versions of the servers and how busy the machine is.
func (r *report) describe(ctx context.Context, programs []*program) {
	for _, p := range programs {
		r.Servers = append(r.Servers, p.name+": "+p.version(ctx))
	}
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		r.LoadBefore, _, _ = strings.Cut(string(load), " ")
	}
}

// add takes the rows of a case that were measured.
func (r *report) add(rows []*row) {
	rows = slices.DeleteFunc(rows, func(row *row) bool { return len(row.Samples) == 0 })
	for _, to := range rows {
		if own := find(rows, to.Case, "holdfast"); own != nil && own != to {
			to.Ratio = divide(median(own.Samples), median(to.Samples))
		}
	}
	r.Rows = append(r.Rows, rows...)
}

func find(rows []*row, name, server string) *row {
	for _, r := range rows {
		if r.Case == name && r.Server == server {
			return r
		}
	}
	return nil
}

func (r *report) write(w io.Writer) error {
	var text strings.Builder
	fmt.Fprintf(&text, "%d processors, a synced append of 4 KiB takes %.0f µs, %d-byte payloads, medians of %d rounds, %.0f s in all\n",
		r.Processors, r.SyncMicros, payloadSize, r.Rounds, r.Seconds)
	for _, line := range append(r.Servers, r.Skipped...) {
		fmt.Fprintln(&text, line)
	}
	if r.Quick {
		fmt.Fprintln(&text, "small counts (--quick): a look, not a measurement")
	}
	if r.LoadBefore != "" {
		fmt.Fprintf(&text, "load average before the run %s: other programs also slow every server\n", r.LoadBefore)
	}
	fmt.Fprintln(&text)
	r.writeCost(&text)
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "case\tserver\tmedian\tunit\tspread\tholdfast ÷ it\tp50 ms\tp99 ms\tserver CPU ms/1000\tclient\tRSS MB\t")
	last := ""
	for _, row := range r.Rows {
		name := row.Case
		if name == last {
			name = ""
		}
		last = row.Case
		fmt.Fprintln(table, strings.Join(row.cells(name), "\t")+"\t")
	}
	_ = table.Flush() // a strings.Builder takes everything
	r.writeTimes(&text)
	for _, line := range r.Failed {
		fmt.Fprintf(&text, "\nfailed: %s\n", line)
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// costCases are the rows of the first table: cases at depth 64, and what is a request in each.
var costCases = []struct{ name, request string }{
	{"push-64", "pinpriq push (zset in Redis)"},
	{"lpush-64", "LPUSH"},
	{"rpop-64", "RPOP"},
	{"brpop-64", "LPUSH with BRPOP"},
	{"get-64", "GET"},
	{"set-64", "SET"},
	{"work-64", "push + claim + acknowledge"}, // the three count as one
	{"mixed-64", "mixed, 32 producers and 32 consumers"},
}

// onlyCost keeps the cases of the first table, with Holdfast and Redis only.
func onlyCost(all []benchCase) []benchCase {
	var kept []benchCase
	for _, c := range all {
		for _, cost := range costCases {
			if c.name == cost.name {
				c.peers = named(c.peers, "holdfast", "redis")
				kept = append(kept, c)
			}
		}
	}
	return kept
}

// writeCost writes the first table, without the cases that were not run.
func (r *report) writeCost(w *strings.Builder) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "server's processor time of a request\tholdfast µs\tredis µs\tratio (goal: at most 1)\t")
	written := false
	for _, c := range costCases {
		own, redis := find(r.Rows, c.name, "holdfast"), find(r.Rows, c.name, "redis")
		if own == nil || redis == nil {
			continue
		}
		// Milliseconds of 1,000 requests are microseconds of one.
		ratio := divide(median(own.CPU), median(redis.CPU))
		fmt.Fprintf(table, "%s\t%s\t%s\t%.2f\t\n", c.request, optional(own.CPU), optional(redis.CPU), ratio)
		written = true
	}
	if written {
		_ = table.Flush() // a strings.Builder takes everything
		fmt.Fprintln(w)
	}
}

func (r *row) cells(name string) []string {
	ratio := ""
	if r.Ratio != 0 {
		ratio = fmt.Sprintf("%.2f", r.Ratio)
	}
	return []string{
		name, r.Server, figure(median(r.Samples)), r.Unit, spread(r.Samples), ratio,
		optional(r.P50), optional(r.P99), optional(r.CPU), optional(r.Client), optional(r.RSS),
	}
}

// figure writes three digits, or a whole number.
func figure(v float64) string {
	switch {
	case math.Abs(v) >= 100:
		return fmt.Sprintf("%.0f", v)
	case math.Abs(v) >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

func optional(samples []float64) string {
	if len(samples) == 0 {
		return ""
	}
	return figure(median(samples))
}

// spread is how far the extremes lie from the median, in percent.
func spread(samples []float64) string {
	m := median(samples)
	if len(samples) < 2 || m == 0 {
		return ""
	}
	return fmt.Sprintf("%+.0f %+.0f %%", (slices.Min(samples)/m-1)*100, (slices.Max(samples)/m-1)*100)
}

// median is the middle sample, or the mean of the two in the middle; 0 if there are none.
func median(samples []float64) float64 {
	if len(samples) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(samples))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// divide is a divided by b; 0 if b is 0.
func divide(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}
