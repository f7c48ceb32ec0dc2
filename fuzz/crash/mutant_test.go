package crash

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/fuzz/crash/mutant"
)

// showsAs says which kinds of finding give a planted bug away; every bug has a line here.
func showsAs() map[string][]Kind {
	return map[string][]Kind{
		mutant.None:            nil,
		"ack-before-commit":    {Lost},
		"delete-not-written":   {Returned},
		"last-record-dropped":  {Lost, Returned},
		"batch-torn":           {Order},
		"batches-reordered":    {Lost, Returned},
		"batch-applied-twice":  {NotStarted},
		"definition-dropped":   {Report, NotStarted},
		"sequence-reused":      {Order, Died, Returned, Lost, Corrupt},
		"expiry-forgotten":     {Expired},
		"key-forgotten":        {Order},
		"packet-skipped":       {Lost, Order},
		"record-of-another":    {Corrupt, Order, Returned},
		"payload-of-large-cut": {Corrupt},
	}
}

func TestHarnessCatchesPlantedBugs(t *testing.T) {
	binary := build(t, "fuzz/crash/mutantserver")
	names := mutant.Names()
	slices.Sort(names)
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			want, known := showsAs()[name]
			if !known {
				t.Fatalf("nothing says how %q shows", name)
			}
			result, err := Run(Options{
				Command: func(data string) *exec.Cmd {
					cmd := exec.Command(binary, "-data", data)
					cmd.Env = append(os.Environ(), "MUTANT="+name)
					return cmd
				},
				Data:          t.TempDir(),
				Cycles:        8,
				Seed:          runSeed(),
				MinLoad:       100 * time.Millisecond,
				MaxLoad:       400 * time.Millisecond,
				DrainEvery:    2,
				KillsOnly:     name != mutant.None,
				StopAtFinding: true,
				Logf:          t.Logf,
			})
			if err != nil {
				t.Fatal(err)
			}
			if name == mutant.None {
				for _, f := range result.Findings {
					t.Error(f)
				}
				return
			}
			if len(result.Findings) == 0 {
				t.Fatalf("the bug was not found in %d cycles", result.Cycles)
			}
			t.Logf("found in cycle %d: %.200s", result.Cycles, result.Findings[0])
			if !slices.ContainsFunc(result.Findings, func(f Finding) bool { return slices.Contains(want, f.Kind) }) {
				t.Errorf("it showed as %.2000s, not as one of %v", fmt.Sprint(result.Findings), want)
			}
		})
	}
}
