package terminal

import (
	"fmt"
	"io"
	"os"
)

// Input is a file that a command reads, or standard input.
type Input struct {
	io.Reader        // an io.Seeker if the file is regular, for those who read it twice
	Size      int64  // 0 if it is not known
	Close     func() // the caller's duty
}

// Input opens a file to read; "-" is standard input. The error names what cannot be read.
func (p *Process) Input(name string) (*Input, error) {
	if name == "-" {
		return &Input{Reader: p.Stdin, Close: func() {}}, nil
	}
	file, err := openFile(p.stop, name, os.O_RDONLY)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, Pathless(err))
	}
	in := &Input{Reader: interruptibleFile(file, p.stop), Close: func() { _ = file.Close() }}
	info, err := file.Stat()
	switch {
	case err != nil:
		in.Close()
		return nil, fmt.Errorf("read %s: %w", name, Pathless(err))
	case info.IsDir():
		in.Close()
		return nil, fmt.Errorf("%s is a folder: expected a file", name)
	case info.Mode().IsRegular():
		in.Size = info.Size()
	}
	return in, nil
}
