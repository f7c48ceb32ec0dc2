package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/daemon"
	"github.com/holdfast-queue/holdfast/recovery/dump"
	"github.com/holdfast-queue/holdfast/recovery/load"
)

// loadCmd makes a folder of a dump.
type loadCmd struct {
	Dir   folder `arg:"" help:"Data folder; made if it does not exist. No server may be running on it."`
	File  string `arg:"" help:"Dump or backup to read, jsonl or msgpack, or - for standard input."`
	Merge bool   `help:"Add the packets to what the folder holds: to the queues of the same names, in their order, as the newest of their priority."`
	JSON  bool   `help:"Print a JSON object."`

	progress
}

func (c *loadCmd) Help() string {
	return `A new folder gets everything as it was: a dump of it is the same file. Packets that have expired since the dump are left out. Claims go on: a consumer can acknowledge what it claimed before the dump. All of the dump is stored at once, in the last moment. After an error, Ctrl-C, kill -9 or a power cut before that the folder is as it was: run the load again.

With --merge, claimed packets become ready and keep their attempts, and queues that the folder has keep their settings. A dump that is loaded twice adds its packets twice. A merge that was killed in its last moment may be complete: compare the number of packets before you run it again.

Examples:

    holdfast load ./restored holdfast.backup
    gunzip < holdfast.backup.gz | holdfast load ./restored -
    holdfast load ./holdfast-data jobs.jsonl --merge`
}

func (c *loadCmd) Run(ctx context.Context, p *program) error {
	if err := c.Dir.check(false); err != nil {
		return fmt.Errorf("load: %w", err)
	}
	in, err := p.input(c.File)
	if err != nil {
		return err
	}
	defer in.close()
	m := p.meter(c.Quiet)
	defer m.end()
	defer daemon.TuneGC()()
	defer daemon.LimitHeap()()
	report, err := load.Load(ctx, string(c.Dir), in.Reader, load.Options{
		Merge: c.Merge,
		Now:   time.Now().UnixMilli(),
		Progress: func(at dump.Progress) {
			if at.Keys > 0 {
				m.set("load keys", inKeys, at.Keys, 0)
			} else {
				m.set("load", inPackets, at.Packets, expected(&at, in.size))
			}
		},
	})
	m.end()
	if err != nil {
		return fmt.Errorf("load: %w", err)
	}
	return c.print(p.stdout, &report)
}

// expected is about how many packets a file of size bytes has, 0 if that is not known.
func expected(at *dump.Progress, size int64) int64 {
	if at.Total > 0 || at.Bytes <= 0 {
		return at.Total
	}
	return int64(float64(at.Packets) * float64(size) / float64(at.Bytes))
}

func (c *loadCmd) print(w io.Writer, r *load.Report) error {
	if c.JSON {
		var o jsonObject
		o.figures(figure{"packets", r.Packets}, figure{"queues", r.Queues}, figure{"expired", r.Expired},
			figure{"keys", r.Keys}, figure{"taken", r.Taken})
		o.add("seconds", r.Took.Seconds())
		_, err := w.Write(o.line())
		return err
	}
	line := fmt.Sprintf("%s of %s loaded in %v", plural(r.Packets, "packet"), plural(r.Queues, "queue"), r.Took.Round(time.Millisecond))
	if r.Keys > 0 {
		line += fmt.Sprintf("; %d strings and hashes", r.Keys)
	}
	if r.Taken > 0 {
		line += fmt.Sprintf("; %d strings and hashes left out because of their names", r.Taken)
	}
	if r.Expired > 0 {
		line += fmt.Sprintf("; %d expired packets left out", r.Expired)
	}
	_, err := fmt.Fprintln(w, line)
	return err
}
