package ask

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/netproto/client"
)

// gate makes a named pipe. Who reads it waits until the test has opened it.
func gate(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "gate")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// open waits until somebody reads a gate. Closing it lets that go on.
func open(t *testing.T, gate string) *os.File {
	t.Helper()
	file, err := os.OpenFile(gate, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// alone is a task that runs a script, with a short grace.
func alone(t *testing.T, script string) *task {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	a := &task{path: sh, args: []string{"sh", "-c", script}, grace: time.Millisecond, stdout: io.Discard, stderr: io.Discard}
	a.useful, a.useless = context.WithCancelCause(t.Context())
	return a
}

func TestAChildThatIsLeftBehindHoldsNothingUp(t *testing.T) {
	g := gate(t)
	a := alone(t, "(cat "+g+") & exit $(cat | wc -c | cut -c1)")
	defer func() { _ = open(t, g).Close() }() // it still runs
	if err := a.run(t.Context(), &client.Packet{}); err != nil {
		t.Errorf("%v, want that the command ended well", err)
	}
}

func TestACommandThatDoesNotEndIsKilledWithItsGroup(t *testing.T) {
	g := gate(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	a := alone(t, `trap "" TERM; cat `+g+` & cat `+g)
	ended := make(chan error)
	go func() { ended <- a.run(ctx, &client.Packet{}) }() // ends when ctx is cancelled
	file := open(t, g)
	cause := errors.New("lost")
	cancel(cause)
	if err := <-ended; err != cause {
		t.Errorf("%v, want the cause", err)
	}
	for { // until nobody reads it
		if _, err := file.Write([]byte{0}); err != nil {
			return
		}
	}
}
