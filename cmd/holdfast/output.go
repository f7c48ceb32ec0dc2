package main

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

// output is where a command writes what may be long. A file has its name only when it is whole: it
// is written beside it, under a hidden name of its own, and renamed when it is on disk.
type output struct {
	*bufio.Writer
	sink *sink
	name string   // "" for standard output
	file *os.File // nil for standard output
	tmp  string   // name of the file until it is whole; "" when it is written in place
}

const (
	outputBuffer = 256 << 10

	longestBase = 200 // of a name that is a part of a hidden one: file systems take names of 255 bytes
)

// errReaderGone means that nobody reads standard output any more, as when "head" has seen enough.
// Whoever ended it knows, so nothing is said about it.
var errReaderGone = errors.New("nobody reads standard output any more")

// create opens an output; "-" or nothing is standard output. Either keep or discard must follow.
func (p *program) create(name string) (*output, error) {
	if name == "" || name == "-" {
		return newOutput("", p.long), nil
	}
	inPlace := false
	switch info, err := os.Stat(name); {
	case err == nil && info.IsDir():
		return nil, fmt.Errorf("%s is a folder: expected the name of a file to write", name)
	case err == nil && !info.Mode().IsRegular(): // a pipe or a device, which nothing may take the place of
		inPlace = true
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("write %s: %w", name, pathless(err))
	}
	if inPlace {
		file, err := openFile(p.stop, name, os.O_WRONLY)
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", name, pathless(err))
		}
		o := newOutput(name, stoppableFile(file, p.stop))
		o.file = file
		return o, nil
	}
	if target, err := filepath.EvalSymlinks(name); err == nil { // a link stays one
		name = target
	}
	base := filepath.Base(name)
	// Its mode is 0600: packets are for those only who may read the data folder.
	file, err := os.CreateTemp(filepath.Dir(name), "."+base[:min(len(base), longestBase)]+".*.tmp")
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", name, pathless(err))
	}
	o := newOutput(name, file)
	o.file, o.tmp = file, file.Name()
	return o, nil
}

func newOutput(name string, w io.Writer) *output {
	o := &output{name: name, sink: &sink{name: name, w: w}}
	o.Writer = bufio.NewWriterSize(o.sink, outputBuffer)
	return o
}

// keep makes what was written whole and durable, and gives it its name.
func (o *output) keep() error {
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

// discard removes a file that did not become whole. After keep it does nothing.
func (o *output) discard() {
	if o.file != nil {
		_ = o.file.Close()
	}
	if o.tmp != "" {
		_ = os.Remove(o.tmp)
	}
}

// left says what is there when nothing was kept.
func (o *output) left() string {
	switch {
	case o.tmp != "":
		return "nothing was written to " + o.name
	case o.sink.any:
		return "what was written is not whole"
	}
	return "nothing was written"
}

// cause is why something that writes an output has failed with err: the output's own error if it
// has one, which whoever was writing may have taken for something else.
func (o *output) cause(err error) error {
	if err != nil && o.sink.err != nil {
		return o.sink.err
	}
	return err
}

// sink is below the buffer of an output. One goroutine at a time writes to it.
type sink struct {
	name string // "" for standard output
	w    io.Writer
	any  bool  // something got through, or may have
	err  error // the first
}

// Write implements io.Writer.
func (s *sink) Write(p []byte) (int, error) {
	n, err := s.w.Write(p)
	s.any = s.any || n > 0 || errors.Is(err, context.Canceled) // one that was given up may have written
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
		return fmt.Errorf("write %s: %w", s.name, pathless(err))
	case errors.Is(err, syscall.EPIPE):
		return errReaderGone
	}
	return fmt.Errorf("write to standard output: %w", pathless(err))
}

// pathless is the error without the name of the file and the call, for a sentence that says both.
func pathless(err error) error {
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
