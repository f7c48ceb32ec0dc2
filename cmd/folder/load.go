package folder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/config"
	"github.com/holdfast-queue/holdfast/cmd/connection"
	"github.com/holdfast-queue/holdfast/cmd/daemon"
	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/recovery/dump"
	"github.com/holdfast-queue/holdfast/recovery/load"
)

// Load makes a folder of a dump, or loads it into a server.
type Load struct {
	File string        `arg:"" help:"Dump or backup to read, jsonl or msgpack, or - for standard input, but with --to-server."`
	Dir  config.Folder `arg:"" optional:"" help:"Data folder; made if it does not exist. No server may be running on it. With --to-server there is none."`
	JSON bool          `help:"Print a JSON object."`

	ToServer bool     `help:"Add the dump to what a running server holds: packets to the queues of the same names and databases, in their order, as the newest of their priority."`
	Queue    []string `pattern:"" placeholder:"GLOB" sep:"none" help:"With --to-server, only queues, strings and hashes whose name matches: * is anything, ? one character, [a-z] one of a set. May be given more than once (default: all)."`
	ToQueue  string   `placeholder:"QUEUE" help:"With --to-server, load the packets of one queue into QUEUE of the database --db."`
	From     []int64  `placeholder:"RECORD" range:"1 1000000000000" help:"With --to-server, go on with this record of the dump, as the error of a load that was cut short says. The numbers behind it are the queues and hashes that it had begun."`

	connection.WorkQueue
	terminal.Progress
}

func (c *Load) Help() string {
	return `A new folder gets everything as it was: a dump of it is the same file. Packets that have expired since the dump are left out. Claims go on: a consumer can acknowledge what it claimed before the dump. All of the dump is stored at once, in the last moment. After an error, Ctrl-C, kill -9 or a power cut before that the folder is as it was: run the load again.

With --to-server FILE the dump goes into a running server, which others use meanwhile; so queues move from one server to another. First the dump is read and checked to its end. Then it goes in pipelines. A load that is cut short, on either side, says from which record on the dump may be missing. --from with what it says goes on there: some packets may be there twice then, and none is missing. The user needs push and manage for all that is loaded. Counters of queues stay behind, and packets get new ids.

There claimed packets become ready and keep their attempts, and queues that are there keep their settings.

Examples:

    holdfast load holdfast.backup ./restored
    gunzip < holdfast.backup.gz | holdfast load - ./restored
    holdfast load --to-server holdfast.backup --redis 10.0.0.2:6379
    holdfast load --to-server holdfast.backup --queue jobs --to-queue jobs-of-old
    holdfast load --to-server holdfast.backup --from 1200345,2`
}

// Validate is called with the parsed flags.
func (c *Load) Validate() error {
	switch {
	case !c.ToServer && c.Dir == "":
		return errors.New("expected FILE and DIR, or --to-server FILE")
	case !c.ToServer && (len(c.Queue) > 0 || c.ToQueue != "" || c.From != nil):
		return errors.New("--queue, --to-queue and --from go with --to-server")
	case c.ToServer && c.Dir != "":
		return errors.New("--to-server: expected a FILE, but no folder")
	case c.ToServer && c.File == "-":
		return errors.New("--to-server: expected a file, as it is read twice: to be checked, and to be loaded")
	}
	return nil
}

func (c *Load) Run(ctx context.Context, p *terminal.Process) error {
	if c.ToServer {
		return c.toServer(ctx, p)
	}
	if err := c.Dir.Check(false); err != nil {
		return fmt.Errorf("load: %w", err)
	}
	in, err := p.Input(c.File)
	if err != nil {
		return err
	}
	defer in.Close()
	m := p.Meter(c.Quiet)
	defer m.End()
	defer daemon.TuneGC()()
	defer daemon.LimitHeap()()
	report, err := load.Load(ctx, string(c.Dir), in.Reader, load.Options{
		Now: time.Now().UnixMilli(),
		Progress: func(at dump.Progress) {
			if at.Keys > 0 {
				m.Set("load keys", terminal.InKeys, at.Keys, 0)
			} else {
				m.Set("load", terminal.InPackets, at.Packets, expected(&at, in.Size))
			}
		},
	})
	m.End()
	if err != nil {
		return fmt.Errorf("load: %w", err)
	}
	return c.print(p.Stdout, &report)
}

// expected is about how many packets a file of size bytes has, 0 if that is not known.
func expected(at *dump.Progress, size int64) int64 {
	if at.Total > 0 || at.Bytes <= 0 {
		return at.Total
	}
	return int64(float64(at.Packets) * float64(size) / float64(at.Bytes))
}

func (c *Load) print(w io.Writer, r *load.Report) error {
	if c.JSON {
		var o terminal.JSON
		addFigures(&o, figure{"packets", r.Packets}, figure{"queues", r.Queues}, figure{"expired", r.Expired},
			figure{"keys", r.Keys}, figure{"taken", r.Taken})
		o.Add("seconds", r.Took.Seconds())
		return o.Print(w)
	}
	line := fmt.Sprintf("%s of %s loaded in %v", terminal.Plural(r.Packets, "packet"), terminal.Plural(r.Queues, "queue"), r.Took.Round(time.Millisecond))
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
