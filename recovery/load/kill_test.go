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
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/recovery/dump"
	"github.com/holdfast-queue/holdfast/recovery/recoverytest"
	"github.com/holdfast-queue/holdfast/storage"
)

// childLoad tells a copy of the test program to load what it reads into a folder.
const childLoad = "HOLDFAST_TEST_LOAD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childLoad); dir != "" {
		_, err := Load(context.Background(), dir, os.Stdin, Options{Now: recoverytest.Later, batchBytes: 64 << 10})
		fmt.Println(err)
		os.Exit(1) // it is to be killed before
	}
	os.Exit(m.Run())
}

func TestKilledLoadBeginsAgain(t *testing.T) {
	packets, kills := 60_000, 6
	if testing.Short() {
		packets, kills = 40_000, 3
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
		switch s, err := storage.Open(dir, storage.Options{}); {
		case errors.Is(err, storage.ErrLoadUnfinished):
			parts++
		case err != nil:
			t.Fatalf("kill %d: a server that opens the folder gets %v", i, err)
		default: // nothing was stored
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if parts < kills/2 {
		t.Errorf("%d of %d kills left a part: too few to prove anything", parts, kills)
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
