package ask

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/config"
	"github.com/holdfast-queue/holdfast/netproto/client"
)

// task is a command that is run for each packet.
type task struct {
	server []string // variables for the command's own calls of this program
	path   string
	args   []string      // the name of the command included
	limit  time.Duration // 0: none
	grace  time.Duration // from SIGTERM to SIGKILL
	stdout io.Writer
	stderr io.Writer

	running sync.Map        // the process groups of its commands
	useful  context.Context // ends when no packet would fare better
	useless context.CancelCauseFunc
}

// run is a client.Handler. The error's text is the reason why the packet comes back.
func (t *task) run(ctx context.Context, p *client.Packet) error {
	if t.useful.Err() != nil {
		return client.RetryIn(0, context.Cause(t.useful))
	}
	if t.limit > 0 {
		late := fmt.Errorf("the command was ended: it ran longer than %v", t.limit)
		limited, cancel := context.WithTimeoutCause(ctx, t.limit, late)
		defer cancel()
		ctx = limited
	}
	complaints := &lastLine{w: t.stderr}
	cmd := exec.CommandContext(ctx, t.path)
	cmd.Args, cmd.Env = t.args, slices.Concat(environment(p), t.server)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(p.Payload), &passing{t.stdout, t.useless}, complaints
	cmd.SysProcAttr = ofItsOwn()
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = t.grace
	if err := cmd.Start(); err != nil {
		return t.notStarted(ctx, err)
	}
	t.running.Store(cmd.Process.Pid, true)
	err := cmd.Wait()
	t.running.Delete(cmd.Process.Pid)
	if ctx.Err() != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what is left of its group
		return context.Cause(ctx)
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return errors.New(strings.TrimSuffix(ending(exit.ProcessState)+": "+complaints.text(), ": "))
	}
	if errors.Is(err, exec.ErrWaitDelay) { // it ended well, and left something behind that holds its output
		return nil
	}
	return err
}

// ending says how a command ended: by its exit code or a signal.
func ending(state *os.ProcessState) string {
	if code := state.ExitCode(); code >= 0 {
		return "exit " + strconv.Itoa(code)
	}
	return state.String()
}

// signal signals the commands that run and what they have started, and returns how many they are.
func (t *task) signal(s syscall.Signal) (n int) {
	t.running.Range(func(group, _ any) bool {
		_ = syscall.Kill(-group.(int), s)
		n++
		return true
	})
	return n
}

// notStarted is why a command did not start. Only its environment depends on the packet: whatever
// else is wrong would let all packets of the queue fail in turn.
func (t *task) notStarted(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case !errors.Is(err, syscall.E2BIG):
		t.useless(fmt.Errorf("the command does not start: %w", err))
	}
	return err
}

// packetPrefix begins the variables of a packet.
const packetPrefix = "HOLDFAST_PACKET_"

// environment is that of this program, with what is known of the packet.
func environment(p *client.Packet) []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, packetPrefix) })
	add := func(name, value string) {
		if !strings.Contains(value, "\x00") { // no environment can hold it
			env = append(env, packetPrefix+name+"="+value)
		}
	}
	add("QUEUE", p.Queue)
	add("ID", p.ID)
	add("TOKEN", strconv.FormatInt(p.Token, 10))
	add("ATTEMPT", strconv.Itoa(p.Attempt))
	add("PRIORITY", strconv.FormatUint(uint64(p.Priority), 10))
	if p.Key != nil {
		add("KEY", string(p.Key))
	}
	if p.Producer != "" {
		add("PRODUCER", p.Producer)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Tags)) {
		add("TAG_"+config.VariableName(name), p.Tags[name])
	}
	return env
}

// passing is the output of a command on its way to that of this program. When nobody reads that any
// more, no other command has a use.
type passing struct {
	w       io.Writer
	useless context.CancelCauseFunc
}

func (o *passing) Write(p []byte) (int, error) {
	n, err := o.w.Write(p)
	if err != nil {
		o.useless(err)
	}
	return n, err
}

// shared is an output that several commands write to at a time.
type shared struct {
	mu sync.Mutex
	w  io.Writer
}

func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Write(p)
}

// lastLine passes on what a command writes, and keeps its last line that is not empty. A command
// does not fail because nobody reads its complaints.
type lastLine struct {
	w    io.Writer
	line []byte // that is under way
	last []byte
}

// longestReason is how many bytes of a line are kept: the server takes no more.
const longestReason = 4096

func (l *lastLine) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		part, more, ended := bytes.Cut(rest, []byte("\n"))
		l.line = append(l.line, part[:min(len(part), longestReason-len(l.line))]...)
		if ended {
			l.end()
		}
		rest = more
	}
	_, _ = l.w.Write(p)
	return len(p), nil
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
