package main

import (
	"context"
	"io"
	"os"
	"sync/atomic"
)

// Process is the process as a command sees it. Tests make their own.
type Process struct {
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer
	env    func(name string) (string, bool)
	atEnd  atomic.Value // func() that a second signal calls, if any

	// Set by begin.
	stop     <-chan struct{} // closed when the command is to end
	long     io.Writer       // standard output for long results: closing stop ends a write
	keyboard *os.File        // standard input, nil if it is no file
	report   func(error)     // prints an error of a command that goes on
}

// begin has reads and writes end with ctx. It returns standard output as it was.
func (p *Process) begin(ctx context.Context, report func(error)) io.Writer {
	p.stop, p.report = ctx.Done(), report
	if file, ok := p.stdin.(*os.File); ok {
		p.keyboard = file
		p.stdin = interruptibleFile(file, p.stop)
	}
	stdout := p.stdout
	p.long = stdout
	if file, ok := stdout.(*os.File); ok {
		p.long = interruptibleFile(file, p.stop)
	}
	p.stdout = &sink{w: stdout}
	return stdout
}
