package terminal

import (
	"context"
	"errors"
	"os"
	"testing"
)

func TestReadOfAPipeEndsWhenTheCommandIsToEnd(t *testing.T) {
	stop := make(chan struct{})
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	defer write.Close()
	s := &interruptible{file: read, stop: stop}
	go func() { // ends with the test
		_, _ = write.WriteString("one")
		close(stop)
	}()
	got := make([]byte, 8)
	n, err := s.Read(got)
	for err == nil {
		if string(got[:n]) != "one" {
			t.Fatalf("read %q", got[:n])
		}
		n, err = s.Read(got)
	}
	if n != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("read %d bytes, %v; want to be stopped", n, err)
	}
}
