package crash

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/storage/inject"
)

// strace injects failures into a server that runs.
type strace struct {
	t       *testing.T
	command []string
	log     string
	rng     *rand.Rand
	calls   []string // to choose from, with their errors
	hits    map[string]int
}

// failures are calls that mostly a store makes. After those of scarce it may refuse pushes, or
// everything, for a moment: a window cannot be written out, or the journal has no file. A read that
// fails is none of them: it sets a packet aside, and the next one overtakes it.
var (
	failures = []string{"pwrite64:EIO", "fdatasync:EIO", "fdatasync:ENOSPC", "unlinkat:EIO", "munmap:ENOMEM"}
	scarce   = []string{
		"openat:EIO", "openat:EMFILE", "openat:ENOSPC", "pwrite64:ENOSPC", "fallocate:EIO", "fallocate:ENOSPC", "fsync:EIO", "fsync:ENOSPC",
		"ftruncate:EIO", "sync_file_range:EIO", "renameat:EIO", "renameat:ENOSPC", "symlinkat:EIO", "mkdirat:ENOSPC", "getdents64:EIO",
	}
)

// disturb lets one call of a process fail, the first time that a thread makes it or a later one. It
// waits until all threads are traced.
func (s *strace) disturb(pid int) (end func(), err error) {
	call, failure, _ := strings.Cut(s.calls[s.rng.IntN(len(s.calls))], ":")
	most := 3 // a flush makes it some times
	if call == "pwrite64" || call == "fdatasync" {
		most = 60 // each batch makes it
	}
	what := fmt.Sprintf("inject=%s:error=%s:when=%d", call, failure, 1+s.rng.IntN(most))
	args := append(s.command[1:len(s.command):len(s.command)], "-o", s.log, "-e", "trace="+call, "-e", what, "-p", strconv.Itoa(pid))
	args = slices.DeleteFunc(args, func(arg string) bool { return arg == "-qqq" }) // it says when it begins
	cmd := exec.Command(s.command[0], args...)
	dieWithParent(cmd)
	said, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	s.t.Log(what)
	if lines := bufio.NewScanner(said); !lines.Scan() {
		return nil, fmt.Errorf("%v: it does not attach: %w", cmd.Args, cmd.Wait())
	} else {
		go func() {
			for lines.Scan() { // until it ends
			}
		}()
	}
	return func() {
		_ = cmd.Process.Signal(os.Interrupt) // it lets go of the server
		_ = cmd.Wait()
		calls, _ := os.ReadFile(s.log)
		for line := range strings.Lines(string(calls)) {
			if strings.Contains(line, "(INJECTED)") {
				s.t.Logf("failed: %.200s", line)
				s.hits[call+" "+failure]++
			}
		}
	}, nil
}

// A system call of a loaded server fails. It goes on, or ends with exit code 1, and the next start
// has all that was answered.
func TestServerWithAFailingCallKeepsItsPromises(t *testing.T) {
	s := &strace{t, inject.Strace(t), filepath.Join(t.TempDir(), "calls"), inject.Rand(t), slices.Concat(failures, scarce), map[string]int{}}
	run := newTrial(serveAll(build(t, "cmd/holdfast"), "always", "interval:5ms"), filepath.Join(smallDisk(t, 192), "data"), runSeed(), t.Logf) // windows are small, so each call is made soon
	run.harmed, run.depth = true, 1
	t.Cleanup(run.kill)
	cycles := max(inject.Runs()/4, 1)
	for range cycles {
		check(t, run.start())
		end, err := s.disturb(run.server.cmd.Process.Pid)
		check(t, err)
		check(t, run.load(func() { run.wait(time.Second) }, false))
		end()
		if state := run.server.cmd.ProcessState; state.Exited() && state.ExitCode() != 1 {
			t.Fatalf("it ended with %v; its log ends with:\n%s", state, run.server.Log())
		}
	}
	check(t, run.start())
	run.server.Kill()
	t.Logf("%d cycles, %d calls had a reply; calls failed: %v", cycles, run.calls.Load(), s.hits)
}
