package sim

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/daemon"
	"github.com/holdfast-queue/holdfast/fuzz/crash/mutant"
)

// planted names the fault between the machine and the store, "" if there is none.
func planted() string { return os.Getenv("MUTANT") }

// coat returns the store, with the fault before it.
func (w *world) coat(s daemon.Store) daemon.Store {
	if planted() == "" {
		return s
	}
	coat, err := mutant.Wrap(planted())
	w.must("a mutant", err)
	return coat(s)
}

// finding is what a simulation that fails says first. A panic of the mutant is none.
var finding = regexp.MustCompile(`operation \d+ of seed \d+: (.*)`)

func TestMutantsAreFound(t *testing.T) {
	type play struct {
		name string
		seed uint64
	}
	var plays []play
	for name, seed := range mutant.Seeds() {
		plays = append(plays, play{name, seed}, play{mutant.None, seed})
	}
	slices.SortFunc(plays, func(a, b play) int { return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.seed, b.seed)) })
	plays = slices.Compact(plays)
	rows := make([]string, len(plays))
	t.Cleanup(func() { t.Log("\n" + strings.Join(rows, "\n")) })
	for i, p := range plays {
		t.Run(fmt.Sprint(p.name, " by seed ", p.seed), func(t *testing.T) {
			t.Parallel()
			begun := time.Now()
			cmd := exec.Command(os.Args[0], "-test.run=^TestSimulation$", "-test.timeout=60s", fmt.Sprint("-sim.seed=", p.seed))
			cmd.Env = append(os.Environ(), "MUTANT="+p.name)
			out, err := cmd.CombinedOutput()
			found := finding.FindSubmatch(out)
			if found = append(found, nil, nil); (err == nil) != (p.name == mutant.None) || (err != nil) != (found[1] != nil) {
				t.Errorf("it ends with %v: %s", err, out)
			}
			rows[i] = fmt.Sprintf("%-22s seed %-4d %6.2f s  %.100s", p.name, p.seed, time.Since(begun).Seconds(), found[1])
		})
	}
}
