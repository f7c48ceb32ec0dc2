package crash

import (
	"flag"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

var (
	cycles = flag.Int("cycles", 3, "how often TestCrash loads the server and ends it")
	seed   = flag.Uint64("seed", 0, "seed of the run, 0 for a fresh one")
)

// build compiles a command of this module and returns its path.
func build(t *testing.T, command string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), filepath.Base(command))
	out, err := exec.Command("go", "build", "-o", name, "github.com/holdfast-queue/holdfast/"+command).CombinedOutput()
	if err != nil {
		t.Fatalf("build %s: %v\n%s", command, err, out)
	}
	return name
}

// serve starts the real binary.
func serve(binary string) Command {
	return func(data string) *exec.Cmd {
		return exec.Command(binary, "serve", "--data", data, "--pinpriq", "127.0.0.1:0", "--barbershop", "off", "--admin", "off")
	}
}

// serveBoard starts the real binary with a board.
func serveBoard(binary string) Command {
	return func(data string) *exec.Cmd {
		return exec.Command(binary, "serve", "--data", data, "--pinpriq", "127.0.0.1:0", "--barbershop", "127.0.0.1:0", "--admin", "off")
	}
}

func runSeed() uint64 {
	if *seed != 0 {
		return *seed
	}
	return uint64(time.Now().UnixNano())
}

// The load below which a crash test proves nothing: operations a second, the board's apart.
const (
	minRate      = 5000
	minBoardRate = 1000
)

func TestCrash(t *testing.T) {
	o := Options{
		Command: serveBoard(build(t, "cmd/holdfast")),
		Data:    t.TempDir(),
		Cycles:  *cycles,
		Seed:    runSeed(),
		Barbers: 4,
		MinRate: minRate,
		Logf:    t.Logf,

		MinBoardRate: minBoardRate,
	}
	t.Logf("seed %d", o.Seed)
	result, err := Run(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range result.Findings {
		t.Error(f)
	}
	t.Logf("%d cycles: %d kills, %d clean stops, %d operations in %v under load (%.0f/s), %d of the board (%.0f/s), %d findings",
		result.Cycles, result.Kills, result.Stops, result.Ops, result.Load.Round(time.Millisecond), result.Rate(),
		result.BoardOps, result.BoardRate(), len(result.Findings))
}
