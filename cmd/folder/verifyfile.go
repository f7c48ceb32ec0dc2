package folder

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/recovery/archive"
)

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
		line += fmt.Sprintf(", %s: %d", f.name, f.n)
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
