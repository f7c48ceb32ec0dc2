package recovery

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

	"github.com/holdfast-queue/holdfast/storage"
)

// childLoad tells a copy of the test program to load a dump, and from and into what.
const childLoad = "HOLDFAST_TEST_LOAD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childLoad); dir != "" {
		os.Exit(loadAsChild(dir))
	}
	os.Exit(m.Run())
}

// loadAsChild loads the dump beside the folder and writes a line as soon as something is stored.
func loadAsChild(dir string) int {
	dump, err := os.Open(dir + ".dump")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	began := false
	_, err = Load(context.Background(), dir, dump, LoadOptions{
		Now:  later,
		tune: loadTuning{chunk: 32 << 10, batch: 256 << 10},
		Progress: func(Progress) {
			if !began {
				began = true
				fmt.Println("loading")
			}
		},
	})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

func TestKilledLoadGoesOnWhereItWas(t *testing.T) {
	packets, kills := 120_000, 10
	if testing.Short() {
		packets, kills = 30_000, 3
	}
	base := t.TempDir()
	dir := filepath.Join(base, "data")
	dump, _ := dumpOf(t, manyPackets(packets), DumpOptions{})
	if err := os.WriteFile(dir+".dump", dump, 0o600); err != nil {
		t.Fatal(err)
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	chance := rand.New(rand.NewPCG(seed, 0))
	begun, resumed := 0, int64(0)
	for range kills {
		if !killLoad(t, dir, time.Duration(chance.IntN(300))*time.Millisecond) {
			break
		}
		s, err := storage.Open(dir, storage.Options{})
		if err == nil {
			// It was killed before its first batch, or after its last.
			if n := s.Control().Live; n != 0 && n != uint64(packets) {
				t.Fatalf("a part of the dump is served: %d of %d packets", n, packets)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if !errors.Is(err, storage.ErrUnfinished) {
			t.Fatalf("the folder that a killed load leaves: %v", err)
		}
		begun++
	}
	// Whatever the kills left: stored by the load that ends it are all packets, each once.
	s, err := storage.Open(dir, storage.Options{})
	if err == nil && s.Control().Live == uint64(packets) {
		_ = s.Close()
	} else {
		if err == nil {
			_ = s.Close()
		}
		report := load(t, dir, dump, LoadOptions{})
		if report.Packets != int64(packets) {
			t.Errorf("report %+v", report)
		}
		resumed = report.Resumed
	}
	t.Logf("killed %d times with a part stored; the last load found %d of %d packets", begun, resumed, packets)
	if begun == 0 {
		t.Error("no kill hit a load that had begun: this proves nothing")
	}
	if got := folderDump(t, dir, DumpOptions{}); !bytes.Equal(got, dump) {
		t.Error("the dump of what was loaded differs from the dump")
	}
}

// killLoad starts a load and kills it some time after it has read packets; it reports whether the
// load was still running.
func killLoad(t *testing.T, dir string, after time.Duration) bool {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childLoad+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 4096)
	n, _ := out.Read(line)
	if said := string(line[:n]); n > 0 && said != "loading\n" {
		t.Fatal(said)
	}
	timer := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	err = cmd.Wait()
	return err != nil
}
