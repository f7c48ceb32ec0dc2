package terminal

import (
	"context"
	"io"
	"os"
	"slices"
)

// interruptible is a file whose reads and writes end when stop is closed. Without that, a read of a
// pipe or a terminal waits for its other side, perhaps for ever.
type interruptible struct {
	file *os.File
	stop <-chan struct{}
}

// interruptibleFile wraps a file unless it is a regular one, whose reads and writes end soon. The
// regular file itself can also be sought.
func interruptibleFile(file *os.File, stop <-chan struct{}) io.ReadWriter {
	if info, err := file.Stat(); stop == nil || err == nil && info.Mode().IsRegular() {
		return file
	}
	return &interruptible{file, stop}
}

// Write implements io.Writer. It copies p, since an interrupted write may still use it.
func (f *interruptible) Write(p []byte) (int, error) {
	p = slices.Clone(p)
	return interruptibly(f.stop, func() (int, error) { return f.file.Write(p) })
}

// Read implements io.Reader. It reads into bytes of its own, since an interrupted read may still
// use them.
func (f *interruptible) Read(p []byte) (int, error) {
	buf := make([]byte, len(p))
	n, err := interruptibly(f.stop, func() (int, error) { return f.file.Read(buf) })
	return copy(p, buf[:n]), err
}

// openFile is os.OpenFile. It waits for the other side of a named pipe until stop is closed.
func openFile(stop <-chan struct{}, name string, flags int) (*os.File, error) {
	open := func() (*os.File, error) { return os.OpenFile(name, flags, 0) }
	if info, err := os.Stat(name); err != nil || info.Mode().IsRegular() {
		return open()
	}
	return interruptibly(stop, open)
}

// interruptibly calls do. When stop is closed before do returns, the result is context.Canceled,
// and do goes on until the process ends: nothing that it uses may be touched.
func interruptibly[T any](stop <-chan struct{}, do func() (T, error)) (value T, err error) {
	select {
	case <-stop:
		return value, context.Canceled
	default:
	}
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() { // ends with do, or with the process
		v, e := do()
		done <- result{v, e}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-stop:
		return value, context.Canceled
	}
}
