package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// output is where a command writes what may be long. A file has its name only when it is whole: it
// is written beside it, with ".tmp" behind the name, and renamed when it is on disk.
type output struct {
	*bufio.Writer
	name string   // "" for standard output
	file *os.File // nil for standard output
	tmp  string   // name of the file until it is whole; "" when it is written in place
}

const outputBuffer = 256 << 10

// create opens an output; "-" or nothing is standard output. Either keep or discard must follow.
func (p *program) create(name string) (*output, error) {
	if name == "" || name == "-" {
		return &output{Writer: bufio.NewWriterSize(p.stdout, outputBuffer)}, nil
	}
	o := &output{name: name, tmp: name + ".tmp"}
	flags := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	opened := o.tmp
	switch info, err := os.Stat(name); {
	case err == nil && info.IsDir():
		return nil, fmt.Errorf("%s is a folder: expected the name of a file to write", name)
	case err == nil && !info.Mode().IsRegular(): // a pipe or a device, which nothing may take the place of
		o.tmp, opened, flags = "", name, os.O_WRONLY
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("write %s: %w", name, err)
	}
	file, err := os.OpenFile(opened, flags, 0o600) // packets are for those only who may read the data folder
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", name, err)
	}
	o.file, o.Writer = file, bufio.NewWriterSize(file, outputBuffer)
	return o, nil
}

// keep makes what was written whole and durable, and gives it its name.
func (o *output) keep() error {
	if o.file == nil {
		return o.failed(o.Flush())
	}
	err := o.Flush()
	if err == nil && o.tmp != "" {
		err = o.file.Sync()
	}
	if cerr := o.file.Close(); err == nil {
		err = cerr
	}
	if o.tmp == "" {
		return o.failed(err)
	}
	if err == nil {
		err = os.Rename(o.tmp, o.name)
	}
	if err != nil {
		_ = os.Remove(o.tmp)
		return o.failed(err)
	}
	return o.failed(syncFolder(filepath.Dir(o.name)))
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
	if o.tmp == "" {
		return "what was written is not whole"
	}
	return "nothing was written to " + o.name
}

func (o *output) failed(err error) error {
	switch {
	case err == nil:
		return nil
	case o.name == "":
		return fmt.Errorf("write to standard output: %w", err)
	}
	return fmt.Errorf("write %s: %w", o.name, err)
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

// input is a file that a command reads, or standard input.
type input struct {
	io.Reader       // an io.Seeker where the file is one: who reads it may want to look ahead
	size      int64 // 0 where it is not known
	close     func()
}

// input opens a file to read; "-" is standard input.
func (p *program) input(name string) (*input, error) {
	if name == "-" {
		return &input{Reader: p.stdin, close: func() {}}, nil
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	in := &input{Reader: file, close: func() { _ = file.Close() }}
	info, err := file.Stat()
	switch {
	case err != nil:
		in.close()
		return nil, fmt.Errorf("read %s: %w", name, err)
	case info.IsDir():
		in.close()
		return nil, fmt.Errorf("%s is a folder: expected a file", name)
	case info.Mode().IsRegular():
		in.size = info.Size()
	}
	return in, nil
}
