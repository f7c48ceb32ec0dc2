package crash

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/fuzz/crash/mutant"
)

// bugs are some bugs, which a load that is killed must show. The simulation finds all of them.
func bugs() []string {
	return []string{"ack-before-commit", "delete-not-written", "batches-reordered", "attempt-lost", "token-repeated", "value-dropped"}
}

func TestHarnessCatchesPlantedBugs(t *testing.T) {
	binary := build(t, "fuzz/crash/mutantserver")
	for _, name := range append(bugs(), mutant.None) {
		t.Run(name, func(t *testing.T) {
			run := newTrial(func(data string) *exec.Cmd {
				cmd := exec.Command(binary, "-data", data, "-redis", "127.0.0.1:0")
				cmd.Env = append(os.Environ(), "MUTANT="+name)
				return cmd
			}, t.TempDir(), runSeed(), t.Logf)
			cycles := 40 // most bugs show by the fourth
			if name == mutant.None {
				cycles = 4
			}
			t.Cleanup(run.kill)
			err := run.run(cycles, 100*time.Millisecond, 400*time.Millisecond, false)
			if t.Logf("%.500v", err); (err == nil) != (name == mutant.None) {
				t.Errorf("it ends with %v", err)
			}
		})
	}
}

func TestEachPlantedBugHasASeedOfTheSimulation(t *testing.T) {
	for _, name := range mutant.Names() {
		if _, judged := mutant.Seeds()[name]; !judged && name != mutant.None {
			t.Errorf("nothing says which seed of the simulation finds %q", name)
		}
	}
}
