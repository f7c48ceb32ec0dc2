package simulated

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"
)

var (
	one   = flag.String("sim.seed", "", "the one seed that a simulation plays")
	first = flag.Uint64("sim.from", 1, "the first seed of the others")
	count = flag.Int("sim.seeds", -1, "how many seeds from that one on; -1: as many as the test says")
	file  = flag.String("sim.file", "testdata/seeds.txt", "the seeds that failed once, which are played first, one a line")
	long  = flag.Duration("sim.for", 0, "how long more seeds are played behind those")
	trace = flag.Bool("sim.trace", false, "say what a seed does")
)

// Run is one run of a seed.
type Run struct {
	*testing.T
	Seed uint64
	Root string // an empty folder, in memory where the system has /dev/shm
	say  func(line string)
}

// Say says what the run does, if somebody wants to know.
func (r *Run) Say(format string, args ...any) {
	if r.say != nil {
		r.say(strings.ReplaceAll(fmt.Sprintf(format, args...), r.Root, ""))
	}
}

// Play plays the seeds that the flags name, or some. Each has a clock that only it moves, and its
// own chance.
func Play(t *testing.T, some int, play func(r *Run)) {
	if testing.Short() {
		t.Skip("skipped: one goroutine does all, so the race detector has nothing to watch")
	}
	if *count >= 0 {
		some = *count
	}
	seeds, err := Seeds(*one, *file, *first, some)
	if err != nil {
		t.Fatal(err)
	}
	played, next := 0, *first+uint64(some)
	for end := time.Now().Add(*long); played < len(seeds) || time.Now().Before(end); played++ {
		if played == len(seeds) {
			seeds, next = append(seeds, next), next+1
		}
		seed := seeds[played]
		ok := t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := &Run{T: t, Seed: seed}
			if *trace {
				r.say = func(line string) { t.Log(line) }
			}
			r.play(play)
		})
		if !ok {
			t.Fatalf("seed %d fails. To see what it does: -run '^%s$' -v -sim.seed %d -sim.trace. Add it to %s, so that it is played from now on.", seed, t.Name(), seed, *file)
		}
	}
	t.Logf("%d seeds were played", played)
}

// Trace plays a seed, and returns what it says.
func Trace(t *testing.T, seed uint64, play func(r *Run)) (lines []string) {
	t.Run(fmt.Sprint(seed), func(t *testing.T) {
		r := &Run{T: t, Seed: seed, say: func(line string) { lines = append(lines, line) }}
		r.play(play)
	})
	return lines
}

func (r *Run) play(play func(r *Run)) {
	r.Root = folder(r.T)
	r.Setenv("TMPDIR", folder(r.T))
	cryptotest.SetGlobalRandom(r.T, r.Seed)
	synctest.Test(r.T, func(t *testing.T) {
		r.T = t
		play(r)
	})
}

// folder makes a folder in memory that goes with the test.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "holdfast-sim")
	if err != nil {
		t.Logf("there is no /dev/shm, so the simulation takes a temporary folder, and more time: %v", err)
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// Seeds returns the seed that is named, or those of a file and some from the first on.
func Seeds(named, file string, first uint64, some int) (seeds []uint64, err error) {
	if named != "" {
		seed, err := number(named)
		return []uint64{seed}, err
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("the file of seeds cannot be read: %w", err)
	}
	for line := range strings.Lines(string(b)) {
		if word, _, _ := strings.Cut(line, "#"); strings.TrimSpace(word) != "" {
			seed, err := number(strings.TrimSpace(word))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			seeds = append(seeds, seed)
		}
	}
	for i := range some {
		seeds = append(seeds, first+uint64(i))
	}
	return seeds, nil
}

func number(word string) (uint64, error) {
	n, err := strconv.ParseUint(word, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("seed %q is no number from 0 to %d", word, uint64(1<<64-1))
	}
	return n, nil
}
