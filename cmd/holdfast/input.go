package main

import (
	"fmt"
	"io"
	"os"
)

// input is a file that a command reads, or standard input.
type input struct {
	io.Reader       // an io.Seeker if the file is regular, for those who read it twice
	size      int64 // 0 if it is not known
	close     func()
}

// input opens a file to read; "-" is standard input.
func (p *Process) input(name string) (*input, error) {
	if name == "-" {
		return &input{Reader: p.stdin, close: func() {}}, nil
	}
	file, err := openFile(p.stop, name, os.O_RDONLY)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, pathless(err))
	}
	in := &input{Reader: interruptibleFile(file, p.stop), close: func() { _ = file.Close() }}
	info, err := file.Stat()
	switch {
	case err != nil:
		in.close()
		return nil, fmt.Errorf("read %s: %w", name, pathless(err))
	case info.IsDir():
		in.close()
		return nil, fmt.Errorf("%s is a folder: expected a file", name)
	case info.Mode().IsRegular():
		in.size = info.Size()
	}
	return in, nil
}
