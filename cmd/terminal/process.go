package terminal

import (
	"context"
	"io"
	"os"
	"sync/atomic"
)

// Process is the process as a command sees it. Tests make their own.
type Process struct {
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	Env    func(name string) (string, bool)
	AtEnd  atomic.Value // func() that a second signal calls, if any
	Report func(error)  // prints an error of a command that goes on; set by Begin

	// Set by Begin.
	stop     <-chan struct{} // closed when the command is to end
	long     io.Writer       // standard output for long results: closing stop ends a write
	keyboard *os.File        // standard input, nil if it is no file
}

// Begin has reads and writes end with ctx. It returns standard output as it was. Calls of the other
// methods follow it.
func (p *Process) Begin(ctx context.Context, report func(error)) io.Writer {
	p.stop, p.Report = ctx.Done(), report
	if file, ok := p.Stdin.(*os.File); ok {
		p.keyboard = file
		p.Stdin = interruptibleFile(file, p.stop)
	}
	stdout := p.Stdout
	p.long = stdout
	if file, ok := stdout.(*os.File); ok {
		p.long = interruptibleFile(file, p.stop)
	}
	p.Stdout = &sink{w: stdout}
	return stdout
}
