package main

import (
	"fmt"
	"strings"
	"text/tabwriter"
)

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
