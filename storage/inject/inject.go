// Package inject lets tests make system calls fail, by strace, and see how much of files is in
// memory. Only tests import it.
package inject

import (
	"bytes"
	"cmp"
	"flag"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

var (
	every  = flag.Bool("every", false, "let each system call fail and change each bit, not only a sample of them")
	runs   = flag.Int("sweep", 12, "how many runs a test has that makes one system call fail in each")
	sample = flag.Uint64("sample", 1, "which sample of system calls fails, 0 for a fresh one")
)

// Strace returns the command to which another one, with its arguments, is appended to run below
// strace. It follows all threads and prints nothing. The test is skipped where that is not
// possible, and in short runs, since strace makes a process slow.
func Strace(t testing.TB, args ...string) []string {
	t.Helper()
	if testing.Short() {
		t.Skip("skipped: processes below strace are left to longer runs")
	}
	path, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("skipped: strace is not installed, and nothing else makes a system call fail")
	}
	if out, err := exec.Command(path, "-f", "-qqq", "-o", os.DevNull, "true").CombinedOutput(); err != nil {
		t.Skipf("skipped: strace cannot trace here: %v %s", err, bytes.TrimSpace(out))
	}
	return append([]string{path, "-f", "-qqq", "-o", os.DevNull}, args...)
}

// Calls reads the log of a run below strace: a line for each call, in the order in which they
// ended. strace cuts a call in two where another thread's, or a signal, comes between.
func Calls(log string) (calls []string, err error) {
	written, err := os.ReadFile(log)
	begun := map[string]string{} // by thread
	for line := range strings.Lines(string(written)) {
		thread, call, _ := strings.Cut(line, " ")
		if start, cut := strings.CutSuffix(call, "<unfinished ...>\n"); cut {
			begun[thread] = start
			continue
		}
		if rest := strings.TrimLeft(call, " "); strings.HasPrefix(rest, "<... ") {
			_, end, _ := strings.Cut(rest, " resumed>")
			call = begun[thread] + end
		}
		calls = append(calls, thread+" "+call)
	}
	return calls, err
}

// Every reports whether a test is to try all there is, and not a sample.
func Every() bool { return *every }

// Runs is how many runs a test has that makes one system call fail in each.
func Runs() int { return *runs }

// Sample says which numbers from 1 on a test tries: first, and then each that is stride further. By
// default that is one in oneIn. With -every it is each.
func Sample(t testing.TB, oneIn int) (first, stride int) {
	t.Helper()
	if *every {
		return 1, 1
	}
	r := Rand(t)
	return 1 + r.IntN(oneIn), oneIn
}

// Rand returns the generator from which a test draws its sample. It logs the seed.
func Rand(t testing.TB) *rand.Rand {
	t.Helper()
	t.Logf("to have the same sample again: -sample %d", chosen())
	name := fnv.New64a()
	_, _ = name.Write([]byte(t.Name()))
	return rand.New(rand.NewPCG(chosen(), name.Sum64()))
}

// chosen is the seed of all samples of a run.
var chosen = sync.OnceValue(func() uint64 { return cmp.Or(*sample, rand.Uint64()) })
