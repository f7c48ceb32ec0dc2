package crash

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Server is a server process. Its methods may be called by any goroutine.
type Server struct {
	cmd       *exec.Cmd
	listening map[string]chan struct{} // by protocol: closed when its address is known
	exited    chan struct{}            // closed when the process has ended and its log is read

	mu       sync.Mutex        // guards what follows
	addrs    map[string]string // by protocol
	findings int               // of the start report; -1 before it
	tail     []string
	panicked bool
	failures []string // lines that the server itself calls errors
	state    *os.ProcessState
}

// Command says how a server on a data folder is started: it must log, on standard error, a line
// with "listening", the protocol and the addr for each listener, among them pinpriq's, and before them
// one with "recovered" and the number of findings.
type Command func(data string) *exec.Cmd

// tailLines is how much of a server's log is kept for the report of a failure.
const tailLines = 40

// maxFailures is how many error lines are kept.
const maxFailures = 5

// Spawn starts a server and does not wait until it listens. Kill or Terminate ends it.
func Spawn(command Command, data string) (*Server, error) {
	s := &Server{
		cmd:       command(data),
		listening: map[string]chan struct{}{},
		exited:    make(chan struct{}),
		addrs:     map[string]string{},
		findings:  -1,
	}
	for _, protocol := range []string{pinpriqDoor, boardDoor, adminDoor} {
		s.listening[protocol] = make(chan struct{})
	}
	dieWithParent(s.cmd)
	// A pipe of our own: Wait would close exec's before all of it is read.
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	s.cmd.Stderr, s.cmd.Stdout = w, w
	err = s.cmd.Start()
	_ = w.Close()
	if err != nil {
		_ = r.Close()
		return nil, fmt.Errorf("start server: %w", err)
	}
	go s.follow(r) // ends with the process
	return s, nil
}

// Start starts a server and returns when it listens for pinpriq. It returns an error, with the end of its
// log, if the server ends before that or has not begun when ctx ends.
func Start(ctx context.Context, command Command, data string) (*Server, error) {
	s, err := Spawn(command, data)
	if err != nil {
		return nil, err
	}
	select {
	case <-s.listening[pinpriqDoor]:
		return s, nil
	case <-s.exited:
		return nil, fmt.Errorf("server ended with %v before it listened; its log ends with:\n%s", s.state, s.Log())
	case <-ctx.Done():
		s.Kill()
		return nil, fmt.Errorf("server does not listen: %w; its log ends with:\n%s", ctx.Err(), s.Log())
	}
}

// Board returns where the server listens for barbershop. It waits for that, at most for so long.
func (s *Server) Board(atMost time.Duration) (string, error) { return s.door(boardDoor, atMost) }

// Admin returns where the server listens for the operator. It waits for that, at most for so long.
func (s *Server) Admin(atMost time.Duration) (string, error) { return s.door(adminDoor, atMost) }

// Addr is where the server listens for pinpriq.
func (s *Server) Addr() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addrs[pinpriqDoor]
}

// The names of the listeners in the log.
const (
	pinpriqDoor = "pinpriq"
	boardDoor   = "barbershop"
	adminDoor   = "admin"
)

// door returns the address of the listener for a protocol as soon as there is one.
func (s *Server) door(protocol string, atMost time.Duration) (string, error) {
	select {
	case <-s.listening[protocol]:
	case <-s.exited:
		return "", fmt.Errorf("server ended before it listened for %s", protocol)
	case <-time.After(atMost):
		return "", fmt.Errorf("server does not listen for %s after %v", protocol, atMost)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addrs[protocol], nil
}

// Findings is how many findings the start report names, -1 before there is one.
func (s *Server) Findings() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.findings
}

// Log returns the last lines of the server's log.
func (s *Server) Log() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.tail, "\n")
}

// Panicked says whether the log holds the trace of a panic or a fault.
func (s *Server) Panicked() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.panicked
}

// Failures returns the first lines of the log that have the level of an error.
func (s *Server) Failures() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.failures...)
}

// Exited is closed when the process has ended.
func (s *Server) Exited() <-chan struct{} { return s.exited }

// Kill ends the process with SIGKILL and waits until it is gone.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill()
	<-s.exited
}

// Interrupt asks the process to drain and end, and does not wait.
func (s *Server) Interrupt() { _ = s.cmd.Process.Signal(syscall.SIGTERM) }

// Wait waits until the process has ended, and kills it if ctx ends first. It returns an error
// unless the exit status is 0.
func (s *Server) Wait(ctx context.Context) error {
	select {
	case <-s.exited:
	case <-ctx.Done():
		s.Kill()
		return fmt.Errorf("server does not end: %w; its log ends with:\n%s", ctx.Err(), s.Log())
	}
	if !s.state.Success() {
		return fmt.Errorf("server ended with %v; its log ends with:\n%s", s.state, s.Log())
	}
	return nil
}

// Terminate drains the server and waits for its end, as Wait does.
func (s *Server) Terminate(ctx context.Context) error {
	s.Interrupt()
	return s.Wait(ctx)
}

// Both of slog's formats are understood.
var (
	listeningLine = regexp.MustCompile(`msg"?[=:]"?listening"?.*protocol"?[=:]"?([a-z]+).*addr"?[=:]"?([0-9.]+:[0-9]+)`)
	recoveredLine = regexp.MustCompile(`msg"?[=:]"?recovered"?.*findings"?[=:]"?([0-9]+)`)
	errorLine     = regexp.MustCompile(`level"?[=:]"?ERROR`)
	panicLine     = regexp.MustCompile(`^(panic: |fatal error: |SIG[A-Z]+: |unexpected fault address|goroutine [0-9]+ )`)
)

// follow reads the log and then waits for the end of the process.
func (s *Server) follow(r io.ReadCloser) {
	defer r.Close()
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			s.line(strings.TrimRight(line, "\n"))
		}
		if err != nil {
			break
		}
	}
	err := s.cmd.Wait()
	s.mu.Lock()
	if errors.Is(err, exec.ErrWaitDelay) {
		s.tail = append(s.tail, err.Error())
	}
	s.state = s.cmd.ProcessState
	s.mu.Unlock()
	close(s.exited)
}

func (s *Server) line(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.panicked && panicLine.MatchString(line) {
		s.panicked = true
		s.tail = s.tail[max(0, len(s.tail)-5):]
	}
	if len(s.tail) == tailLines && !s.panicked {
		s.tail = s.tail[1:]
	}
	if len(s.tail) < tailLines { // of a panic the beginning tells
		s.tail = append(s.tail, line)
	}
	if len(s.failures) < maxFailures && errorLine.MatchString(line) {
		s.failures = append(s.failures, line)
	}
	if m := recoveredLine.FindStringSubmatch(line); m != nil {
		s.findings, _ = strconv.Atoi(m[1])
	}
	if m := listeningLine.FindStringSubmatch(line); m != nil {
		protocol, addr := m[1], m[2]
		if known, wanted := s.listening[protocol]; wanted && s.addrs[protocol] == "" {
			s.addrs[protocol] = addr
			close(known)
		}
	}
}

// deadline bounds every wait for a server: far longer than any should take.
const deadline = time.Minute
