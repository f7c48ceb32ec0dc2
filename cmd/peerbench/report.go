package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/loadgen"
)

// row is one line of the table: one server in one case. Each list has an element for every round in
// which the figure was measured.
type row struct {
	Case    string    `json:"case"`
	Server  string    `json:"server"`
	Unit    string    `json:"unit"`
	Higher  bool      `json:"higher_is_better"`
	Samples []float64 `json:"samples"`
	P50     []float64 `json:"p50_ms,omitempty"`
	P99     []float64 `json:"p99_ms,omitempty"`
	CPU     []float64 `json:"server_cpu_ms_per_1000,omitempty"`
	Client  []float64 `json:"client_cpu_ms_per_1000,omitempty"`
	RSS     []float64 `json:"rss_mb,omitempty"`
	Anon    []float64 `json:"rss_anon_mb,omitempty"`
	File    []float64 `json:"rss_file_mb,omitempty"`
	Ratio   float64   `json:"holdfast_ratio,omitempty"` // Holdfast's median divided by this one; 0 where Holdfast is not in the case
}

// target is what Holdfast shall reach: a ratio to another row, or a figure.
type target struct {
	row      string  // "" for the case's own name
	baseRow  string  // the row compared with; "" for the same as row
	against  string  // the server compared with
	absolute bool    // the figure itself is compared with limit
	limit    float64 // ratio or figure
	higher   bool    // whether limit is the least rather than the most
	text     string
}

// verdict is a target with what was measured.
type verdict struct {
	Case   string  `json:"case"`
	Target string  `json:"target"`
	Value  float64 `json:"value"`
	Met    bool    `json:"met"`
}

// report is the outcome of a run.
type report struct {
	Processors int       `json:"processors"`
	SyncMicros float64   `json:"synced_append_us"`
	LoadBefore string    `json:"load_before,omitempty"` // load average of the last minute
	Rounds     int       `json:"rounds"`
	Quick      bool      `json:"quick"`
	Servers    []string  `json:"servers"`
	Skipped    []string  `json:"skipped,omitempty"`
	Failed     []string  `json:"failed,omitempty"`
	Rows       []*row    `json:"rows"`
	Verdicts   []verdict `json:"targets"`
	Seconds    float64   `json:"seconds"`
}

func atLeast(against string, ratio float64) target {
	return target{against: against, limit: ratio, higher: true, text: fmt.Sprintf("at least %g × %s", ratio, against)}
}

func atMost(against string, ratio float64) target {
	return target{against: against, limit: ratio, text: fmt.Sprintf("at most %g × %s", ratio, against)}
}

// newRows makes a row for each contender of a case.
func newRows(c *benchCase, unit string, higher bool) []*row {
	rows := make([]*row, len(c.contenders))
	for i, contender := range c.contenders {
		rows[i] = &row{Case: c.name, Server: contender.label, Unit: unit, Higher: higher}
	}
	return rows
}

// addResult adds a round's rate, latency and processor time. A packet counts as so many operations.
func (r *row) addResult(result *loadgen.Result, operations float64) {
	r.Samples = append(r.Samples, result.Rate()*operations)
	r.P50 = append(r.P50, millis(result.Quantile(0.50)))
	r.P99 = append(r.P99, millis(result.Quantile(0.99)))
	if packets := float64(result.Packets()) * operations; packets > 0 {
		r.CPU = append(r.CPU, millis(result.Server)*1000/packets)
		r.Client = append(r.Client, millis(result.Client)*1000/packets)
	}
}

// addMemory adds the memory of a running server.
func (r *row) addMemory(s *server) error {
	usage, err := loadgen.ReadUsage(s.cmd.Process.Pid)
	if err != nil {
		return err
	}
	r.RSS = append(r.RSS, float64(usage.RSS)/1e6)
	r.Anon = append(r.Anon, float64(usage.Anon)/1e6)
	r.File = append(r.File, float64(usage.File)/1e6)
	return nil
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// describe notes the versions of the servers and how busy the machine is.
func (r *report) describe(ctx context.Context, peers []*peer) {
	for _, p := range peers {
		r.Servers = append(r.Servers, p.name+": "+p.version(ctx))
	}
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		r.LoadBefore, _, _ = strings.Cut(string(load), " ")
	}
}

// add takes the rows of a case, and compares its targets.
func (r *report) add(c *benchCase, rows []*row) {
	rows = slices.DeleteFunc(rows, func(row *row) bool { return len(row.Samples) == 0 })
	for _, to := range rows {
		if own := find(rows, to.Case, "holdfast"); own != nil && own != to {
			to.Ratio = divide(median(own.Samples), median(to.Samples))
		}
	}
	r.Rows = append(r.Rows, rows...)
	for _, t := range c.targets {
		if t.row == "" {
			t.row = c.name
		}
		if t.baseRow == "" {
			t.baseRow = t.row
		}
		own := find(rows, t.row, "holdfast")
		if own == nil {
			continue
		}
		value := median(own.Samples)
		if !t.absolute {
			base := find(rows, t.baseRow, t.against)
			if base == nil {
				continue
			}
			value = divide(value, median(base.Samples))
		}
		met := value <= t.limit
		if t.higher {
			met = value >= t.limit
		}
		r.Verdicts = append(r.Verdicts, verdict{Case: t.row, Target: t.text, Value: value, Met: met})
	}
}

func find(rows []*row, name, server string) *row {
	for _, r := range rows {
		if r.Case == name && r.Server == server {
			return r
		}
	}
	return nil
}

func (r *report) writeJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

func (r *report) writeText(w io.Writer) error {
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
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "case\tserver\tmedian\tunit\tspread\tholdfast ÷ it\tp50 ms\tp99 ms\tserver CPU ms/1000\tclient\tRSS MB (anon + file)\t")
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
	fmt.Fprintln(&text)
	for _, v := range r.Verdicts {
		outcome := "missed"
		if v.Met {
			outcome = "met"
		}
		fmt.Fprintf(&text, "%-12s %-32s %8.2f  %s\n", v.Case, v.Target, v.Value, outcome)
	}
	for _, line := range r.Failed {
		fmt.Fprintf(&text, "\nfailed: %s\n", line)
	}
	_, err := io.WriteString(w, text.String())
	return err
}

func (r *row) cells(name string) []string {
	ratio := ""
	if r.Ratio != 0 {
		ratio = fmt.Sprintf("%.2f", r.Ratio)
	}
	memory := ""
	if len(r.RSS) > 0 {
		memory = fmt.Sprintf("%.0f (%.0f + %.0f)", median(r.RSS), median(r.Anon), median(r.File))
	}
	return []string{
		name, r.Server, figure(median(r.Samples)), r.Unit, spread(r.Samples), ratio,
		optional(r.P50), optional(r.P99), optional(r.CPU), optional(r.Client), memory,
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
