package main

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// timeKinds are what is measured, as the metrics of Holdfast name it.
var timeKinds = []struct{ metric, name string }{
	{"holdfast_turn_seconds", "turns"},
	{"holdfast_fsync_seconds", "syncs"},
}

// times are how many turns and syncs took how long: by the kind, and by the most that it was in
// seconds. Bounds are powers of two of a microsecond.
type times [2]map[float64]float64

// add adds others, so many times.
func (t *times) add(others times, factor float64) {
	for i, other := range others {
		if t[i] == nil {
			t[i] = map[float64]float64{}
		}
		for bound, n := range other {
			t[i][bound] += n * factor
		}
	}
}

// times reads the metrics of a server, if its turns are measured.
func (s *server) times(ctx context.Context) (t times, err error) {
	if !s.turns {
		return t, nil
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.admin+"/metrics", nil)
	if err != nil {
		return t, err
	}
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		return t, fmt.Errorf("the metrics of %s cannot be read: %w", s.peer.label, err)
	}
	defer reply.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(reply.Body)
	if err != nil {
		return t, fmt.Errorf("the metrics of %s cannot be read: %w", s.peer.label, err)
	}
	for i, kind := range timeKinds {
		t[i] = map[float64]float64{}
		for _, m := range families[kind.metric].GetMetric() {
			below := uint64(0)
			for _, b := range m.GetHistogram().GetBucket() {
				t[i][b.GetUpperBound()] = float64(b.GetCumulativeCount() - below)
				below = b.GetCumulativeCount()
			}
		}
	}
	return t, nil
}

// quantile is what a share q of all did not exceed, in milliseconds: between two bounds as if all
// there were spread evenly. 1 gives the bound above the longest.
func quantile(all map[float64]float64, q float64) float64 {
	sum := 0.0
	for _, n := range all {
		sum += n
	}
	left, below := q*sum, 0.0
	for _, bound := range slices.Sorted(maps.Keys(all)) {
		n := all[bound]
		if n > 0 && n >= left {
			return 1000 * (below + (bound-below)*left/n)
		}
		left, below = left-n, bound
	}
	return 0
}

// writeTimes writes a table of turns and syncs, if any were measured.
func (r *report) writeTimes(w *strings.Builder) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\ncase\tserver\tof Holdfast's loop\tp50 ms\tp99 ms\tp99.9 ms\tlongest, at most\t")
	written := false
	for _, row := range r.Rows {
		for i, kind := range timeKinds {
			all := row.Times[i]
			if len(all) == 0 {
				continue
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", row.Case, row.Server, kind.name,
				figure(quantile(all, 0.5)), figure(quantile(all, 0.99)), figure(quantile(all, 0.999)), figure(quantile(all, 1)))
			written = true
		}
	}
	if written {
		_ = table.Flush() // a strings.Builder takes everything
	}
}
