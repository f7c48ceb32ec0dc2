// Command workshop compares Holdfast with other queue servers. It starts each of them on this
// machine with the same promise (a reply is sent after the data is synced), drives them with the
// same generator in turn, and prints medians, spreads and ratios. Compare ratios between machines,
// not figures. BENCHMARKS.md holds the results. The map:
//
//	main.go   flags, and the choice of programs and cases
//	cases.go  the table of cases
//	kinds.go  the kinds of cases: rates, starts, memory, growth, renewals
//	peer.go   the servers that are compared, and the ways to use them
//	table.go  a table of PostgreSQL as a queue
//	cell.go   three servers that hold the same
//	server.go one running server
//	bench.go  rounds, filling and measuring
//	turns.go  how long turns of Holdfast's loop took
//	report.go rows, the first table (what a request costs the server) and that of all cases
//	loadgen   the generator
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path"
	"runtime"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
)

type options struct {
	Holdfast string `help:"Holdfast binary to measure." default:"bin/holdfast" placeholder:"PATH"`
	Cases    string `help:"Cases to run, as a pattern such as 'push*'; --list shows them." default:"*" placeholder:"GLOB"`
	Cost     bool   `help:"Only Holdfast and Redis in the cases of the first table, what a request costs."`
	Rounds   int    `help:"Rounds of each case; 5, or 2 with --quick." placeholder:"N"`
	Quick    bool   `help:"Small counts: a look in about five minutes, not a measurement."`
	Turns    bool   `help:"Also how long the turns of Holdfast's loop took, and the syncs in them: p50, p99, p99.9 and the longest."`
	Dir      string `help:"Folder on the disk to be measured; one for data is made inside, and deleted. Default: .bench." placeholder:"PATH"`
	List     bool   `help:"List the cases and end."`
}

// maxRounds bounds a run that would otherwise last for days.
const maxRounds = 100

func main() {
	var o options
	kong.Parse(&o, kong.Name("workshop"), kong.Description("Compares Holdfast with other queue servers on this machine."))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, &o); err != nil {
		if errors.Is(err, context.Canceled) {
			err = errors.New("interrupted; all servers are stopped and their data is deleted")
		}
		fmt.Fprintf(os.Stderr, "workshop: %v\n", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, o *options) error {
	rounds, limit := o.counts()
	if rounds < 1 || rounds > maxRounds {
		return fmt.Errorf("--rounds is %d, expected 1 to %d", o.Rounds, maxRounds)
	}
	programs, skipped, err := choosePrograms(o)
	if err != nil {
		return err
	}
	all := allCases(programs, o.Quick)
	if o.Cost {
		all = onlyCost(all)
	}
	cases, err := chooseCases(all, o.Cases)
	if err != nil {
		return err
	}
	if o.List {
		for _, c := range cases {
			fmt.Printf("%-14s %s\n", c.name, c.about)
		}
		return nil
	}
	b, err := newBench(o.Dir, rounds, limit)
	if err != nil {
		return err
	}
	defer b.close()
	b.turns, b.quick = o.Turns, o.Quick
	report := report{Rounds: rounds, Quick: o.Quick, Processors: runtime.NumCPU(), Skipped: skipped}
	if report.SyncMicros, err = b.measureSync(); err != nil {
		return err
	}
	report.describe(ctx, programs)
	began := time.Now()
	for _, c := range cases {
		rows, err := c.run(ctx, b, &c)
		if err != nil {
			return fmt.Errorf("case %s: %w", c.name, err)
		}
		report.add(rows)
	}
	report.Seconds, report.Failed = time.Since(began).Seconds(), b.failed
	if err := report.write(os.Stdout); err != nil {
		return fmt.Errorf("the result cannot be written: %w", err)
	}
	if len(b.failed) > 0 {
		return fmt.Errorf("%d measurements failed, see the lines below the table", len(b.failed))
	}
	return nil
}

// counts returns the number of rounds, and the time of a measurement.
func (o *options) counts() (rounds int, limit time.Duration) {
	rounds, limit = 5, 3*time.Second
	if o.Quick {
		rounds, limit = 2, time.Second
	}
	return cmp.Or(o.Rounds, rounds), limit
}

// choosePrograms returns Holdfast and the servers that are installed, and a line for each that is
// not. For a list of the cases nothing need be installed.
func choosePrograms(o *options) (there []*program, skipped []string, err error) {
	for _, p := range allPrograms(o.Holdfast) {
		err := error(nil)
		if !o.List {
			err = p.find()
		}
		switch {
		case err == nil:
			there = append(there, p)
		case p.name == "holdfast":
			return nil, nil, fmt.Errorf("%w; build it with make build, or name it with --holdfast", err)
		default:
			skipped = append(skipped, fmt.Sprintf("%s is skipped: %v", p.name, err))
		}
	}
	return there, skipped, nil
}

func chooseCases(cases []benchCase, pattern string) ([]benchCase, error) {
	var chosen []benchCase
	for _, c := range cases {
		match, err := path.Match(pattern, c.name)
		if err != nil {
			return nil, fmt.Errorf("--cases is %q, expected a pattern such as 'push*': %w", pattern, err)
		}
		if match {
			chosen = append(chosen, c)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("--cases %q matches no case that can run; --list shows them", pattern)
	}
	return chosen, nil
}
