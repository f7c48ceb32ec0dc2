package crash

import (
	"bufio"
	"fmt"
	"io"
	"net"
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
	adminListener   = "admin"
)

// Spawn starts a server and does not wait until it listens. Kill or Terminate ends it.
func Spawn(command Command, data string) (*Server, error) {
	s := &Server{
		cmd:       command(data),
		listening: map[string]chan struct{}{},
		exited:    make(chan struct{}),
		addrs:     map[string]string{},
		findings:  -1,
	}
	for _, protocol := range []string{pinpriqListener, boardListener, adminListener} {
		s.listening[protocol] = make(chan struct{})
	}
	dieWithParent(s.cmd)
	// A pipe of our own: Wait would close that of exec before all of it is read.
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
	case <-s.listening[pinpriqListener]:
		return s, nil
	case <-s.exited:
		return nil, fmt.Errorf("server ended with %v before it listened; its log ends with:\n%s", s.state, s.Log())
	case <-time.After(deadline):
		s.Kill()
		return nil, fmt.Errorf("server does not listen after %v; its log ends with:\n%s", deadline, s.Log())
	}
}

// dial connects to the listener of a protocol as soon as there is one.
func (s *Server) dial(protocol string) (*link, error) {
	select {
	case <-s.listening[protocol]:
	case <-s.exited:
		return nil, fmt.Errorf("server ended before it listened for %s", protocol)
	case <-time.After(deadline):
		return nil, fmt.Errorf("server does not listen for %s after %v", protocol, deadline)
	}
	s.mu.Lock()
	addr := s.addrs[protocol]
	s.mu.Unlock()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	return &link{conn: conn, in: bufio.NewReaderSize(conn, 64<<10)}, nil
}

// Findings is how many findings the start report names; -1 before there is one.
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
	if !s.state.Success() {
		return fmt.Errorf("server ended with %v; its log ends with:\n%s", s.state, s.Log())
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
	_ = s.cmd.Wait() // state says how it ended
	s.mu.Lock()
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
	if len(s.tail) < tailLines { // of a panic the beginning is kept
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
