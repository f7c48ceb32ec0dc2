package main

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
)

// stoppable is a file whose reads and writes end when the command is to end. The system ends them
// only when the other side of a pipe or a terminal does something, and that may be never.
type stoppable struct {
	file *os.File
	stop <-chan struct{}
	buf  []byte // for the next call; nil after one that was given up, which may still use its own
}

// stoppableFile is the file itself where its reads and writes end soon on their own. That keeps what else it can do.
func stoppableFile(file *os.File, stop <-chan struct{}) io.ReadWriter {
	if info, err := file.Stat(); stop == nil || err == nil && info.Mode().IsRegular() {
		return file
	}
	return &stoppable{file: file, stop: stop}
}

// Write implements io.Writer.
func (s *stoppable) Write(p []byte) (int, error) {
	buf := append(s.buf[:0], p...)
	s.buf = nil
	n, err := orStop(s.stop, func() (int, error) { return s.file.Write(buf) })
	if !errors.Is(err, context.Canceled) {
		s.buf = buf
	}
	return n, err
}

// Read implements io.Reader.
func (s *stoppable) Read(p []byte) (int, error) {
	buf := slices.Grow(s.buf[:0], len(p))[:len(p)]
	s.buf = nil
	n, err := orStop(s.stop, func() (int, error) { return s.file.Read(buf) })
	if !errors.Is(err, context.Canceled) {
		s.buf = buf
	}
	return copy(p, buf[:n]), err
}

// openFile is os.OpenFile, which waits for the other side of a named pipe, until stop is closed.
func openFile(stop <-chan struct{}, name string, flags int) (*os.File, error) {
	if info, err := os.Stat(name); err != nil || info.Mode().IsRegular() {
		return os.OpenFile(name, flags, 0)
	}
	return orStop(stop, func() (*os.File, error) { return os.OpenFile(name, flags, 0) })
}

// orStop carries do out. When stop is closed first it returns context.Canceled, and do goes on
// until the process ends: so long nothing that it uses may be touched.
func orStop[T any](stop <-chan struct{}, do func() (T, error)) (value T, err error) {
	select {
	case <-stop:
		return value, context.Canceled
	default:
	}
	done := make(chan struct{})
	var v T
	var e error
	go func() { // ends with do, or with the process
		defer close(done)
		v, e = do()
	}()
	select {
	case <-done:
		return v, e
	case <-stop:
		return value, context.Canceled
	}
}
