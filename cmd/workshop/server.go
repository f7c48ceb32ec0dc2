package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/workshop/loadgen"
)

// server is one server with a data folder of its own, running or killed.
type server struct {
	peer   *peer
	dir    string
	addr   string
	turns  bool          // whether its turns are measured
	quick  bool          // whether nobody waits for all that it does
	admin  string        // the address of its metrics, or off
	cmd    *exec.Cmd     // nil while not running
	exited chan struct{} // closed when the process has ended
}

const (
	startLimit = 2 * time.Minute      // until the first reply
	startPoll  = 2 * time.Millisecond // between two attempts to get one
	logShown   = 600                  // bytes of the log that an error shows
)

// newServer makes the data folder of a server; nothing runs yet.
func (b *bench) newServer(p *peer) (*server, error) {
	dir, err := os.MkdirTemp(b.dir, p.label+"-")
	if err != nil {
		return nil, fmt.Errorf("no folder for the data of %s: %w", p.label, err)
	}
	s := &server{peer: p, dir: dir, turns: b.turns && p.program == "holdfast", quick: b.quick, admin: "off"}
	b.servers = append(b.servers, s)
	return s, nil
}

// start runs the server on its folder. It returns the time from the start of the process to the
// first answer to a pop of the queue that accept lets pass.
func (s *server) start(ctx context.Context, args []string, queue string, accept func(loadgen.Progress) bool) (time.Duration, error) {
	addr, err := freeAddress()
	if err != nil {
		return 0, err
	}
	if s.turns {
		if s.admin, err = freeAddress(); err != nil {
			return 0, err
		}
	}
	_, port, _ := strings.Cut(addr, ":")
	places := strings.NewReplacer("ADDRESS", addr, "ADMIN", s.admin, "PORT", port, "DIR", s.dir)
	args = slices.Clone(args)
	for i, arg := range args {
		args[i] = places.Replace(arg)
	}
	s.addr = addr
	began := time.Now()
	if err := s.launch(s.peer.binary, nil, args...); err != nil {
		return 0, err
	}
	err = s.until(ctx, startPoll, func(ctx context.Context) error {
		progress, err := loadgen.Ask(ctx, s.addr, s.peer.asks["pop"](queueTarget(queue, 0)))
		if err == nil && !accept(progress) {
			err = errors.New("it does not answer as expected")
		}
		return err
	})
	return time.Since(began), err
}

// launch starts a program on the folder of the server, with some environment beside that of this
// process.
func (s *server) launch(binary string, env []string, args ...string) error {
	log, err := os.Create(filepath.Join(s.dir, "log"))
	if err != nil {
		return fmt.Errorf("no log file for %s: %w", s.peer.label, err)
	}
	defer log.Close()
	cmd := exec.Command(binary, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.Env = s.dir, log, log, append(os.Environ(), env...)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%s cannot be started: %w", s.peer.label, err)
	}
	exited := make(chan struct{})
	s.cmd, s.exited = cmd, exited
	go func() { // ends with the process
		_ = cmd.Wait()
		close(exited)
	}()
	return nil
}

// until asks again and again whether the server serves.
func (s *server) until(ctx context.Context, poll time.Duration, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	for {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-s.exited:
			return fmt.Errorf("%s ended before it served; its log says: %s", s.peer.label, s.log())
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("%s did not serve: %w", s.peer.label, ctx.Err()), err)
		case <-time.After(poll):
		}
	}
}

// serve starts the server for measuring.
func (s *server) serve(ctx context.Context) error {
	_, err := s.start(ctx, s.peer.args, unusedQueue, anyAnswer)
	return err
}

func anyAnswer(loadgen.Progress) bool { return true }
func aPacket(p loadgen.Progress) bool { return p.Packets > 0 }

// kill ends the process at once and returns when it is gone.
func (s *server) kill() { _ = s.end(context.Background(), os.Kill) } // fails only if it has ended by itself

// end has a signal end the process, if it runs, and returns when it is gone.
func (s *server) end(ctx context.Context, signal os.Signal) error {
	if s.cmd == nil {
		return nil
	}
	err := s.cmd.Process.Signal(signal)
	select {
	case <-s.exited:
		s.cmd = nil
		return nil
	case <-time.After(startLimit):
		return errors.Join(fmt.Errorf("%s did not end in %v; its log says: %s", s.peer.label, startLimit, s.log()), err)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// remove kills the server and deletes its data.
func (s *server) remove() error {
	s.kill()
	if err := os.RemoveAll(s.dir); err != nil {
		return fmt.Errorf("the data of %s cannot be deleted: %w", s.peer.label, err)
	}
	return nil
}

// rest waits between two measurements until the server is at rest.
func (s *server) rest(ctx context.Context) error {
	return s.settle(ctx, 200*time.Millisecond, 5*time.Second)
}

// settle waits until the server has done hardly anything for as long as quiet, at most for limit.
// What it still does for earlier requests must not count in the next measurement.
func (s *server) settle(ctx context.Context, quiet, limit time.Duration) error {
	const step = 100 * time.Millisecond
	before, err := loadgen.ReadUsage(s.cmd.Process.Pid)
	for rest := time.Duration(0); err == nil && rest < quiet && limit > 0; limit -= step {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(step):
		}
		var now loadgen.Usage
		now, err = loadgen.ReadUsage(s.cmd.Process.Pid)
		rest += step
		if now.CPU-before.CPU > step/10 || now.Children {
			rest = 0
		}
		before = now
	}
	return err
}

// log returns the end of what the server has logged.
func (s *server) log() string {
	text, err := os.ReadFile(filepath.Join(s.dir, "log"))
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(text[max(0, len(text)-logShown):]))
}

// freeAddress is a port of the loopback address that was free a moment ago, and that no connection
// gets meanwhile.
func freeAddress() (string, error) {
	port, err := freePorts(1)
	return fmt.Sprint("127.0.0.1:", port), err
}
