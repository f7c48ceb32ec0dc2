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
		crash(t, serveAll(binary, "interval:5ms", "always", "never", "always"), t.TempDir(), *cycles)
	})
	// On a small disk windows are small and tables soon merged.
	t.Run("small disk", func(t *testing.T) {
		crash(t, serveAll(binary, "never", "interval:5ms"), filepath.Join(smallDisk(t, 256), "data"), *cycles*2/3)
	})
	t.Run("the one node of a cell", func(t *testing.T) {
		data, alone := filepath.Join(t.TempDir(), "data"), serveAll(binary, "always")
		if out, err := exec.Command(binary, "cluster", "found", "--node", "a", data).CombinedOutput(); err != nil {
			t.Fatalf("found a cell: %v\n%s", err, out)
		}
		nodes := "a=" + twoPorts(t)
		crash(t, func(data string) *exec.Cmd {
			cmd := alone(data)
			cmd.Args = append(cmd.Args, "--node", "a", "--nodes", nodes)
			return cmd
		}, data, (*cycles+2)/3)
	})
}

// crash loads and ends a server so many times. The model must know all that it says and has.
func crash(t *testing.T, command Command, data string, cycles int) {
	seed := runSeed()
	t.Logf("seed %d", seed)
	run := newTrial(command, data, seed, t.Logf)
	t.Cleanup(run.kill)
	if err := run.run(cycles, 200*time.Millisecond, 2*time.Second, true); err != nil {
		t.Fatal(err)
	}
	if n := run.calls.Load(); n < int64(leastCalls*cycles) {
		t.Errorf("%d calls had a reply in %d cycles: that proves nothing", n, cycles)
	}
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
