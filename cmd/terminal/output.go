package terminal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Output is where a command writes what may be long. A regular file is written under a hidden name
// beside its own, and gets its own when it is whole and on disk.
type Output struct {
	*bufio.Writer
	sink *sink
	name string   // "" for standard output
	file *os.File // nil for standard output
	tmp  string   // hidden name; "" when the output is written in place
}

const outputBuffer = 256 << 10

// TemporaryFiles is a pattern of the hidden names, as filepath.Match takes it. A command that is
// killed leaves its file behind.
const TemporaryFiles = ".holdfast-*.tmp"

// ErrReaderGone means that nobody reads standard output any more, as when "head" has seen enough.
// No message is printed for it: whoever stopped reading knows.
var ErrReaderGone = errors.New("nobody reads standard output any more")

// Create opens an output; "-" or nothing is standard output. Either Keep or Discard must follow.
// The error names what cannot be written.
func (p *Process) Create(name string) (*Output, error) {
	if name == "" || name == "-" {
		return p.Long(), nil
	}
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir():
		return nil, fmt.Errorf("%s is a folder: expected the name of a file to write", name)
	case err == nil && !info.Mode().IsRegular(): // a pipe or a device, which no file may replace
		return p.createInPlace(name)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("write %s: %w", name, Pathless(err))
	}
	if target, err := filepath.EvalSymlinks(name); err == nil { // a link stays one
		name = target
	}
	// Its mode is 0600: only who may read the data folder may read its packets.
	file, err := os.CreateTemp(filepath.Dir(name), TemporaryFiles)
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", name, Pathless(err))
	}
	o := p.newOutput(name, file)
	o.file, o.tmp = file, file.Name()
	return o, nil
}

// Long is standard output for what may be long. Keep must follow, and Discard need not.
func (p *Process) Long() *Output { return p.newOutput("", p.long) }

func (p *Process) createInPlace(name string) (*Output, error) {
	file, err := openFile(p.stop, name, os.O_WRONLY)
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", name, Pathless(err))
	}
	o := p.newOutput(name, interruptibleFile(file, p.stop))
	o.file = file
	return o, nil
}

func (p *Process) newOutput(name string, w io.Writer) *Output {
	o := &Output{name: name, sink: &sink{name: name, w: w, stop: p.stop}}
	o.Writer = bufio.NewWriterSize(o.sink, outputBuffer)
	return o
}

// End keeps an output that is whole. It returns what came of one that is not, as the command was
// interrupted or failed.
func (o *Output) End(ctx context.Context, command string, err error) error {
	switch {
	case ctx.Err() != nil:
		return errors.New(command + ": interrupted; " + o.left())
	case err != nil:
		return fmt.Errorf("%s: %w; %s", command, o.cause(err), o.left())
	}
	return o.Keep()
}

// Keep writes the rest, waits until the file is on disk, and gives it its name. After an error an
// older file stays as it was.
func (o *Output) Keep() error {
	err := o.Flush()
	if o.file == nil {
		return err
	}
	if err == nil && o.tmp != "" {
		err = o.sink.failed(o.file.Sync())
	}
	if cerr := o.file.Close(); err == nil {
		err = o.sink.failed(cerr)
	}
	if o.tmp == "" {
		return err
	}
	if err == nil {
		err = o.sink.failed(os.Rename(o.tmp, o.name))
	}
	if err != nil {
		_ = os.Remove(o.tmp)
		return err
	}
	return o.sink.failed(syncFolder(filepath.Dir(o.name)))
}

// Discard removes a file that is not whole. After Keep it does nothing.
func (o *Output) Discard() {
	if o.file != nil {
		_ = o.file.Close()
	}
	if o.tmp != "" {
		_ = os.Remove(o.tmp)
	}
}

// left says what is there when nothing was kept.
func (o *Output) left() string {
	switch {
	case o.tmp != "":
		return "nothing was written to " + o.name
	case o.sink.any:
		return "what was written is not whole"
	}
	return "nothing was written"
}

// cause is the output's own error if it has one, and err if not. Code that writes to the output may
// have put its error into other words.
func (o *Output) cause(err error) error {
	if err != nil && o.sink.err != nil {
		return o.sink.err
	}
	return err
}

// sink is below the buffer of an output. It gives errors a name and keeps the first. One goroutine
// at a time writes to it.
type sink struct {
	name string // "" for standard output
	w    io.Writer
	stop <-chan struct{} // once it is closed, nothing more is written
	any  bool            // something was written, or may have been
	err  error           // the first
}

func (s *sink) Write(p []byte) (n int, err error) {
	select {
	case <-s.stop:
		err = context.Canceled
	default:
		n, err = s.w.Write(p)
	}
	s.any = s.any || n > 0 || errors.Is(err, context.Canceled) // an interrupted write may go on
	if err != nil && s.err == nil {
		s.err = s.failed(err)
	}
	return n, s.err
}

func (s *sink) failed(err error) error {
	switch {
	case err == nil:
		return nil
	case s.name != "":
		return fmt.Errorf("write %s: %w", s.name, Pathless(err))
	case errors.Is(err, syscall.EPIPE):
		return ErrReaderGone
	}
	return fmt.Errorf("write to standard output: %w", Pathless(err))
}

// Pathless is an error without the file and the call, for a message that already names them.
func Pathless(err error) error {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		return path.Err
	case errors.As(err, &link):
		return link.Err
	}
	return err
}

// syncFolder makes the names in a folder durable.
func syncFolder(name string) error {
	dir, err := os.Open(name)
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}
