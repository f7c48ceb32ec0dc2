package crash

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/recovery"
	"github.com/holdfast-queue/holdfast/recovery/compact"
	"github.com/holdfast-queue/holdfast/recovery/verify"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
	"github.com/holdfast-queue/holdfast/storage/inject"
)

// compactDir is the environment variable with the folder to compact. It is set for the test binary
// that runs as the process to be killed.
const compactDir = "HOLDFAST_TEST_COMPACT"

// compactNow is the time of all compactions, in Unix milliseconds. It is far ahead, so that Badger,
// which uses the wall clock, drops no packet by itself.
const compactNow = 4_000_000_000_000

// TestCompactionAsAProcess is not a test but the process that TestKilledCompactionLosesNothing
// kills.
func TestCompactionAsAProcess(t *testing.T) {
	dir := os.Getenv(compactDir)
	if dir == "" {
		t.Skip("it runs only when another test starts it")
	}
	_, err := compact.Folder(t.Context(), dir, compact.Options{
		Now:      compactNow,
		Progress: func(step string, _, _ int64) { fmt.Println(step) },
	})
	if err != nil {
		t.Fatal(err)
	}
}

// compaction is a process that compacts a folder.
type compaction struct {
	cmd    *exec.Cmd
	out    *bufio.Reader
	begun  chan struct{} // closed with the first step that writes
	exited chan error    // gets the result of the process once
	merges atomic.Bool   // the last step that it reported was the merge
}

func startCompaction(t *testing.T, dir string) *compaction {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestCompactionAsAProcess$", "-test.count=1")
	cmd.Env = append(os.Environ(), compactDir+"="+dir)
	dieWithParent(cmd)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &compaction{cmd: cmd, out: bufio.NewReader(out), begun: make(chan struct{}), exited: make(chan error, 1)}
	go c.follow() // ends with the process
	return c
}

func (c *compaction) follow() {
	begun := false
	for {
		line, err := c.out.ReadString('\n')
		if err != nil {
			break
		}
		if !begun && line == "write out\n" {
			begun = true
			close(c.begun)
		}
		c.merges.Store(line == "write out\n" || line == "merge\n")
	}
	if !begun {
		close(c.begun) // so that nobody waits for it
	}
	c.exited <- c.cmd.Wait()
}

// kill ends the process some time after its first write, and reports whether it was still at work.
func (c *compaction) kill(after time.Duration) (atWork, merging bool) {
	<-c.begun
	select {
	case err := <-c.exited:
		c.exited <- err
	case <-time.After(after): // the moment is what is tested
	}
	merging = c.merges.Load()
	_ = c.cmd.Process.Kill()
	atWork = <-c.exited != nil
	return atWork, atWork && merging
}

// remains is what a folder must hold whatever happens to a compaction.
type remains struct {
	packets int
	sum     [sha256.Size]byte // of the packets that have not expired: identities and records, in order
	live    uint64            // of the control record
	hash    uint64
	marks   content.Marks
}

// read opens a folder as a server does and returns what it holds.
func (c *remains) read(t *testing.T, dir string) {
	t.Helper()
	s, err := storage.Open(dir, storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := recovery.Restore(s, recovery.Options{Now: compactNow}); err != nil {
		t.Fatal(err)
	}
	snap, err := s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	control := snap.Control()
	*c = remains{live: control.Live, hash: control.Hash, marks: control.Marks}
	sum := sha256.New()
	err = snap.Walk(storage.Visitor{Whole: true, Packet: func(id content.PacketID, _ *content.Meta, rec []byte, damage error) error {
		if damage != nil {
			return damage
		}
		var p content.Packet
		if err := content.DecodeRecord(rec, &p); err != nil {
			return err
		}
		if p.Expiry != 0 && p.Expiry <= compactNow {
			return nil // it may or may not be there
		}
		c.packets++
		fmt.Fprintf(sum, "%v %d ", id, len(rec))
		_, err := sum.Write(rec)
		return err
	}})
	if err != nil {
		t.Fatal(err)
	}
	sum.Sum(c.sum[:0])
}

// wantSound verifies a folder, and fails the test if there is a finding.
func wantSound(t *testing.T, dir string) {
	t.Helper()
	report, err := verify.Folder(t.Context(), dir, verify.Options{Now: compactNow})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range report.Findings {
		t.Errorf("verify: %+v", f)
	}
}

// fillMostlyPopped puts n packets, numbered from first, into a folder, and pops most of them. Some
// are large, some have expired, some will expire.
func fillMostlyPopped(t *testing.T, dir string, first, n int) {
	t.Helper()
	s, err := storage.Open(dir, storage.Options{Sync: storage.SyncNever()})
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, uint64(first)))
	var b content.Batch
	apply := func() {
		if err := s.Apply(&b); err != nil {
			t.Fatal(err)
		}
		b.Reset()
	}
	b.PutQueue(content.Queue{ID: 1, Name: []byte("jobs"), New: true})
	b.SetMarks(content.Marks{NextSeq: 1<<63 + uint64(first+n), LowSeq: 1<<63 - 1, NextQueue: 2})
	type popped struct {
		id content.PacketID
		content.Removed
	}
	var gone []popped
	const run, large = 1000, 3000
	for i := range n {
		id := content.PacketID{Queue: 1, Priority: 1 + rng.Uint32N(200), Seq: 1<<63 + uint64(first+i)}
		p := content.Packet{Key: binary.BigEndian.AppendUint64(nil, id.Seq), Payload: make([]byte, 128)}
		if i%64 == 0 {
			p.Payload = make([]byte, large)
		}
		for j := range p.Payload {
			p.Payload[j] = byte(rng.Uint32())
		}
		switch i % 20 {
		case 10:
			p.Expiry = compactNow - int64(i)
		case 11:
			p.Expiry = compactNow + int64(time.Hour/time.Millisecond)
		}
		if b.Put(id, &p); i%10 > 1 {
			gone = append(gone, popped{id, content.Removed{Large: content.IsLarge(len(p.Payload))}})
		}
		if i%run == run-1 {
			apply()
		}
	}
	apply()
	rng.Shuffle(len(gone), func(i, j int) { gone[i], gone[j] = gone[j], gone[i] })
	for i, p := range gone {
		if b.Delete(p.id, p.Removed); i%run == run-1 {
			apply()
		}
	}
	apply()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestKilledCompactionLosesNothing(t *testing.T) {
	n, kills := 80_000, 3
	if inject.Runs() >= 100 { // in make sweep
		n, kills = 200_000, 20
	}
	seed := runSeed()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	fillMostlyPopped(t, dir, 0, n)
	t.Run("of a folder that never was compacted", func(t *testing.T) { killCompactions(t, rng, dir, kills) })

	// Then the packets are in other files, and new ones lie above them.
	if _, err := compact.Folder(t.Context(), dir, compact.Options{Now: compactNow}); err != nil {
		t.Fatal(err)
	}
	fillMostlyPopped(t, dir, n, n)
	t.Run("of one that was", func(t *testing.T) { killCompactions(t, rng, dir, kills) })
}

// killCompactions kills compactions of copies of a folder, and compares what they leave.
func killCompactions(t *testing.T, rng *rand.Rand, full string, kills int) {
	var want, got remains
	want.read(t, full)

	// Measure the time from its first write to its end.
	dir := copyFolder(t, full)
	c := startCompaction(t, dir)
	<-c.begun
	began := time.Now()
	if err := <-c.exited; err != nil {
		t.Fatalf("compaction: %v", err)
	}
	took := time.Since(began)
	if got.read(t, dir); got != want {
		t.Fatalf("after a compaction that was not killed the folder holds %+v, want %+v", got, want)
	}

	atWork, merging := 0, 0
	few := func() bool { return atWork < kills/2 || merging < kills/3 }
	// There are more than kills only if compactions have become much faster than the first one.
	for i := 0; i < kills || few() && i < 4*kills; i++ {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		dir = copyFolder(t, full)
		// Each kill has its own part of the time; now and then a second kill follows.
		part := (float64(i%kills) + rng.Float64()) / float64(kills)
		for again := true; again; again = rng.IntN(3) == 0 {
			killed, inMerge := startCompaction(t, dir).kill(time.Duration(part * float64(took)))
			atWork, merging = atWork+oneIf(killed), merging+oneIf(inMerge)
			part = rng.Float64()
		}
		wantSound(t, dir)
		if got.read(t, dir); got != want {
			t.Fatalf("after kill %d the folder holds %+v, want %+v", i, got, want)
		}
	}
	t.Logf("a compaction writes for %v; %d kills met it at work, %d of them while it merged", took.Round(time.Millisecond), atWork, merging)
	if few() {
		t.Errorf("too few kills met a compaction at work: the test proves nothing")
	}

	report, err := compact.Folder(t.Context(), dir, compact.Options{Now: compactNow})
	if err != nil {
		t.Fatal(err)
	}
	wantSound(t, dir)
	if got.read(t, dir); got != want || report.Packets != int(want.packets) {
		t.Fatalf("after the last compaction the folder holds %+v, want %+v; report %+v", got, want, report)
	}
}

func oneIf(is bool) int {
	if is {
		return 1
	}
	return 0
}

// copyFolder copies a data folder without the reserve file. Zeros at the end of a file stay sparse.
func copyFolder(t *testing.T, from string) string {
	t.Helper()
	to := t.TempDir()
	err := filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		switch {
		case entry.IsDir():
			return os.MkdirAll(filepath.Join(to, rel), 0o700)
		case rel == "reserve":
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name := filepath.Join(to, rel)
		if err := os.WriteFile(name, bytes.TrimRight(b, "\x00"), 0o600); err != nil {
			return err
		}
		return os.Truncate(name, int64(len(b)))
	})
	if err != nil {
		t.Fatal(err)
	}
	return to
}
