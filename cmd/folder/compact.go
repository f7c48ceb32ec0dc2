package folder

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/config"
	"github.com/holdfast-queue/holdfast/cmd/daemon"
	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/recovery/compact"
)

// Compact makes a folder small.
type Compact struct {
	Dir        config.Folder `arg:"" help:"Data folder; no server may be running on it."`
	AcceptLoss bool          `help:"Go on although acknowledged packets are missing, and give those up."`
	JSON       bool          `help:"Print a JSON object."`

	terminal.Progress
}

func (c *Compact) Help() string {
	return `Writes the tables anew without what was popped or has expired, and gives the space back to the file system. A running server does the same bit by bit. Queues that were dropped shortly before the server stopped go when it has run again. Where a claimed packet has expired, all that has expired stays. Ctrl-C and kill -9 do no harm at any moment: the folder stays sound and keeps its packets.

Examples:

    holdfast compact ./holdfast-data
    holdfast compact ./holdfast-data --json --quiet
    holdfast compact ./damaged --accept-loss`
}

func (c *Compact) Run(ctx context.Context, p *terminal.Process) error {
	if err := c.Dir.Check(true); err != nil {
		return fmt.Errorf("compact: %w", err)
	}
	m := p.Meter(c.Quiet)
	defer m.End()
	defer daemon.TuneGC()()
	defer daemon.LimitHeap()()
	report, err := compact.Folder(ctx, string(c.Dir), compact.Options{
		Now:        time.Now().UnixMilli(),
		AcceptLoss: c.AcceptLoss,
		Progress: func(step string, done, total int64) {
			if step == "read" {
				m.Set(step, terminal.InPackets, done, total)
			} else {
				m.Set(step, terminal.InBytes, done, total)
			}
		},
	})
	m.End()
	if err != nil {
		return fmt.Errorf("compact: %w", err)
	}
	warnOfClock(p, report.Last)
	for _, finding := range report.Findings {
		fmt.Fprintf(p.Stderr, "holdfast: %s\n", finding)
	}
	return c.print(p.Stdout, &report)
}

func (c *Compact) print(w io.Writer, r *compact.Report) error {
	if c.JSON {
		var o terminal.JSON
		addFigures(&o, figure{"packets", int64(r.Packets)}, figure{"expired", int64(r.Expired)}, figure{"keys", int64(r.Keys)},
			figure{"before", r.Before.Total}, figure{"after", r.After.Total})
		o.Add("seconds", r.Took.Seconds())
		o.Add("findings", append([]string{}, r.Findings...))
		return o.Print(w)
	}
	kept := terminal.Plural(r.Packets, "packet")
	if r.Keys > 0 {
		kept += fmt.Sprintf(" and %d strings and hashes", r.Keys)
	}
	_, err := fmt.Fprintf(w, "%s before, %s after: %s kept, %d expired, in %v\n",
		terminal.Approximate(r.Before.Total), terminal.Approximate(r.After.Total), kept, r.Expired, r.Took.Round(time.Millisecond))
	return err
}
