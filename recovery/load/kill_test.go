package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/recovery"
	"github.com/holdfast-queue/holdfast/recovery/dump"
	"github.com/holdfast-queue/holdfast/recovery/recoverytest"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/inject"
)

// childLoad tells a copy of the test program to load what it reads into a folder.
const childLoad = "HOLDFAST_TEST_LOAD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childLoad); dir != "" {
		_, err := Load(context.Background(), dir, os.Stdin, Options{Now: recoverytest.Later, batchBytes: 64 << 10})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestSystemKilledLoadBeginsAgain(t *testing.T) {
	packets, kills := 40_000, 3
	if inject.Runs() >= 100 { // in make sweep
		packets, kills = 60_000, 20
	}
	dir := filepath.Join(t.TempDir(), "data")
	text, _ := dumpOf(t, recoverytest.Many(packets), dump.Options{})
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	chance := rand.New(rand.NewPCG(seed, 0))
	parts := 0
	for i := range kills {
		share := len(text) / (kills + 1)
		killLoad(t, dir, text[:(i+1)*share+chance.IntN(share)])
		if begun, _ := filepath.Glob(filepath.Join(dir, "build", "*", "*.log")); len(begun) > 0 {
			parts++
		}
		if _, err := os.Stat(filepath.Join(dir, "format")); errors.Is(err, os.ErrNotExist) {
			continue // it was killed before it made the folder a data folder
		}
		if report := verified(t, dir); !report.Sound() || report.Packets != 0 {
			t.Fatalf("kill %d: %+v", i, report)
		}
	}
	if parts < kills/2 {
		t.Errorf("%d of %d kills met a load that had written something: too few to prove anything", parts, kills)
	}
	report := load(t, dir, text, Options{})
	if report.Packets != int64(packets) {
		t.Errorf("report %+v, want %d packets", report, packets)
	}
	if got := folderDump(t, dir, dump.Options{}); !bytes.Equal(got, text) {
		t.Error("the dump of what was loaded differs from the dump")
	}
}

// killLoad gives a process that loads the beginning of a dump and kills it at once: while it
// stores the last of it.
func killLoad(t *testing.T, dir string, begin []byte) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childLoad+"="+dir)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, err = in.Write(begin)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if err != nil || out.Len() > 0 {
		t.Fatalf("the load ended by itself: %v %s", err, out.Bytes())
	}
}

// loadAt loads a dump in a child, which strace kills at one call, or has that fail. It returns what
// the child said, and whether there was such a call.
func loadAt(t *testing.T, strace []string, dir string, text []byte, call, what string, n int) (said string, code int, met bool) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "calls")
	args := append(slices.Clone(strace), "-o", log, "-e", "trace="+call, "-e", fmt.Sprintf("inject=%s:%s:when=%d", call, what, n), os.Args[0])
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), childLoad+"="+dir, "GOMAXPROCS=1")
	cmd.Stdin = bytes.NewReader(text)
	out, _ := cmd.CombinedOutput()
	calls, _ := os.ReadFile(log)
	return string(out), cmd.ProcessState.ExitCode(), bytes.Contains(calls, []byte("INJECTED")) || cmd.ProcessState.ExitCode() < 0
}

// Whatever call a load is killed at, or fails at, the folder has nothing, or the whole dump. After
// a failure the load says which, unless nobody can know.
func TestSystemALoadThatIsKilledOrFailsAtAnyCallIsWholeOrNothing(t *testing.T) {
	strace := inject.Strace(t)
	template := t.TempDir()
	load(t, template, []byte(head+`{"type":"end"}`), Options{}) // makes the folder
	text, _ := dumpOf(t, recoverytest.Many(3000), dump.Options{})
	ends := map[string]int{}
	first, stride := inject.Sample(t, 15)
	for _, call := range []string{"openat", "mkdirat", "write", "pwrite64", "fsync", "renameat", "unlinkat", "symlinkat", "mmap"} {
		for _, what := range []string{"signal=KILL", "error=EIO", "error=ENOSPC"} {
			for n := first; ; n += stride {
				dir := recoverytest.CopyOf(t, template)
				said, code, met := loadAt(t, strace, dir, text, call, what, n)
				at := fmt.Sprintf("%s at call %d of %s: %d, %s", what, n, call, code, said)
				report := verified(t, dir)
				whole := report.Packets == 3000
				switch {
				case !report.Sound(), !whole && report.Packets != 0:
					t.Errorf("%s: %+v", at, report)
				case code == 0 && !whole, strings.Contains(said, "nothing was stored") && whole:
					t.Errorf("%s: %d packets", at, report.Packets)
				}
				ends[fmt.Sprint(what, " whole ", whole)]++
				s, err := storage.Open(dir, storage.Options{})
				if err != nil {
					t.Fatalf("%s: a start gets %v", at, err)
				}
				if _, err := recovery.Restore(s, recovery.Options{Now: recoverytest.Later}); errors.Join(err, s.Close()) != nil {
					t.Errorf("%s: a start gets %v", at, err)
				}
				if !met {
					break
				}
			}
		}
	}
	t.Log(ends)
}
