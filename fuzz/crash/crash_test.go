package crash

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/fuzz/planted"
)

var (
	cycles = flag.Int("cycles", 5, "how often TestCrash loads the server and ends it")
	seed   = flag.Uint64("seed", 1, "seed of the run, 0 for a fresh one")
	tasked = flag.Int("workers", 4, "how many clients of the work queues TestCrash has")
)

// built is the folder of the commands that were compiled; empty before the first.
var built string

func TestMain(m *testing.M) {
	code := m.Run()
	_ = os.RemoveAll(built)
	os.Exit(code)
}

// build compiles a command of this module, once for all tests, and returns its path.
func build(t *testing.T, command string) string {
	t.Helper()
	if built == "" {
		var err error
		if built, err = os.MkdirTemp("", "crash"); err != nil {
			t.Fatal(err)
		}
	}
	name := filepath.Join(built, filepath.Base(command))
	if _, err := os.Stat(name); err == nil {
		return name
	}
	if err := planted.Depend("./" + command); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("go", "build", "-ldflags", "-s -w", "-o", name, "github.com/holdfast-queue/holdfast/"+command).CombinedOutput()
	if err != nil {
		t.Fatalf("build %s: %v\n%s", command, err, out)
	}
	return name
}

// serve starts the real binary.
func serve(binary string) Command {
	return func(data string) *exec.Cmd {
		return exec.Command(binary, "serve", "--data", data, "--pinpriq", "127.0.0.1:0", "--barbershop", "off", "--redis", "off", "--admin", "off", loop())
	}
}

// serveAll starts the real binary with all listeners, in one sync mode after the other. A kill may
// lose nothing in any of them.
func serveAll(binary string, modes ...string) Command {
	starts := 0
	return func(data string) *exec.Cmd {
		mode := modes[starts%len(modes)]
		starts++
		return exec.Command(binary, "serve", "--data", data, "--pinpriq", "127.0.0.1:0", "--barbershop", "127.0.0.1:0",
			"--redis", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--sync", mode, loop())
	}
}

// loop is the flag that chooses how the server reads and writes connections.
func loop() string {
	if os.Getenv("HOLDFAST_GOROUTINES") != "" {
		return "--no-loop"
	}
	return "--loop"
}

func runSeed() uint64 {
	if *seed != 0 {
		return *seed
	}
	return uint64(time.Now().UnixNano())
}

func TestCrash(t *testing.T) {
	binary := build(t, "cmd/holdfast")
	t.Run("any moment", func(t *testing.T) {
		crash(t, Options{
			// Every third cycle has a slow reader. So each mode has one some time, the strictest
			// mode first.
			Command:   serveAll(binary, "interval:5ms", "always", "never", "always"),
			Data:      t.TempDir(),
			Cycles:    *cycles,
			SlowEvery: 3,
		})
	})
	// On a small disk windows are small and tables soon merged.
	t.Run("slow readers on a small disk", func(t *testing.T) {
		crash(t, Options{
			Command:   serveAll(binary, "never", "interval:5ms"),
			Data:      filepath.Join(smallDisk(t, 512), "data"),
			Cycles:    *cycles * 2 / 3,
			SlowEvery: 2,
			MaxLoad:   1500 * time.Millisecond,
		})
	})
	t.Run("the one node of a cell", func(t *testing.T) {
		data, alone := filepath.Join(t.TempDir(), "data"), serveAll(binary, "always")
		if out, err := exec.Command(binary, "cluster", "found", "--node", "a", data).CombinedOutput(); err != nil {
			t.Fatalf("found a cell: %v\n%s", err, out)
		}
		nodes := "a=" + twoPorts(t)
		crash(t, Options{
			Command: func(data string) *exec.Cmd {
				cmd := alone(data)
				cmd.Args = append(cmd.Args, "--node", "a", "--nodes", nodes)
				return cmd
			},
			Data:   data,
			Cycles: (*cycles + 2) / 3,
		})
	})
}

// twoPorts returns an address that is free, as is that of the next port. They are below those that
// connections get.
func twoPorts(t *testing.T) string {
	t.Helper()
	for range 100 {
		port := 10_000 + rand.IntN(22_000)
		at := fmt.Sprintf("127.0.0.1:%d", port)
		first, err := net.Listen("tcp", at)
		if err != nil {
			continue
		}
		_ = first.Close()
		if next, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port+1)); err == nil {
			_ = next.Close()
			return at
		}
	}
	t.Fatal("no two free ports in a row")
	return ""
}

// crash runs the harness with all protocols. It must find nothing.
func crash(t *testing.T, o Options) {
	o.Seed, o.Logf = runSeed(), t.Logf
	o.BoardClients, o.RedisClients, o.TaskClients = 4, 4, *tasked
	o.MinRates = [loadKinds]float64{ofPinpriq: 500, ofBoard: 100, ofRedis: 100, ofTasks: 100} // below, it proves nothing
	t.Logf("seed %d", o.Seed)
	result, err := Run(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range result.Findings {
		t.Error(f)
	}
	for p := range loadKinds {
		t.Logf("%d operations of %v (%.0f/s)", result.Ops[p], p, result.Rate(p))
	}
	t.Logf("%d cycles: %d kills, %d clean stops, %v under load, %d findings",
		result.Cycles, result.Kills, result.Stops, result.Load.Round(time.Millisecond), len(result.Findings))
}
