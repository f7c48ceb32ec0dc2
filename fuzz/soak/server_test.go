package soak

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/cmd/daemon"
)

const (
	// serveDir names the folder that the test binary serves in place of testing, as the server.
	serveDir = "HOLDFAST_TEST_SERVE"
	// goroutines, not empty, has goroutines read and write its connections.
	goroutines = "HOLDFAST_GOROUTINES"

	// turnClock, not empty, has the loop keep a thread to itself, whose clock tells what turns take,
	// and the server take the longest payloads.
	turnClock = "HOLDFAST_TEST_TURN_CLOCK"

	maxBuffers = 64 << 20
)

func TestMain(m *testing.M) {
	dir := os.Getenv(serveDir)
	if dir == "" {
		os.Exit(m.Run())
	}
	if err := serve(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serve is the server as the program runs it, until SIGTERM.
func serve(dir string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	turned, err := serveTurnClock()
	if err != nil {
		return err
	}
	c := daemon.Config{
		Data:       dir,
		Pinpriq:    "127.0.0.1:0",
		Redis:      "127.0.0.1:0",
		Cache:      64 << 20,
		MaxBuffers: maxBuffers,
		Drain:      time.Minute,
		Goroutines: os.Getenv(goroutines) != "",
		Turned:     turned,
		Listening:  func(_ string, addr net.Addr) { fmt.Println(addr) },
	}
	if turned != nil {
		c.MaxPayload, c.MaxBuffers = broker.MaxPayload, 1<<30
		c.Pinpriq = ""   // so that 20,000 files are enough for 10,000 connections of the other
		fmt.Println("-") // the line of its address
	}
	return daemon.Run(ctx, c)
}

// server is the server's process.
type server struct {
	cmd   *exec.Cmd
	addr  string // of the protocol pinpriq
	redis string
	clock string     // where longestTurn asks; "-": nowhere
	end   chan error // gets the result of the process once
}

// startServer starts a server with the environment of the test and what is added.
func startServer(t *testing.T, dir string, environment ...string) *server {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), serveDir+"="+dir), environment...)
	var log strings.Builder
	cmd.Stderr = &log
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	s := &server{cmd: cmd, end: make(chan error, 1)}
	_, err = fmt.Fscan(out, &s.clock, &s.addr, &s.redis)
	if err != nil {
		t.Fatalf("the server does not listen: %v, %v; it says %s", err, cmd.Wait(), log.String())
	}
	go func() { // ends with the process
		err := cmd.Wait()
		if err != nil {
			err = fmt.Errorf("the server ended: %w; it says %s", err, log.String())
		}
		s.end <- err
	}()
	return s
}

// stop ends the server in order.
func (s *server) stop() error {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return errors.Join(err, <-s.end)
	}
	return <-s.end
}
