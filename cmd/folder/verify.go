package folder

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/config"
	"github.com/holdfast-queue/holdfast/cmd/daemon"
	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/recovery/archive"
	"github.com/holdfast-queue/holdfast/recovery/verify"
	"github.com/holdfast-queue/holdfast/storage"
)

// Verify checks a folder, or a backup.
type Verify struct {
	Path config.Folder `arg:"" help:"Data folder, on which no server may be running; or the file of a backup or dump, or - for standard input; or a folder of backups, of which the newest is read."`
	JSON bool          `help:"Print a JSON object."`

	terminal.Progress
}

func (c *Verify) Help() string {
	return `Reads everything in a data folder and changes nothing. It checks that the packets are those that the last batch counted, that every record can be read and is in its place, that claims and packets belong together, and that every block of the tables matches its checksum. It prints a line for each finding (its kind, the key it is about, and what is wrong), then the queues and what they hold.

Of a backup or a dump it reads everything to the end, checks the hash, and prints how much there is. Of one that "holdfast backup --files" made it checks that its files are those that the server had; for more restore it, and verify the folder.

Exit codes: 0 the folder is sound, or the backup whole; 1 something is wrong with it, 2 it was not checked.

Examples:

    holdfast verify ./holdfast-data
    holdfast verify ./holdfast-data --json
    holdfast verify ./holdfast-data --quiet && echo sound
    holdfast verify /var/backups/holdfast/
    gunzip < holdfast.backup.gz | holdfast verify - --json`
}

// ErrNotChecked means that a folder was not checked, or that nobody could be told what was found.
var ErrNotChecked = errors.New("verify: no result")

// Run verifies, and returns an error unless the folder is sound.
func (c *Verify) Run(ctx context.Context, p *terminal.Process) error {
	if file := c.backup(); file != "" {
		return c.file(ctx, p, file)
	}
	if err := c.Path.Check(true); err != nil {
		return fmt.Errorf("%w: %w", ErrNotChecked, err)
	}
	m := p.Meter(c.Quiet)
	defer m.End()
	defer daemon.TuneGC()()
	report, err := verify.Folder(ctx, string(c.Path), verify.Options{
		Now: time.Now().UnixMilli(),
		Progress: func(step string, done, total int64) {
			switch step {
			case "files":
				m.Set("check files", terminal.InBytes, done, total)
			case "keys":
				m.Set("check keys", terminal.InKeys, done, total)
			default:
				m.Set("check packets", terminal.InPackets, done, total)
			}
		},
	})
	m.End()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotChecked, err)
	}
	warnOfClock(p, report.Last)
	// A reader that has seen enough still gets the verdict, by the exit code.
	if err := c.print(p, &report); err != nil && !errors.Is(err, terminal.ErrReaderGone) {
		return fmt.Errorf("%w: %w", ErrNotChecked, err)
	}
	if !report.Sound() {
		return fmt.Errorf("verify: the folder has %s", terminal.Plural(len(report.Findings)+report.More, "finding"))
	}
	return nil
}

func (c *Verify) print(p *terminal.Process, r *verify.Report) error {
	o := p.Long()
	if c.JSON {
		printVerdictJSON(o.Writer, r)
	} else {
		printVerdict(o.Writer, r)
	}
	return o.Keep()
}

// backup is the file that is to be checked: the argument, or the newest of a folder of backups; ""
// for any other folder.
func (c *Verify) backup() string {
	name := string(c.Path)
	if info, err := os.Stat(name); name == "-" || err == nil && !info.IsDir() {
		return name
	}
	if _, err := os.Lstat(filepath.Join(name, "format")); err == nil { // of a data folder
		return ""
	}
	all, _ := (&backupFolder{dir: name}).backups() // the check of data folders has the error, too
	if len(all) == 0 {
		return ""
	}
	return filepath.Join(name, all[len(all)-1])
}

// file checks a backup or dump, and returns an error unless it is whole.
func (c *Verify) file(ctx context.Context, p *terminal.Process, name string) error {
	file, err := p.Input(name)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotChecked, err)
	}
	defer file.Close()
	m := p.Meter(c.Quiet)
	defer m.End()
	began, source := time.Now(), &failing{Reader: file.Reader}
	in := bufio.NewReader(source)
	begin, _ := in.Peek(len(archive.HeaderName))
	held, err := readBackup(ctx, in, string(begin) == archive.HeaderName, func(u terminal.Measure, done, total int64) { m.Set("check backup", u, done, total) })
	m.End()
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%w: interrupted", ErrNotChecked)
	case source.err != nil:
		return fmt.Errorf("%w: read %s: %w", ErrNotChecked, name, terminal.Pathless(source.err))
	case errors.Is(err, storage.ErrFormat):
		return fmt.Errorf("%w: %s: %w", ErrNotChecked, name, err)
	}
	if e := c.printFile(p.Stdout, name, held, err, time.Since(began)); e != nil && !errors.Is(e, terminal.ErrReaderGone) {
		return fmt.Errorf("%w: %w", ErrNotChecked, e)
	}
	if err != nil {
		return fmt.Errorf("verify: %s is no whole backup: %w", name, err)
	}
	return nil
}

// printFile prints what a backup holds. Of one that is not whole the error says all.
func (c *Verify) printFile(w io.Writer, name string, held []figure, wrong error, took time.Duration) error {
	switch {
	case c.JSON:
		var o terminal.JSON
		o.Add("sound", wrong == nil)
		o.Bytes("file", []byte(name))
		if wrong == nil {
			addFigures(&o, held...)
		} else {
			o.Text("error", wrong.Error())
		}
		o.Add("seconds", took.Seconds())
		return o.Print(w)
	case wrong != nil:
		return nil
	}
	line := "sound: " + name
	for _, f := range held {
		line += fmt.Sprintf(", %s: %d", strings.Replace(f.name, "keys", "strings and hashes", 1), f.n)
	}
	_, err := fmt.Fprintf(w, "%s, %v\n", line, took.Round(time.Millisecond))
	return err
}

// failing remembers why a file could not be read.
type failing struct {
	io.Reader
	err error
}

func (f *failing) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		f.err = err
	}
	return n, err
}
