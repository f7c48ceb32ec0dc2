package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/holdfast-queue/holdfast/netproto/client"
)

// task is a command that is run for each packet.
type task struct {
	path   string
	args   []string      // the name of the command included
	limit  time.Duration // 0: none
	stdout *shared
	stderr *shared
}

// grace is how long a command has from SIGTERM to SIGKILL.
const grace = 5 * time.Second

// run is a client.Handler. The error's text is the reason why the packet comes back.
func (t *task) run(ctx context.Context, p *client.Packet) error {
	if t.limit > 0 {
		late := fmt.Errorf("the command was ended: it ran longer than %v", t.limit)
		limited, cancel := context.WithTimeoutCause(ctx, t.limit, late)
		defer cancel()
		ctx = limited
	}
	complaints := &lastLine{w: t.stderr}
	cmd := exec.CommandContext(ctx, t.path)
	cmd.Args, cmd.Env = t.args, append(os.Environ(), facts(p)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(p.Payload), t.stdout, complaints
	// A group of its own: Ctrl-C in a terminal ends this program's claims, not the commands.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = grace
	err := cmd.Run()
	if ctx.Err() != nil && cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what is left of its group
		return context.Cause(ctx)
	}
	var exit *exec.ExitError
	if text := complaints.text(); errors.As(err, &exit) && text != "" {
		return errors.New(text)
	}
	if errors.Is(err, exec.ErrWaitDelay) { // it ended well, and left something behind that holds its output
		return nil
	}
	return err
}

// facts are what the command's environment says of a packet.
func facts(p *client.Packet) []string {
	all := []string{
		"QUEUE=" + p.Queue, "ID=" + p.ID, "TOKEN=" + strconv.FormatInt(p.Token, 10),
		"ATTEMPT=" + strconv.Itoa(p.Attempt), "PRIORITY=" + strconv.FormatUint(uint64(p.Priority), 10),
	}
	if p.Key != nil {
		all = append(all, "KEY="+string(p.Key))
	}
	if p.Producer != "" {
		all = append(all, "PRODUCER="+p.Producer)
	}
	for name, value := range p.Tags {
		all = append(all, "TAG_"+strings.ToUpper(name)+"="+value)
	}
	known := all[:0]
	for _, fact := range all {
		if !strings.Contains(fact, "\x00") { // no environment can hold it
			known = append(known, "HOLDFAST_PACKET_"+fact)
		}
	}
	return known
}

// shared is an output that several commands write to at a time.
type shared struct {
	mu sync.Mutex
	w  io.Writer
}

// Write implements io.Writer.
func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Write(p)
}

// lastLine passes on what a command writes, and keeps its last line that is not empty.
type lastLine struct {
	w    io.Writer
	line []byte // that is under way
	last []byte
}

// longestReason is how many bytes of a line are kept: the server takes no more.
const longestReason = 4096

// Write implements io.Writer.
func (l *lastLine) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		part, more, ended := bytes.Cut(rest, []byte("\n"))
		l.line = append(l.line, part[:min(len(part), longestReason-len(l.line))]...)
		if ended {
			l.end()
		}
		rest = more
	}
	return l.w.Write(p)
}

func (l *lastLine) end() {
	if line := bytes.TrimSpace(l.line); len(line) > 0 {
		l.last = append(l.last[:0], line...)
	}
	l.line = l.line[:0]
}

func (l *lastLine) text() string {
	l.end()
	return string(l.last)
}
