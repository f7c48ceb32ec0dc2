package crash

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/fuzz/crash/mutant"
	"github.com/holdfast-queue/holdfast/storage/inject"
)

// showsAs says which kinds of finding show a planted bug under a load of pinpriq.
func showsAs() map[string][]Kind {
	return map[string][]Kind{
		mutant.None:            nil,
		"ack-before-commit":    {Lost},
		"delete-not-written":   {Returned},
		"last-record-dropped":  {Lost, Returned},
		"batch-torn":           {Order},
		"batches-reordered":    {Lost, Returned},
		"batch-applied-twice":  {NotStarted},
		"definition-dropped":   {Logged, NotStarted},
		"sequence-reused":      {Order, Died, Returned, Lost, Corrupt},
		"expiry-forgotten":     {Expired},
		"key-forgotten":        {Order},
		"packet-skipped":       {Lost, Order},
		"record-of-another":    {Corrupt, Order, Returned},
		"payload-of-large-cut": {Corrupt},
	}
}

// showsOnBoard says the same for a load of barbershop alone.
func showsOnBoard() map[string][]Kind {
	return map[string][]Kind{
		mutant.None:           nil,
		"ack-before-commit":   {Lost},
		"delete-not-written":  {Returned, Doubled},
		"last-record-dropped": {Lost, Returned, Doubled},
		"batch-torn":          {Lost, Returned, Doubled},
		"batches-reordered":   {Lost, Returned, Doubled},
		"move-not-deleted":    {Doubled},
		"move-not-put":        {Lost},
		"first-put-dropped":   {Lost},
		"packet-skipped":      {Lost, Returned, Doubled},
	}
}

// showsInRedis says the same for a load of the Redis protocol alone.
func showsInRedis() map[string][]Kind {
	return map[string][]Kind{
		mutant.None:           nil,
		"ack-before-commit":   {Lost, Returned, Order},
		"delete-not-written":  {Returned, Doubled, NotStarted},
		"batch-torn":          {Order, NotStarted},
		"batches-reordered":   {Lost, Returned, Doubled, NotStarted},
		"move-not-deleted":    {Returned, Doubled, NotStarted},
		"move-not-put":        {Lost, Logged},
		"drop-forgotten":      {Returned, Order},
		"values-later":        {Order},
		"value-dropped":       {Lost, Order},
		"value-never-expires": {Expired, Order},
	}
}

// showsAtWork says the same for a load of the work queue alone.
func showsAtWork() map[string][]Kind {
	return map[string][]Kind{
		mutant.None:           nil,
		"ack-before-commit":   {Lost, Returned, Attempts, Tokens},
		"delete-not-written":  {Returned, Doubled, NotStarted},
		"batches-reordered":   {Lost, Returned, Attempts, Tokens, NotStarted},
		"attempt-lost":        {Attempts},
		"token-repeated":      {Tokens, Returned},
		"lease-without-end":   {Stuck},
		"cancel-forgotten":    {Returned},
		"death-forgotten":     {Returned},
		"dead-and-ready":      {Doubled, Returned, NotStarted},
		"ack-forgotten":       {Returned},
		"delay-forgotten":     {Early},
		"origin-forgotten":    {Lost},
		"done-forgotten":      {Returned},
		"done-not-kept":       {Lost},
		"notes-forgotten":     {Lost},
		"extension-forgotten": {Stuck, Lost, Shared},
		"counters-forgotten":  {Counters},
		"push-after-ack":      {Order, Lost},
		"share-forgotten":     {Lost},
		"tags-forgotten":      {Stuck},
		"unique-forgotten":    {Doubled, Order, Lost},
		"values-later":        {Doubled, Lost}, // lost: a packet is there without its id
		"value-never-expires": {Stuck},
		"value-expires-early": {Doubled},
		"dropped-stay":        {Overfull, Dropped, Returned}, // returned: it leaves out a cancel, too
		"worst-kept":          {Dropped, Overfull},
		"closed-forgotten":    {Open},
		"bound-forgotten":     {Overfull, Lost},
		"pause-forgotten":     {Lost},
		"full-forgotten":      {Lost},
		"size-forgotten":      {Counters, Overfull},
		"pushes-torn":         {Order},
		"tags-of-another":     {Unfit},
		"tags-not-written":    {Corrupt},
	}
}

func TestEveryPlantedBugIsExpectedSomewhere(t *testing.T) {
	for _, name := range mutant.Names() {
		if _, judged := mutant.Seeds()[name]; !judged && name != mutant.None {
			t.Errorf("nothing says which seed of the simulation finds %q", name)
		}
		_, pinpriq := showsAs()[name]
		_, board := showsOnBoard()[name]
		_, work := showsAtWork()[name]
		if _, redis := showsInRedis()[name]; !pinpriq && !board && !redis && !work {
			t.Errorf("nothing says how %q shows", name)
		}
	}
}

func TestHarnessCatchesPlantedBugs(t *testing.T) {
	catchPlantedBugs(t, showsAs(), Options{})
}

func TestHarnessCatchesPlantedBugsOfTheBoard(t *testing.T) {
	catchPlantedBugs(t, showsOnBoard(), Options{NoPinpriq: true, BoardClients: 6}, "-barbershop", "127.0.0.1:0")
}

func TestHarnessCatchesPlantedBugsOfTheRedisProtocol(t *testing.T) {
	catchPlantedBugs(t, showsInRedis(), Options{NoPinpriq: true, RedisClients: 6}, "-redis", "127.0.0.1:0")
}

func TestHarnessCatchesPlantedBugsOfTheWorkQueue(t *testing.T) {
	catchPlantedBugs(t, showsAtWork(), Options{NoPinpriq: true, TaskClients: 6}, "-redis", "127.0.0.1:0")
}

// sample is what each load must find in any case: a harness that cannot fail proves nothing. Other
// tests show that it finds nothing without a bug.
const sample = "delete-not-written"

// catchPlantedBugs runs the load of o against a server with the sample, or with each bug. A bug
// must be found every time, and show as one of its kinds in one of three runs.
func catchPlantedBugs(t *testing.T, bugs map[string][]Kind, o Options, args ...string) {
	binary := build(t, "fuzz/crash/mutantserver")
	for _, name := range slices.Sorted(maps.Keys(bugs)) {
		if name != sample && !inject.Every() {
			continue // a seed of the simulation finds it
		}
		t.Run(name, func(t *testing.T) {
			for range 3 { // what a bug breaks first depends on the moment of the kill
				o := o
				o.Command = func(data string) *exec.Cmd {
					cmd := exec.Command(binary, append([]string{"-data", data}, args...)...)
					cmd.Env = append(os.Environ(), "MUTANT="+name)
					return cmd
				}
				o.Data, o.Seed, o.Logf = t.TempDir(), runSeed(), t.Logf
				o.Cycles, o.DrainEvery, o.StopAtFinding = 48, 2, true // most bugs show by the eighth
				o.MinLoad, o.MaxLoad, o.LeastOps = 100*time.Millisecond, 400*time.Millisecond, 500
				if o.KillsOnly = name != mutant.None; !o.KillsOnly {
					o.Cycles = 8
				}
				if name == "counters-forgotten" { // a kill shows it of a server that lived for some seconds
					o.KillsOnly, o.MaxLoad = false, 3*time.Second
				}
				if name == "closed-forgotten" { // a queue is seldom closed
					o.MaxLoad = 2 * time.Second
				}
				result, err := Run(o)
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
				t.Logf("found in cycle %d: %.2000s", result.Cycles, fmt.Sprint(result.Findings))
				if slices.ContainsFunc(result.Findings, func(f Finding) bool { return slices.Contains(bugs[name], f.Kind) }) {
					return
				}
			}
			t.Errorf("it never showed as one of %v", bugs[name])
		})
	}
}
