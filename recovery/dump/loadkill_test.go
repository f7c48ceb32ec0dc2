package dump

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/storage"
)

// childLoad tells a copy of the test program to load what it reads into a folder.
const childLoad = "HOLDFAST_TEST_LOAD"

// childMerge tells it to merge, and to end itself once everything is stored.
const childMerge = "HOLDFAST_TEST_MERGE"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childMerge); dir != "" {
		calls := 0
		_, err := Load(context.Background(), dir, os.Stdin, LoadOptions{Merge: true, Now: later, Progress: func(Progress) {
			if calls++; calls == 2 { // the first is of the only chunk
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			}
		}})
		fmt.Println(err)
		os.Exit(1)
	}
	if dir := os.Getenv(childLoad); dir != "" {
		_, err := Load(context.Background(), dir, os.Stdin, LoadOptions{Now: later, tune: loadTuning{chunk: 16 << 10, batch: 64 << 10}})
		fmt.Println(err)
		os.Exit(1) // it is to be killed before
	}
	os.Exit(m.Run())
}

func TestKilledLoadGoesOnWhereItWas(t *testing.T) {
	packets, kills := 30_000, 8
	if testing.Short() {
		packets, kills = 15_000, 3
	}
	dir := filepath.Join(t.TempDir(), "data")
	dump, _ := dumpOf(t, manyPackets(packets), Options{})
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	chance := rand.New(rand.NewPCG(seed, 0))
	for i := range kills {
		share := len(dump) / (kills + 1)
		killLoad(t, dir, dump[:(i+1)*share+chance.IntN(share)])
		_, err := storage.Open(dir, storage.Options{})
		if !errors.Is(err, storage.ErrLoadUnfinished) {
			t.Fatalf("kill %d: a server that opens the folder gets %v", i, err)
		}
	}
	report := load(t, dir, dump, LoadOptions{})
	if report.Packets != int64(packets) || report.Resumed < int64(packets)/2 {
		t.Errorf("report %+v, want %d packets, most of them from before", report, packets)
	}
	if got := folderDump(t, dir, Options{}); !bytes.Equal(got, dump) {
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

func TestMergeKilledAfterItsLastBatchIsNotCarriedOutTwice(t *testing.T) {
	dump, _ := dumpOf(t, manyPackets(20), Options{})
	dir := inFolder(t, anyDump())
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childMerge+"="+dir)
	cmd.Stdin = bytes.NewReader(dump)
	if out, err := cmd.Output(); err == nil || len(out) > 0 || !strings.Contains(err.Error(), "killed") {
		t.Fatalf("the merge ended with %v %s", err, out)
	}
	before := folderDump(t, dir, Options{})
	if n := bytes.Count(before, []byte(`"packet"`)); n != 28 {
		t.Fatalf("the killed merge has left %d packets, want 8 and 20", n)
	}
	report := load(t, dir, dump, LoadOptions{Merge: true})
	if !report.Already || report.Packets != 20 || report.Queues != 7 {
		t.Errorf("report %+v, want 20 packets that are there already", report)
	}
	if after := folderDump(t, dir, Options{}); !bytes.Equal(before, after) {
		t.Error("the same merge again has changed the folder")
	}
}
