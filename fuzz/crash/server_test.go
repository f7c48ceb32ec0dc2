package crash

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Server is a server process. Its methods may be called by any goroutine.
type Server struct {
	cmd       *exec.Cmd
	listeners map[string]*listener // by protocol
	exited    chan struct{}        // closed when the process has ended and its log is read

	mu   sync.Mutex // guards what follows
	line []byte     // the beginning of a line of the log
	log  Log
}

// Log is what a server has logged so far.
type Log struct {
	Findings int      // of the start report; -1 before it
	Tail     []string // the last lines, or the first ones of a panic
	Panicked bool     // whether there is the trace of a panic or a fault
	Failures []string // the first lines with the level of an error
}

func (l Log) String() string { return strings.Join(l.Tail, "\n") }

// listener is where the server listens for a protocol.
type listener struct {
	known chan struct{} // closed when addr is set
	addr  string
}

// Command says how a server is started on a data folder. The server must log to standard error:
// first a line with "recovered" and the number of findings, then one with "listening", the protocol
// and the addr for each listener.
type Command func(data string) *exec.Cmd

const (
	// tailLines is how much of a server's log is kept for a report.
	tailLines = 40
	// maxFailures is how many error lines are kept.
	maxFailures = 5
	// deadline bounds every wait for a server. It is far longer than any should take.
	deadline = time.Minute
)

// The names of the listeners in the log.
const (
	pinpriqListener = "pinpriq"
	boardListener   = "barbershop"
	redisListener   = "redis"
	adminListener   = "admin"
)

// Spawn starts a server and does not wait until it listens. Kill or Terminate ends it.
func Spawn(command Command, data string) (*Server, error) {
	s := &Server{cmd: command(data), listeners: map[string]*listener{}, exited: make(chan struct{}), log: Log{Findings: -1}}
	for _, protocol := range []string{pinpriqListener, boardListener, redisListener, adminListener} {
		s.listeners[protocol] = &listener{known: make(chan struct{})}
	}
	dieWithParent(s.cmd)
	s.cmd.Stdout, s.cmd.Stderr = s, s
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start server: %w", err)
	}
	go func() { // ends with the process
		_ = s.cmd.Wait() // its state says how it ended
		close(s.exited)
	}()
	return s, nil
}

// dieWithParent makes the kernel end the process when the harness is gone.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// Start starts a server and returns when it listens for pinpriq. It returns an error, with the end
// of the log, if the server ends before that.
func Start(command Command, data string) (*Server, error) {
	s, err := Spawn(command, data)
	if err != nil {
		return nil, err
	}
	select {
	case <-s.listeners[pinpriqListener].known:
		return s, nil
	case <-s.exited:
		return nil, fmt.Errorf("server ended with %v before it listened; its log ends with:\n%s", s.cmd.ProcessState, s.Log())
	case <-time.After(deadline):
		s.Kill()
		return nil, fmt.Errorf("server does not listen after %v; its log ends with:\n%s", deadline, s.Log())
	}
}

// dial connects to the listener of a protocol as soon as there is one.
func (s *Server) dial(protocol string) (*link, error) {
	l := s.listeners[protocol]
	select {
	case <-l.known:
	case <-s.exited:
		return nil, fmt.Errorf("server ended before it listened for %s", protocol)
	case <-time.After(deadline):
		return nil, fmt.Errorf("server does not listen for %s after %v", protocol, deadline)
	}
	conn, err := net.Dial("tcp", l.addr)
	if err != nil {
		return nil, err
	}
	return &link{conn: conn, in: bufio.NewReaderSize(conn, 64<<10)}, nil
}

// Log returns what the server has logged so far.
func (s *Server) Log() Log {
	s.mu.Lock()
	defer s.mu.Unlock()
	log := s.log
	log.Tail, log.Failures = slices.Clone(log.Tail), slices.Clone(log.Failures)
	return log
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

// Terminate drains the server and waits for its end. It returns an error unless the exit status is
// 0.
func (s *Server) Terminate() error {
	s.Interrupt()
	select {
	case <-s.exited:
	case <-time.After(deadline):
		s.Kill()
		return fmt.Errorf("server does not end after %v; its log ends with:\n%s", deadline, s.Log())
	}
	if !s.cmd.ProcessState.Success() {
		return fmt.Errorf("server ended with %v; its log ends with:\n%s", s.cmd.ProcessState, s.Log())
	}
	return nil
}

// Both of slog's formats are understood.
var (
	listeningLine = regexp.MustCompile(`msg"?[=:]"?listening"?.*protocol"?[=:]"?([a-z]+).*addr"?[=:]"?([0-9.]+:[0-9]+)`)
	recoveredLine = regexp.MustCompile(`msg"?[=:]"?recovered"?.*findings"?[=:]"?([0-9]+)`)
	errorLine     = regexp.MustCompile(`level"?[=:]"?ERROR`)
	panicLine     = regexp.MustCompile(`^(panic: |fatal error: |SIG[A-Z]+: |unexpected fault address|goroutine [0-9]+ )`)
)

// Write takes a part of the server's output.
func (s *Server) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.line = append(s.line, b...)
	for {
		line, rest, whole := bytes.Cut(s.line, []byte{'\n'})
		if !whole {
			return len(b), nil
		}
		s.readLocked(string(line))
		s.line = rest
	}
}

func (s *Server) readLocked(line string) {
	l := &s.log
	if !l.Panicked && panicLine.MatchString(line) {
		l.Panicked = true
		l.Tail = l.Tail[max(0, len(l.Tail)-5):]
	}
	if len(l.Tail) == tailLines && !l.Panicked {
		l.Tail = l.Tail[1:]
	}
	if len(l.Tail) < tailLines { // of a panic the beginning is kept
		l.Tail = append(l.Tail, line)
	}
	if len(l.Failures) < maxFailures && errorLine.MatchString(line) {
		l.Failures = append(l.Failures, line)
	}
	if m := recoveredLine.FindStringSubmatch(line); m != nil {
		l.Findings, _ = strconv.Atoi(m[1])
	}
	if m := listeningLine.FindStringSubmatch(line); m != nil {
		if to := s.listeners[m[1]]; to != nil && to.addr == "" {
			to.addr = m[2]
			close(to.known)
		}
	}
}
