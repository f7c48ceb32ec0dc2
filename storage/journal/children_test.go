package journal

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/holdfast-queue/holdfast/storage/inject"
)

var kills = flag.Int("kills", 60, "how often the test of kills kills a writer")

// stride is how far apart lies what is tried: some, unless all is.
func stride(some int) int {
	if inject.Every() {
		return 1
	}
	return some
}

// Tests that need a process of their own run this binary again, with the name of a function below.
const (
	childKey = "JOURNAL_CHILD"
	dirKey   = "JOURNAL_DIR"
)

// children say what they do on their output, and end with an error or are killed.
var children = map[string]func(dir string) error{"writer": writer, "script": script, "slow": slow}

func init() {
	if os.Getenv(childKey) != "" {
		runtime.LockOSThread() // calls that fail are counted by thread
	}
}

func TestMain(m *testing.M) {
	child := children[os.Getenv(childKey)]
	if child == nil {
		os.Exit(m.Run())
	}
	if err := child(os.Getenv(dirKey)); err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
}

// command is a child in a folder, perhaps under a tool.
func command(child, dir string, tool ...string) *exec.Cmd {
	args := append(slices.Clone(tool), os.Args[0])
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), childKey+"="+child, dirKey+"="+dir)
	return cmd
}

// writer takes over a journal, says which batch is the last, and appends until it is killed. A file
// "floor" stands for the tables, and another goroutine writes it.
func writer(dir string) error {
	o := Options{SegmentSize: segmentSize, Spares: rand.IntN(3), Weak: rand.IntN(4) == 0}
	j, err := Open(filepath.Join(dir, "journal"), o)
	if err != nil {
		return err
	}
	var floor Mark
	name := filepath.Join(dir, "floor")
	if b, err := os.ReadFile(name); err == nil {
		if _, err := fmt.Sscan(string(b), &floor.Batch, &floor.Segment, &floor.End, &floor.Sum); err != nil {
			return err
		}
	}
	check := &testing.T{}
	end, err := replayedTo(check, j, ReplayOptions{After: floor})
	if err != nil || check.Failed() {
		return fmt.Errorf("%w; wrong contents: %v", err, check.Failed())
	}
	w, err := j.Window(floor, end)
	if err != nil {
		return err
	}
	w.Close()
	fmt.Println(end.Batch)
	setFloor := func(m Mark) error {
		err := os.WriteFile(name+".new", fmt.Appendln(nil, m.Batch, m.Segment, m.End, m.Sum), 0o600)
		return errors.Join(err, os.Rename(name+".new", name))
	}
	if err := errors.Join(setFloor(end), j.Begin(end)); err != nil {
		return err
	}
	marks := make(chan Mark)
	go func() {
		for floor := end; ; {
			m := <-marks
			w, err := j.Window(floor, m)
			if err == nil {
				w.Close()
				floor = m
				err = errors.Join(setFloor(m), j.Release(m), j.Prepare(), j.Sync())
			}
			if err != nil {
				fmt.Println("failed:", err)
				os.Exit(1)
			}
		}
	}()
	for {
		if _, end, err = j.Append(content(end.Batch + 1)); err != nil {
			return err
		}
		fmt.Println(end.Batch)
		if end.Batch%16 == 0 {
			marks <- end
		}
	}
}

func TestSystemKilledWriterLosesNothing(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "journal"), 0o700); err != nil {
		t.Fatal(err)
	}
	last := 0
	for range *kills {
		cmd := command("writer", dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines, more := bufio.NewScanner(out), rand.IntN(40)
		for found := true; lines.Scan(); found = false {
			// A start may find one batch more than was answered.
			n, err := strconv.Atoi(lines.Text())
			if err != nil || n != last+1 && !(found && n == last) {
				t.Errorf("after batch %d: %s", last, lines.Text())
			}
			if last = n; more == 0 {
				_ = cmd.Process.Kill()
			}
			more--
		}
		if _ = cmd.Wait(); t.Failed() {
			return
		}
	}
	if last < *kills*5 {
		t.Errorf("only %d batches were written", last)
	}
}

const (
	scriptBatches = 24
	panicked      = 2 // exit code
)

// script does all that a journal is asked for, and says after each call how it ended. What has no
// room is tried again once.
func script(dir string) error {
	j, err := Open(dir, Options{SegmentSize: segmentSize, Spares: 1})
	if err != nil {
		return err
	}
	say := func(call string, err error) error {
		switch {
		case err == nil:
			fmt.Println(call, "done")
		case errors.Is(err, ErrUnknown):
			fmt.Println(call, "unknown")
		case errors.Is(err, ErrFull):
			fmt.Println(call, "full")
		default:
			fmt.Println(call, "failed")
		}
		return err
	}
	if err = say("begin", j.Begin(Mark{})); err == nil {
		err = say("spares", j.SetSpares(1))
	} else if !errors.Is(err, ErrUnknown) {
		return err
	}
	var floor Mark
	for n := uint64(1); n <= scriptBatches && !errors.Is(err, ErrUnknown); n++ {
		var end Mark
		for range 2 {
			_, end, err = j.Append(content(n))
			if !errors.Is(say(fmt.Sprint("append ", n), err), ErrFull) {
				break
			}
		}
		if err == nil {
			err = say("sync", j.Sync())
		}
		if n%4 == 0 && err == nil {
			fmt.Println("floor", floor.Batch, floor.Segment, floor.End, floor.Sum)
			_ = say("release", j.Release(floor))
			err = say("prepare", j.Prepare())
			floor = end
		}
	}
	if errors.Is(err, ErrUnknown) {
		_, _, err = j.Append(content(scriptBatches + 1))
		_ = say("later", err)
		_ = say("later", j.Sync())
	}
	return nil
}

// runScript runs the script in a new folder, and holds what it leaves against what it said. It
// returns what it said of calls that did not succeed.
func runScript(t *testing.T, tool func(dir string) []string) (failures []string) {
	t.Helper()
	dir := t.TempDir()
	cmd := command("script", dir, tool(dir)...)
	out, _ := cmd.Output()
	var answered uint64
	var floor Mark
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		switch how := words[len(words)-1]; {
		case words[0] == "failed:":
		case words[0] == "floor":
			if _, err := fmt.Sscan(line[len("floor"):], &floor.Batch, &floor.Segment, &floor.End, &floor.Sum); err != nil {
				t.Fatal(err)
			}
		case how != "done":
			failures = append(failures, words[0]+" "+how)
		case words[0] == "append":
			answered, _ = strconv.ParseUint(words[1], 10, 64)
		}
	}
	last, err := reread(t, dir, ReplayOptions{After: floor})
	if err != nil || last != answered && last != answered+1 {
		t.Errorf("batch %d was answered, it ends at %d: %v\n%s", answered, last, err, out)
	}
	stopped := slices.ContainsFunc(failures, func(f string) bool { return strings.HasSuffix(f, "unknown") })
	if whole := cmd.ProcessState.Success() && !stopped; whole && answered != scriptBatches || cmd.ProcessState.ExitCode() == panicked {
		t.Errorf("%v, and %d batches were answered\n%s", cmd.ProcessState, answered, out)
	}
	return failures
}

func TestSystemFailingCallsLoseNothing(t *testing.T) {
	for name, test := range map[string]struct {
		call, err string
		folder    bool   // only calls for the folder fail
		want      string // how calls end, over all runs
	}{
		"no room":               {call: "pwrite64", err: "ENOSPC", want: "append full, prepare full, spares full"},
		"no quota":              {call: "pwrite64", err: "EDQUOT", want: "append full, prepare full, spares full"},
		"write fails":           {call: "pwrite64", err: "EIO", want: "append unknown, prepare full, spares full"},
		"sync of a record":      {call: "fdatasync", err: "EIO", want: "append unknown"},
		"no room in a sync":     {call: "fdatasync", err: "ENOSPC", want: "append unknown"},
		"sync of the folder":    {call: "fsync", err: "EIO", folder: true, want: "append unknown, begin unknown, prepare unknown, spares unknown"},
		"sync of anything":      {call: "fsync", err: "EIO", want: "append unknown, begin unknown, prepare full, prepare unknown, spares full, spares unknown, sync unknown"},
		"no room for a file":    {call: "fallocate", err: "ENOSPC", want: "append full, prepare full, spares full"},
		"new file fails":        {call: "fallocate", err: "EIO", want: "append full, prepare full, spares full"},
		"no file can be opened": {call: "openat", err: "EMFILE", want: "append full, prepare full, spares full"},
		"removal fails":         {call: "unlinkat", err: "EIO", want: "release failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := make(map[string]bool)
			alike, before := 0, "" // what the last runs ended with, and how many in a row
			for when := 1; when <= 20 && (inject.Every() || len(seen) == 0 || alike < 8); when++ {
				failures := runScript(t, func(dir string) []string {
					what := []string{"--seccomp-bpf", "-e", "trace=" + test.call, "-e", fmt.Sprintf("inject=%s:error=%s:when=%d", test.call, test.err, when)}
					if test.folder {
						what = append(what, "-P", dir)
					}
					return inject.Strace(t, what...)
				})
				if alike++; fmt.Sprint(failures) != before {
					alike, before = 1, fmt.Sprint(failures)
				}
				if len(failures) == 0 {
					continue
				}
				first, later := failures[0], failures[1:]
				seen[first] = true
				// Once nobody knows what is on the device, nothing more is taken. All else is tried again.
				if unknown := strings.HasSuffix(first, "unknown"); unknown != slices.Equal(later, []string{"later unknown", "later unknown"}) || !unknown && len(later) > 0 {
					t.Errorf("call %d: %v", when, failures)
				}
			}
			got, want := slices.Sorted(maps.Keys(seen)), strings.Split(test.want, ", ")
			other := slices.ContainsFunc(got, func(end string) bool { return !slices.Contains(want, end) })
			if other || len(got) == 0 && test.call == "fdatasync" || inject.Every() && len(got) < len(want) {
				t.Errorf("calls ended with %q, want %q", got, want)
			}
		})
	}
}

func TestSystemEachRecordIsSynced(t *testing.T) {
	calls := filepath.Join(t.TempDir(), "calls")
	runScript(t, func(string) []string {
		return inject.Strace(t, "-e", "trace=fsync,fdatasync", "-o", calls)
	})
	b, err := os.ReadFile(calls)
	if err != nil {
		t.Fatal(err)
	}
	// Headers have an fdatasync of their own, and files that are made an fsync.
	for call, least := range map[string]int{" fdatasync(": scriptBatches, " fsync(": 2 * scriptBatches} {
		if n := bytes.Count(b, []byte(call)); n < least {
			t.Errorf("%d calls of%s), want %d at least", n, call, least)
		}
	}
}

func TestSystemKillBeforeAnyCallLosesNothing(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"openat", "fallocate", "pwrite64", "fdatasync", "fsync", "unlinkat"} {
		for when, stride := inject.Sample(t, 2); when <= 10; when += stride {
			runScript(t, func(string) []string {
				return inject.Strace(t, "-e", "trace="+call, "-e", fmt.Sprintf("inject=%s:signal=SIGKILL:when=%d", call, when))
			})
		}
	}
}

// quickAppends is more than it takes until a sync is a raw call.
const quickAppends = 1100

// slow appends until syncs are raw calls, and then more; it says how many of those let no other
// goroutine run on the only processor.
func slow(dir string) error {
	runtime.GOMAXPROCS(1)
	j, err := Open(dir, Options{SegmentSize: 1 << 20, Spares: 1})
	if err != nil {
		return err
	}
	var turns atomic.Uint64
	go func() {
		for ; ; runtime.Gosched() {
			turns.Add(1)
		}
	}()
	starved := 0
	for n := range uint64(quickAppends + 40) {
		before := turns.Load()
		if _, _, err := j.Append(Content{Batch: n + 1}); err != nil {
			return err
		}
		if n >= quickAppends && turns.Load() == before {
			starved++
		}
	}
	fmt.Println(starved)
	return nil
}

// A sync that the runtime does not hear of keeps the processor from all others, so only the first
// of the slow ones may be one. The runtime looks now and then only, and less often on a busy
// machine, so some more may pass unseen.
func TestSystemSlowDiskLetsOthersRun(t *testing.T) {
	t.Parallel()
	tool := inject.Strace(t, "--seccomp-bpf", "-e", "trace=fdatasync", "-e", fmt.Sprintf("inject=fdatasync:delay_enter=25000:when=%d+", quickAppends+2))
	out, err := command("slow", t.TempDir(), tool...).Output()
	starved, errNumber := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil || errNumber != nil || starved > 25 {
		t.Errorf("others did not run during %d of 40 syncs: %v\n%s", starved, err, out)
	}
}
