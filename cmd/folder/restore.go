package folder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/config"
	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/recovery/archive"
	"github.com/holdfast-queue/holdfast/storage"
)

// Restore makes a folder of a backup of files.
type Restore struct {
	File string        `arg:"" help:"Backup to read, as \"holdfast backup --files\" makes it, or - for standard input."`
	Dir  config.Folder `arg:"" help:"Data folder to make: not there, or empty."`
	JSON bool          `help:"Print a JSON object."`

	terminal.Progress
}

func (c *Restore) Help() string {
	return `Makes a data folder of a backup that "holdfast backup --files" made. Claims and delays go on where they were. Run it as the user that is to serve the folder. It needs a version with the data format of the one that made the backup ("holdfast version" says it). A dump is for "holdfast load", and needs none.

The sum of the whole backup is checked before the folder becomes one that a server takes. After an error or Ctrl-C nothing of it is left. After kill -9 a server refuses the folder: remove it, and run the restore again.

Examples:

    holdfast restore holdfast.tar ./restored
    gunzip < holdfast.tar.gz | holdfast restore - /var/lib/holdfast`
}

// Run restores, and returns nil once the folder is whole and on disk.
func (c *Restore) Run(ctx context.Context, p *terminal.Process) error {
	if err := c.Dir.Check(false); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	in, err := p.Input(c.File)
	if err != nil {
		return err
	}
	defer in.Close()
	m := p.Meter(c.Quiet)
	defer m.End()
	began := time.Now()
	r, err := archive.NewReader(in.Reader)
	if err == nil {
		err = r.Restore(ctx, string(c.Dir), func(done, total int64) { m.Set("restore", terminal.InBytes, done, total) })
	}
	m.End()
	switch {
	case ctx.Err() != nil && err != nil && !errors.Is(err, storage.ErrKept):
		return errors.New("restore: interrupted; nothing was kept")
	case err != nil:
		return fmt.Errorf("restore: %w", err)
	}
	return c.print(p.Stdout, &r.Header, time.Since(began))
}

func (c *Restore) print(w io.Writer, h *archive.Header, took time.Duration) error {
	at, bytes := time.UnixMilli(h.At), h.Bytes()
	if c.JSON {
		var o terminal.JSON
		o.Moment("at", at)
		addFigures(&o, figure{"bytes", bytes}, figure{"files", int64(len(h.Files))}, figure{"packets", int64(h.Packets)})
		o.Add("seconds", took.Seconds())
		return o.Print(w)
	}
	_, err := fmt.Fprintf(w, "%s of %s restored in %v: the moment %s. Check it with \"holdfast verify %[5]s\", and serve it with \"holdfast serve --data %[5]s\"\n",
		terminal.Approximate(bytes), terminal.Plural(len(h.Files), "file"), took.Round(time.Millisecond), at.UTC().Format(time.RFC3339), c.Dir)
	return err
}
