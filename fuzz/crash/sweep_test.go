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
// keeps all promises.
func TestServerWithAFailingCallKeepsItsPromises(t *testing.T) {
	binary := build(t, "cmd/holdfast")
	t.Run("all protocols", func(t *testing.T) {
		disturbed(t, binary, failures, Options{BoardClients: 2, RedisClients: 2, TaskClients: 2})
	})
	// A full disk refuses one command of a pipeline and takes the next. Here it ends the connection.
	t.Run("with refusals", func(t *testing.T) { disturbed(t, binary, slices.Concat(failures, scarce), Options{}) })
}

func disturbed(t *testing.T, binary string, calls []string, o Options) {
	s := &strace{t, inject.Strace(t), filepath.Join(t.TempDir(), "calls"), inject.Rand(t), calls, map[string]int{}}
	o.Command = serveAll(binary, "always", "interval:5ms")
	o.Data = filepath.Join(smallDisk(t, 192), "data") // windows are small, so each call is made soon
	o.Cycles = max(inject.Runs()/8, 1)
	o.Seed, o.Logf, o.Disturb = runSeed(), t.Logf, s.disturb
	o.MinLoad, o.DrainEvery, o.KillsOnly, o.StopAtFinding = 500*time.Millisecond, 2, true, true
	t.Logf("seed %d", o.Seed)
	result, err := Run(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range result.Findings {
		t.Error(f)
	}
	t.Logf("%d cycles, %v under load; calls failed: %v", result.Cycles, result.Load.Round(time.Millisecond), s.hits)
}
