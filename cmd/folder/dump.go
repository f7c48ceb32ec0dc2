package folder

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/config"
	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/recovery/dump"
	"github.com/holdfast-queue/holdfast/storage"
)

// Dump writes what is in a folder.
type Dump struct {
	Dir     config.Folder `arg:"" help:"Data folder; no server may be running on it."`
	Queue   []string      `pattern:"" placeholder:"GLOB" sep:"none" help:"Only queues, strings and hashes whose name matches: * is anything, ? one character, [a-z] one of a set. May be given more than once (default: all)."`
	Format  string        `enum:"jsonl,msgpack" default:"jsonl" placeholder:"FORMAT" help:"jsonl or msgpack (default ${default})."`
	Payload string        `enum:"auto,text,base64,none" default:"auto" placeholder:"FORM" help:"How to write payloads and values: text (base64 where they are not UTF-8), base64, none, or auto, which is text unless there are control characters (default ${default})."`
	Limit   int64         `placeholder:"N" help:"At most N packets, and no strings and hashes; 0 is no limit (default 0)."`
	Salvage bool          `help:"Write what can be read of a damaged folder, and say on standard error what cannot."`
	Output  string        `short:"o" default:"-" placeholder:"FILE" help:"File to write, or - for standard output. It gets its name when it is whole and on disk; until then an older file stays (default ${default})."`

	terminal.Progress
}

func (c *Dump) Help() string {
	return `Writes the settings of the queues and every packet that has not expired, with all its fields and what was tried with it, in the order of delivery. It changes nothing in the folder. Bytes that are not UTF-8 are written as {"base64":"..."}, so "holdfast load" makes the same folder again. The last record counts and hashes the others: a dump without it is not whole.

With --salvage the exit code is 0 although some packets cannot be read. Standard error says how many, how the others differ from the count of the last batch, and whether popped packets may be among them.

Examples:

    holdfast dump ./holdfast-data | head
    holdfast dump ./holdfast-data --queue 'jobs.*' --limit 100 --payload none
    holdfast dump ./holdfast-data --format msgpack -o holdfast.dump
    holdfast dump ./holdfast-data --limit 100 | jq -r 'select(.type == "packet") | [.queue, .priority, .state, .payload] | @csv'
    holdfast dump ./damaged --salvage -o rest.jsonl`
}

func (c *Dump) Run(ctx context.Context, p *terminal.Process) (err error) {
	if err := c.Dir.Check(true); err != nil {
		return fmt.Errorf("dump: %w", err)
	}
	m := p.Meter(c.Quiet)
	defer m.End()
	view, err := storage.OpenView(string(c.Dir), storage.ViewOptions{
		Tolerant: c.Salvage,
		Progress: func(done, total int64) { m.Set("check", terminal.InBytes, done, total) },
	})
	if err != nil {
		return fmt.Errorf("dump: %w", err)
	}
	defer func() {
		if e := view.Close(); err == nil {
			err = e
		}
	}()
	o, err := p.Create(c.Output)
	if err != nil {
		return err
	}
	defer o.Discard()
	warnOfClock(p, view.Control().Time)
	report, err := dump.Dump(view, o, dump.Options{
		Format: dump.Format(c.Format), Payload: dump.Encoding(c.Payload), Queues: c.Queue, Limit: c.Limit, Salvage: c.Salvage,
		Now: time.Now().UnixMilli(),
		Progress: func(at dump.Progress) {
			if at.Keys > 0 {
				m.Set("dump keys", terminal.InKeys, at.Keys, 0)
			} else {
				m.Set("dump", terminal.InPackets, at.Packets, c.expected(at.Total))
			}
		},
	})
	m.End()
	if err := o.End(ctx, "dump", err); err != nil {
		return err
	}
	c.tell(p, &report, view.Findings())
	return nil
}

// expected is about how many packets will be written of a folder that holds total, 0 if that is not
// known.
func (c *Dump) expected(total int64) int64 {
	switch {
	case len(c.Queue) > 0:
		return 0
	case c.Limit > 0:
		return min(c.Limit, total)
	}
	return total
}

// tell prints on standard error what a dump left out, and nothing for a complete one.
func (c *Dump) tell(p *terminal.Process, r *dump.Report, findings []storage.Finding) {
	say := func(format string, args ...any) { fmt.Fprintf(p.Stderr, "holdfast: "+format+"\n", args...) }
	for _, f := range slices.Concat(findings, r.Findings) {
		say("%v", f)
	}
	if r.More > 0 {
		say("%d findings more", r.More)
	}
	if mayHoldPopped(findings, r.Findings) {
		say("popped packets may be among those that were written, and others may be missing")
	}
	if r.Lost > 0 {
		say("%d packets are left out because of damage, %d were written", r.Lost, r.Packets)
	}
	if r.LostKeys > 0 {
		say("%d strings, hashes and fields are left out because of damage, %d were written", r.LostKeys, r.Keys)
	}
	if r.OmittedKeys > 0 {
		say("%d strings, hashes and fields are left out: a dump with a limit holds none", r.OmittedKeys)
	}
	if r.Expired > 0 {
		say("%d expired packets are left out", r.Expired)
	}
}

// mayHoldPopped reports whether deletes may be lost, so that popped packets are back: the last
// batches are missing, or a file is damaged and the packets are not those that the control record
// counts.
func mayHoldPopped(files, packets []storage.Finding) bool {
	damaged, differs := false, false
	for _, f := range files {
		switch f.Kind {
		case storage.FindingAnchor, storage.FindingControl:
			return true
		case storage.FindingLog, storage.FindingTable:
			damaged = true
		}
	}
	for _, f := range packets {
		if f.Kind == storage.FindingResurrected {
			return true
		}
		differs = differs || f.Kind == storage.FindingLost
	}
	return damaged && differs
}

// warnOfClock tells that the clock by which a folder is read is far past its last batch: it may be
// wrong.
func warnOfClock(p *terminal.Process, last int64) {
	if past := time.Since(time.UnixMilli(last)); last != 0 && past > 24*time.Hour {
		fmt.Fprintf(p.Stderr, "holdfast: this machine's clock is %v past the last batch: what has expired by it is left out\n", past.Round(time.Hour))
	}
}
