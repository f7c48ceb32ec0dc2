package folder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/connection"
	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/netproto/admin"
	"github.com/holdfast-queue/holdfast/recovery/archive"
	"github.com/holdfast-queue/holdfast/recovery/dump"
)

// Backup copies a running server's store.
type Backup struct {
	To     string   `required:"" placeholder:"FILE" help:"File to write, or - for standard output. It gets its name when it is whole and on disk; until then an older file stays. In a folder, its name is the time."`
	Keep   int      `range:"0 1000000" placeholder:"N" help:"In a folder: keep the newest N backups, this one included, and remove older ones; 0 keeps all (default 0)."`
	Queue  []string `pattern:"" placeholder:"GLOB" sep:"none" help:"Only queues whose name matches: * is anything, ? one character, [a-z] one of a set. May be given more than once (default: all)."`
	Format string   `enum:"msgpack,jsonl" default:"msgpack" placeholder:"FORMAT" help:"msgpack or jsonl (default ${default})."`
	Files  bool     `help:"Copy the files of the data folder as they are, into a tar for \"holdfast restore\": everything, at the speed of the disk while no client writes. A program with another data format refuses it."`
	JSON   bool     `help:"Print a JSON object with the name of the file and what it holds."`

	connection.Operator
	terminal.Progress
}

func (c *Backup) Help() string {
	return `Streams a consistent copy out of a running server: all that was on disk at one moment. The server goes on meanwhile. "holdfast load" makes a data folder from the copy. Exit code 0 means that the copy is whole: every record was read, and the hash matched.

For timers: where --to is a folder, the file gets the time for a name, such as holdfast-20260131T235959.000Z.msgpack, and the command prints it. With --keep the oldest go once the new one is whole and on disk. Only files with such names go, of the same format: give each server, and each selection of queues, a folder of its own.

Examples:

    holdfast backup --to holdfast.backup
    holdfast backup --to /var/backups/holdfast/ --keep 24
    holdfast backup --to jobs.jsonl --format jsonl --queue 'jobs.*'
    holdfast backup --to - | gzip > holdfast.backup.gz`
}

// Validate is called with the parsed flags.
func (c *Backup) Validate() error {
	dir, err := folderOf(c.To)
	switch {
	case err == nil && dir == "" && c.Keep > 0:
		return fmt.Errorf("--keep: %s is not a folder: expected --to to name the folder of the backups", c.To)
	case c.Files && (len(c.Queue) > 0 || c.Format != admin.FormatMsgpack):
		return errors.New("--files: it copies everything as it is: expected no --queue and no --format")
	case c.JSON && c.To == "-":
		return errors.New("--json: standard output gets the backup: expected --to to name a file or a folder")
	}
	return nil
}

// Run copies, and returns nil once the copy is whole and on disk.
func (c *Backup) Run(ctx context.Context, p *terminal.Process) error {
	if c.Files {
		c.Format = admin.FormatTar
	}
	began := time.Now()
	folder, err := c.folder(began)
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	body, err := c.Fetch(ctx, admin.Request{Format: c.Format, Queues: c.Queue})
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	defer body.Close()
	o, err := p.Create(c.To)
	if err != nil {
		return err
	}
	defer o.Discard()
	m := p.Meter(c.Quiet)
	defer m.End()
	held, err := readBackup(ctx, io.TeeReader(body, o), c.Files, func(u terminal.Measure, done, total int64) {
		if u == terminal.InPackets {
			total = body.Packets
		}
		m.Set("backup", u, done, total)
	})
	m.End()
	if err := o.End(ctx, "backup", err); err != nil {
		return err
	}
	return c.end(p, folder, held)
}

// readBackup reads a backup to its end, and returns what it holds once it is whole.
func readBackup(ctx context.Context, in io.Reader, files bool, tell func(u terminal.Measure, done, total int64)) ([]figure, error) {
	if !files {
		made, err := dump.Read(ctx, in, nil, func(at dump.Progress) { tell(terminal.InPackets, at.Packets, 0) })
		return []figure{{"bytes", made.Bytes}, {"packets", made.Packets}, {"queues", made.Queues}, {"keys", made.Keys}}, err
	}
	r, err := archive.NewReader(in)
	if err != nil {
		return nil, err
	}
	err = r.Each(ctx, nil, func(done, total int64) { tell(terminal.InBytes, done, total) })
	return []figure{{"bytes", r.Header.Bytes()}, {"files", int64(len(r.Header.Files))}, {"packets_without_expiry", int64(r.Header.Packets)}}, err
}

// folder returns the folder that the backup goes to, nil if there is none. It names the backup.
func (c *Backup) folder(now time.Time) (*backupFolder, error) {
	dir, err := folderOf(c.To)
	if dir == "" || err != nil {
		return nil, err
	}
	f := &backupFolder{dir: dir, keep: c.Keep, ext: c.Format}
	f.sweep(now)
	c.To = f.name(now)
	return f, nil
}

// said is what a backup holds, in words.
func (c *Backup) said(held []figure) string {
	if c.Files {
		return fmt.Sprintf("%s of %s are in %s\n", terminal.Approximate(held[0].n), terminal.Plural(held[1].n, "file"), c.To)
	}
	return fmt.Sprintf("%s of %s, %s, are in %s\n", terminal.Plural(held[1].n, "packet"), terminal.Plural(held[2].n, "queue"), terminal.Approximate(held[0].n), c.To)
}

// end removes what the new backup takes the place of, and prints what that is.
func (c *Backup) end(p *terminal.Process, f *backupFolder, held []figure) (err error) {
	var line []byte
	removed := 0
	if at, err := os.Lstat(c.To); err == nil && at.Mode().IsRegular() { // which standard output may be, by another name
		line = []byte(c.said(held))
	}
	if f != nil {
		removed, err = f.prune(c.To)
		line = append([]byte(c.To), '\n')
	}
	if c.JSON {
		var o terminal.JSON
		o.Bytes("file", []byte(c.To))
		addFigures(&o, append(held, figure{"removed", int64(removed)})...)
		line = o.Line()
	}
	if _, printed := p.Stdout.Write(line); err == nil {
		err = printed
	}
	return err
}
